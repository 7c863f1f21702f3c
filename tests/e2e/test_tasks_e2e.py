"""A research outlives the call that asked for it, and the process that answered the call."""

from typing import Any

import pytest

from tests.clients.task_types import validate_task_result
from tests.e2e.client import Message, Server, answer_in
from tests.e2e.conftest import Start
from tests.stand_in.server import StandInThread

TASKS = "io.modelcontextprotocol/tasks"
DECLARED = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
}
DESKTOP = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude-ai", "version": "0.1.0"}}
WORKING = "Why? [rehearse: text=Because.; hang_after=4]"


def begun(server: Server, question: str) -> str:
    """The id of the task that a research is answered with."""
    params = {"name": "answer_detailed", "arguments": {"query": question}, "_meta": DECLARED}
    result = server.result_of("tools/call", params)
    validate_task_result("tools/call", result)
    task_id: str = result["taskId"]
    return task_id


def on_task(server: Server, method: str, task_id: str, **more: Any) -> Message:
    result = server.result_of(method, {"taskId": task_id, "_meta": DECLARED, **more})
    validate_task_result(method, result)
    return result


def sent(rehearsal: StandInThread, method: str) -> list[str]:
    return [message.target for message in rehearsal.server.requests if message.method == method]


def test_a_task_survives_the_death_of_the_server(start: Start, rehearsal: StandInThread) -> None:
    first = start()
    task_id = begun(first, "Why? [rehearse: text=Because.; delay=1]")
    first.process.kill()
    first.process.wait(30)
    second = start()
    rehearsal.wait_until_nothing_runs()
    completed = on_task(second, "tasks/get", task_id)
    assert completed["status"] == "completed"
    assert answer_in(completed)["answer"] == "Because."
    assert len(sent(rehearsal, "POST")) == 1


@pytest.mark.slow
def test_a_task_goes_on_after_sigterm_ends_its_server(start: Start, rehearsal: StandInThread) -> None:
    first = start()
    task_id = begun(first, WORKING)
    first.process.terminate()
    assert first.exit_code() == 143
    second = start()
    assert on_task(second, "tasks/get", task_id)["status"] == "working"
    assert len(rehearsal.server.api.background.running) == 1
    assert second.finish() == 0


def test_a_cancelled_task_runs_no_more(start: Start, rehearsal: StandInThread) -> None:
    server = start()
    task_id = begun(server, WORKING)
    assert on_task(server, "tasks/update", task_id, inputResponses={}).keys() == {"resultType", "_meta"}
    on_task(server, "tasks/cancel", task_id)
    rehearsal.wait_until_nothing_runs()
    assert on_task(server, "tasks/get", task_id)["status"] == "cancelled"
    on_task(server, "tasks/cancel", task_id)
    assert server.finish() == 0
    assert server.stderr == ""


@pytest.mark.slow
def test_a_client_that_gives_up_gets_its_answer_in_the_second_call(start: Start, rehearsal: StandInThread) -> None:
    server = start(config="server: {hand_over_after_s: 5}")
    server.result_of("initialize", DESKTOP)
    assert "answer_result" in [tool["name"] for tool in server.result_of("tools/list")["tools"]]
    handed_over = server.ask("Why? [rehearse: text=Because.; delay=7]", "answer_detailed")["result"]
    structured = handed_over["structuredContent"]
    assert structured["status"] == "working"
    assert structured["response_id"] in structured["answer"]
    fetching = {"name": "answer_result", "arguments": {"response_id": structured["response_id"]}}
    answered = server.result_of("tools/call", fetching)["structuredContent"]
    assert (answered["answer"], answered["response_id"]) == ("Because.", structured["response_id"])
    assert len(sent(rehearsal, "POST")) == 1
    assert server.finish() == 0
    assert server.stderr == ""
