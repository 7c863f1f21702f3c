"""Research over the real process: cut connections, clients that cancel or go, signals. Nothing is lost or left running."""

import signal

import pytest

from tests.e2e.client import Server, answer_in, call, cancellation
from tests.e2e.conftest import Start
from tests.e2e.test_process import SIGNALS, own_pipe
from tests.stand_in.server import StandInThread


def research(call_id: int, keys: str) -> dict[str, object]:
    return call(call_id, f"Why? [rehearse: {keys}]", "answer_detailed")


def questions(rehearsal: StandInThread) -> int:
    return [f"{r.method} {r.path}" for r in rehearsal.server.requests].count("POST /v1/responses")


def test_research_survives_a_cut_connection_and_is_asked_once(server: Server, rehearsal: StandInThread) -> None:
    server.send(research(1, "text=Because.; cuts=after 2, in 5, end 7; get_status=503"))
    assert answer_in(server.reply_to(1))["answer"] == "Because."
    assert questions(rehearsal) == 1
    assert server.finish() == 0
    assert server.stderr == ""


def test_a_cancelled_research_is_cancelled_at_the_api(server: Server, rehearsal: StandInThread) -> None:
    server.send(research(1, "hang_after=4"))
    rehearsal.wait_for_requests(1)
    server.send(cancellation(1))
    rehearsal.wait_for_requests(2)
    rehearsal.wait_until_nothing_runs()
    assert rehearsal.server.requests[-1].path.endswith("/cancel")
    assert rehearsal.server.api.background.running == []
    assert server.finish() == 0
    assert server.received == []


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_cancels_research_at_the_api(
    server: Server, rehearsal: StandInThread, number: signal.Signals, code: int
) -> None:
    server.send(research(1, "hang_after=4"), research(2, "queue=60"))
    rehearsal.wait_for_requests(2)
    server.process.send_signal(number)
    assert server.exit_code() == code
    rehearsal.wait_until_nothing_runs()
    assert rehearsal.server.api.background.running == []
    assert server.stderr == ""


def test_a_client_that_goes_leaves_no_research_running(start: Start, rehearsal: StandInThread) -> None:
    with own_pipe() as (_, writing):
        server = start(stdout=writing)
        server.send(research(1, "hang_after=4"))
        rehearsal.wait_for_requests(1)
    assert server.exit_code() == 0
    rehearsal.wait_until_nothing_runs()
    assert rehearsal.server.api.background.running == []


def test_research_in_flight_is_finished_after_the_end_of_input(server: Server, rehearsal: StandInThread) -> None:
    server.send(research(1, "text=Because.; slow_stream=0.01; cuts=after 3"))
    server.end_input()
    assert answer_in(server.reply_to(1))["answer"] == "Because."
    assert server.exit_code() == 0
