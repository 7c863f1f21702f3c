from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from mcp_types import methods
from mcp_types.jsonrpc import MISSING_REQUIRED_CLIENT_CAPABILITY, JSONRPCError, JSONRPCResponse

from openai_responses_mcp.domain.errors import (
    AnswerWithheld,
    GatewayOverloaded,
    GatewayRefused,
    GatewayTimeout,
    GatewayUnreachable,
    KeyUnusable,
)
from openai_responses_mcp.domain.models import (
    ModelReply,
    ModelRequest,
    Progress,
    ProgressListener,
    Source,
    StartListener,
)
from openai_responses_mcp.server.tasks import TaskFacts, TaskIds
from tests.clients.task_types import validate_task_request, validate_task_result
from tests.fakes import FakeGateway
from tests.rules import ANSWERING
from tests.server.wired import CAPABILITIES, ENVELOPE, SECRET, SERVER_INFO, Wired, cancel, request, tool_call

TASKS = "io.modelcontextprotocol/tasks"
DECLARED: dict[str, Any] = {**ENVELOPE, CAPABILITIES: {"extensions": {TASKS: {}}}}
NEEDED: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
RESEARCH = "answer_detailed"
FOUND = ModelReply(
    text="Because.", model="gpt-5.2", response_id="resp_1", cited=(Source("https://a.example", "A"),), search_count=1
)
RESTRICTED = replace(ANSWERING, restrict_to_domains=True, domains=("a.example",))


class Researching(Wired):
    """With a research that is asked for by a client that knows tasks, and goes on until it is released."""

    def __init__(self, outcome: ModelReply | Exception = FOUND, **options: Any) -> None:
        super().__init__(**options)
        self.gateway.enqueue(outcome)
        self.gateway.hold()

    async def begin(self, tool: str = RESEARCH, **meta: Any) -> Any:
        """The task that the call is answered with."""
        params = {"name": tool, "arguments": {"query": "Q", "input": "Q"}, "_meta": {**DECLARED, **meta}}
        result = (await self.reply_to(request(1, "tools/call", params)))["result"]
        validate_task_result("tools/call", result)
        return result

    async def ask(self, method: str, task_id: Any, **more: Any) -> Any:
        return await self.reply_to(request(2, method, {"taskId": task_id, "_meta": DECLARED, **more}))

    async def look(self, task_id: str) -> Any:
        reply = await self.ask("tasks/get", task_id)
        JSONRPCResponse.model_validate(reply)
        validate_task_result("tasks/get", reply["result"])
        return reply["result"]


async def test_a_research_is_answered_with_a_task_as_soon_as_its_id_is_known() -> None:
    wired = Researching()
    task = await wired.begin()
    task_id = task.pop("taskId")
    assert TaskIds(SECRET).read(task_id) == TaskFacts("resp_1", RESEARCH, 1_794_789_000_000, ())
    assert task == {
        "resultType": "task",
        "status": "working",
        "statusMessage": "The research has begun",
        "createdAt": "2026-11-16T00:30:00.000Z",
        "lastUpdatedAt": "2026-11-16T00:30:00.000Z",
        "ttlMs": 2_592_000_000,
        "pollIntervalMs": 5000,
        "_meta": task["_meta"],
    }
    assert SERVER_INFO in task["_meta"]
    assert wired.gateway.let_go_ids == ["resp_1"]
    assert wired.gateway.cancelled_ids == []


async def test_a_task_is_working_until_it_is_completed_with_the_result_of_the_call() -> None:
    wired, waiting = Researching(), Wired()
    task_id = (await wired.begin())["taskId"]
    wired.gateway.progress = [Progress('searching for "Q"')]
    await wired.clock.advance(7)
    working = await wired.look(task_id)
    assert (working["status"], working["statusMessage"]) == ("working", 'searching for "Q"')
    assert working["createdAt"] == "2026-11-16T00:30:00.000Z"
    assert working["lastUpdatedAt"] == "2026-11-16T00:30:07.000Z"
    wired.gateway.release()
    completed = await wired.look(task_id)
    waiting.gateway.enqueue(FOUND)
    reply = await waiting.reply_to(tool_call(1, "Q", tool=RESEARCH, meta=ENVELOPE))
    assert (completed["status"], completed["result"]) == ("completed", reply["result"])
    methods.validate_server_result("tools/call", "2026-07-28", completed["result"])


async def test_the_result_has_the_shape_of_the_tool_that_was_called() -> None:
    wired = Researching(answering=replace(ANSWERING, in_background=frozenset({"answer"})))
    task_id = (await wired.begin("iris"))["taskId"]
    wired.gateway.release()
    result = (await wired.look(task_id))["result"]
    assert result["content"][0]["text"].startswith("Because.")
    assert set(result["structuredContent"]) == {"answer", "response_id"}


