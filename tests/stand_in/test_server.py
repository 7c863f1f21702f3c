import socket
import threading

import httpx2
import pytest

from tests.stand_in.conftest import IMPATIENT
from tests.stand_in.server import StandInThread


def test_the_thread_answers_callers_without_a_loop() -> None:
    with StandInThread(keep_requests=10) as rehearsal:
        with httpx2.Client(headers={"authorization": "Bearer made-up"}, trust_env=False, timeout=5) as client:
            reply = client.post(rehearsal.base_url + "/responses", json={"model": "gpt-5", "input": "Hello"})
            rehearsal.wait_for_requests(1)
        rehearsal.wait_for_disconnect()
        assert reply.json()["status"] == "completed"
        assert [request.json["input"] for request in rehearsal.server.requests] == ["Hello"]
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(rehearsal.base_url, trust_env=False)


def test_the_thread_notices_a_client_that_gives_up() -> None:
    with StandInThread(delay_seconds=60) as rehearsal:
        with (
            httpx2.Client(headers={"authorization": "Bearer made-up"}, trust_env=False) as client,
            pytest.raises(httpx2.ReadTimeout),
        ):
            client.post(rehearsal.base_url + "/responses", json={"model": "gpt-5", "input": "Hi"}, timeout=IMPATIENT)
        rehearsal.wait_for_abort()
        assert rehearsal.server.aborted == 1


def test_a_port_in_use_is_an_error_and_leaves_no_thread() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        before = threading.active_count()
        with pytest.raises(OSError, match="in use"), StandInThread(port=taken.getsockname()[1]):
            pass
        assert threading.active_count() == before


def test_the_thread_waits_until_nothing_runs() -> None:
    with StandInThread() as rehearsal:
        with httpx2.Client(headers={"authorization": "Bearer made-up"}, trust_env=False, timeout=5) as client:
            body = {"model": "gpt-5", "input": "Why? [rehearse: slow_stream=0.001]", "background": True}
            client.post(rehearsal.base_url + "/responses", json=body)
            rehearsal.wait_until_nothing_runs()
        assert rehearsal.server.api.background.running == []
