"""Clients that leave in the order in which most of them do: first stdin is closed, then they are gone."""

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.client import COMMAND, WAIT_SECONDS, Server, call, environment, line, request
from tests.stand_in.server import StandInThread

pytestmark = pytest.mark.slow

HELD = "Why? [rehearse: delay=60]"


@pytest.mark.parametrize("held", [1, 50])
def test_a_client_that_ends_the_input_and_then_goes_does_not_leave_the_server_waiting(
    rehearsal: StandInThread, tmp_path: Path, held: int
) -> None:
    environ = environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url)
    process = subprocess.Popen(
        [*COMMAND, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(held):
            process.stdin.write(line(call(number, HELD)))
        process.stdin.close()
        rehearsal.wait_for_requests(held)
        process.stdout.close()
        try:
            assert process.wait(WAIT_SECONDS) == 0
        finally:
            process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_client_that_ends_the_input_and_stays_gets_its_replies(rehearsal: StandInThread, tmp_path: Path) -> None:
    environ = environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url)
    with closing(Server([*COMMAND, "--stdio"], environ)) as server:
        server.send(call(1, "Why? [rehearse: delay=0.3]"), request(2, "ping"))
        rehearsal.wait_for_requests(1)
        assert server.finish() == 0
    assert [message["id"] for message in server.received] == [2, 1]