async def test_a_task_of_a_tool_that_is_not_known_any_more_is_an_answer() -> None:
    wired = Researching()
    wired.gateway.keep("resp_9", FOUND)
    wired.gateway.release()
    task_id = TaskIds(SECRET).maybe_made(TaskFacts("resp_9", "gone_tool", 0))
    assert (await wired.look(str(task_id)))["result"]["structuredContent"]["answer"].startswith("Because.")


async def test_the_domains_of_the_call_still_hold() -> None:
    outside = replace(FOUND, cited=(Source("https://a.example/1"), Source("https://b.example/2")))
    wired = Researching(outside, answering=RESTRICTED)
    task_id = (await wired.begin())["taskId"]
    wired.gateway.release()
    meta = (await wired.look(task_id))["result"]["_meta"]
    assert meta["openai-responses-mcp/left_out"] == ["https://b.example/2"]


async def test_a_failure_of_the_model_is_a_completed_task_as_it_would_have_been_a_result() -> None:
    wired = Researching(AnswerWithheld("The response failed. Ask again."))
    task_id = (await wired.begin())["taskId"]
    wired.gateway.release()
    completed = await wired.look(task_id)
    assert completed["status"] == "completed"
    assert completed["result"]["isError"] is True
    assert completed["result"]["content"][0]["text"] == "answer failed: The response failed. Ask again."


@pytest.mark.parametrize(
    "trouble",
    [
        GatewayOverloaded("The API is busy.", status=429),
        GatewayUnreachable("The API is busy."),
        GatewayTimeout("The API is busy."),
    ],
)
async def test_while_the_api_is_in_trouble_the_task_is_working_and_says_so(trouble: Exception) -> None:
    wired = Researching()
    task_id = (await wired.begin())["taskId"]
    wired.gateway.enqueue_trouble(trouble)
    working = await wired.look(task_id)
    assert working["status"] == "working"
    assert working["statusMessage"] == "The API cannot say right now: The API is busy."
    wired.gateway.release()
    assert (await wired.look(task_id))["status"] == "completed"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
@pytest.mark.parametrize("trouble", [GatewayRefused(f"401 for {SECRET}", status=401), KeyUnusable("Missing API key")])
async def test_a_permanent_failure_of_a_task_request_is_an_error(method: str, trouble: Exception) -> None:
    wired = Researching()
    task_id = (await wired.begin())["taskId"]
    wired.gateway.enqueue_trouble(trouble)
    error = JSONRPCError.model_validate(await wired.ask(method, task_id)).error
    assert (error.code, error.message) == (-32001, f"{method} failed")
    assert error.data == {"message": str(trouble).replace(SECRET, "***")}


async def test_a_cancelled_task_is_cancelled_at_the_api() -> None:
    wired = Researching()
    task_id = (await wired.begin())["taskId"]
    result = (await wired.ask("tasks/cancel", task_id))["result"]
    validate_task_result("tasks/cancel", result)
    assert wired.gateway.cancelled_ids == ["resp_1"]
    cancelled = await wired.look(task_id)
    assert cancelled["status"] == "cancelled"
    assert "cancelled at the API" in cancelled["statusMessage"]


async def test_a_finished_task_stays_what_it_is() -> None:
    wired = Researching()
    task_id = (await wired.begin())["taskId"]
    wired.gateway.release()
    validate_task_result("tasks/cancel", (await wired.ask("tasks/cancel", task_id))["result"])
    assert (await wired.look(task_id))["status"] == "completed"


async def test_an_update_is_taken_and_changes_nothing() -> None:
    wired = Researching()
    task_id = (await wired.begin())["taskId"]
    validate_task_request("tasks/update", {"taskId": task_id, "inputResponses": {}, "_meta": DECLARED})
    validate_task_result("tasks/update", (await wired.ask("tasks/update", task_id, inputResponses={}))["result"])
    assert (await wired.look(task_id))["status"] == "working"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
@pytest.mark.parametrize(
    ("task_id", "message"),
    [
        (None, "taskId must be a string"),
        ("made up", "Unknown task: no task of this server has such an id"),
        (
            TaskIds("another key").maybe_made(TaskFacts("resp_1", RESEARCH, 0)),
            "Unknown task: its id was changed, or made with another API key",
        ),
    ],
)
async def test_an_unknown_or_forged_task_is_refused_and_says_which(method: str, task_id: Any, message: str) -> None:
    wired = Researching()
    error = JSONRPCError.model_validate(await wired.ask(method, task_id)).error
    assert (error.code, error.message) == (-32602, message)
    assert wired.gateway.looked_up == []


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
@pytest.mark.parametrize(
    ("age", "reason"),
    [(timedelta(days=30), "it keeps a response for 30 days"), (timedelta(days=1), "it was deleted there")],
)
async def test_a_task_that_is_gone_from_the_api_is_refused_and_says_why(
    method: str, age: timedelta, reason: str
) -> None:
    wired = Researching()
    made_ms = int((wired.clock.now() - age).timestamp() * 1000)
    task_id = TaskIds(SECRET).maybe_made(TaskFacts("resp_gone", RESEARCH, made_ms))
    error = JSONRPCError.model_validate(await wired.ask(method, task_id)).error
    assert error.code == -32602
    assert error.message == f"The task is gone: the API no longer has its response ({reason})"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
async def test_the_error_for_a_client_without_tasks_names_the_missing_capability(method: str) -> None:
    wired = Researching()
    task_id = (await wired.begin())["taskId"]
    reply = await wired.reply_to(request(2, method, {"taskId": task_id, "_meta": ENVELOPE}))
    error = JSONRPCError.model_validate(reply).error
    assert error.code == MISSING_REQUIRED_CLIENT_CAPABILITY == -32021
    assert error.data == NEEDED
    old = await wired.reply_to(request(3, method, {"taskId": task_id, "_meta": {CAPABILITIES: DECLARED[CAPABILITIES]}}))
    assert old["error"]["code"] == -32601


@pytest.mark.parametrize("meta", [ENVELOPE, {CAPABILITIES: DECLARED[CAPABILITIES]}])
async def test_a_client_that_does_not_declare_tasks_gets_no_task(meta: dict[str, Any]) -> None:
    wired = Wired()
    result = (await wired.reply_to(tool_call(1, tool=RESEARCH, meta=meta)))["result"]
    assert result["structuredContent"]["answer"]
    assert result.get("resultType") != "task"
    assert wired.gateway.let_go_ids == []


async def test_a_failure_before_the_id_is_known_is_the_reply() -> None:
    wired = Wired()
    wired.gateway.enqueue(GatewayRefused("400", status=400))
    result = (await wired.reply_to(tool_call(1, tool="answer", meta=DECLARED)))["result"]
    assert result["isError"] is True


class LongIds(FakeGateway):
    """As some gateways have them that put more into an id than the API does."""

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        assert on_started is not None
        on_started("resp_" + "r" * 500)
        return await super().respond(request, on_progress)


async def test_a_response_whose_id_no_task_can_hold_is_waited_for() -> None:
    gateway = LongIds()
    gateway.hold()
    wired = Wired(gateway=gateway)
    wired.handle(tool_call(1, tool=RESEARCH, meta=DECLARED))
    await gateway.wait_for_calls(1)
    await wired.clock.advance(60)
    assert wired.transport.sent == []
    gateway.release()
    (reply,) = await wired.drained()
    assert reply["result"]["structuredContent"]["answer"] == "an answer"


async def test_cancelled_before_there_is_a_task_the_call_is_cancelled() -> None:
    wired = Researching()
    wired.handle(tool_call(1, tool=RESEARCH, meta=DECLARED), cancel(1))
    assert await wired.drained() == []
    assert wired.gateway.let_go_ids == []


async def test_cancelled_while_the_id_is_on_its_way_nothing_goes_on() -> None:
    wired = Researching()
    wired.handle(tool_call(1, tool=RESEARCH, meta=DECLARED))
    await wired.gateway.wait_for_calls(1)
    wired.handle(cancel(1))
    assert await wired.drained() == []
    assert wired.gateway.let_go_ids == []
    assert wired.gateway.cancelled_ids == ["resp_1"]


async def test_cancelled_after_the_task_was_given_it_goes_on() -> None:
    wired = Researching()
    task_id = (await wired.begin())["taskId"]
    wired.handle(cancel(1))
    wired.dispatcher.abort()
    assert len(await wired.drained()) == 1
    assert wired.gateway.cancelled_ids == []
    assert (await wired.look(task_id))["status"] == "working"


async def test_a_call_that_became_a_task_has_no_progress() -> None:
    wired = Researching()
    wired.handle(tool_call(1, tool=RESEARCH, meta={**DECLARED, "progressToken": "t"}))
    await wired.drained()
    for _ in range(5):
        await wired.clock.advance(10)
    (only,) = wired.transport.replies()
    assert only["result"]["resultType"] == "task"


async def test_a_call_that_runs_elsewhere_has_progress_at_once_also_for_a_client_with_tasks() -> None:
    wired = Wired()
    wired.gateway.hold()
    wired.handle(tool_call(1, meta={**DECLARED, "progressToken": "t"}))
    await wired.clock.advance(0)
    assert [message["method"] for message in wired.transport.replies()] == ["notifications/progress"]
    wired.gateway.release()
