import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from mcp_types import methods

from openai_responses_mcp.domain.errors import AnswerWithheld, GatewayRefused, ResponseCancelled, StillRunning
from openai_responses_mcp.domain.models import ModelReply, Progress, Source
from openai_responses_mcp.server.tool_results import handed_over
from openai_responses_mcp.server.tools import TOOLS
from tests.fakes import FakeGateway
from tests.server.test_tasks import DECLARED
from tests.server.wired import ENVELOPE, Wired, cancel, request, tool_call

RESEARCH = "answer_detailed"
WORDS = "Still working. Call answer_result with response_id resp_1 in a minute."
FOUND = ModelReply(text="Because.", model="gpt-5.2", response_id="resp_1", cited=(Source("https://a.example"),))
HANDED_OVER = {
    "answer": WORDS,
    "used_search": False,
    "citations": [],
    "status": "working",
    "response_id": "resp_1",
}


def fetch(request_id: int, response_id: Any = "resp_1", meta: Any = None) -> dict[str, Any]:
    params = {"name": "answer_result", "arguments": {"response_id": response_id}, "_meta": meta}
    return request(request_id, "tools/call", params)


class Impatient(Wired):
    def __init__(self, outcome: ModelReply | Exception = FOUND, **options: Any) -> None:
        super().__init__(**{"hand_over": 50, **options})
        self.gateway.enqueue(outcome)
        self.gateway.hold()

    async def reply_after(self, seconds: float, message: dict[str, Any]) -> Any:
        before = len(self.transport.sent)
        self.handle(message)
        await self.clock.wait_for_sleepers()
        await self.clock.advance(seconds)
        replies = await self.transport.wait_for_sent(before + 1)
        return replies[before]


def test_a_hand_over_has_the_shape_of_the_tool() -> None:
    result = handed_over(TOOLS[RESEARCH], "resp_1")
    assert result["structuredContent"] == HANDED_OVER
    assert [json.loads(block["text"]) for block in result["content"]] == [
        {"answer": WORDS, "used_search": False, "citations": []}
    ]
    iris = handed_over(TOOLS["iris"], "resp_1")
    assert iris["structuredContent"] == {"answer": WORDS, "status": "working", "response_id": "resp_1"}
    assert iris["content"] == [{"type": "text", "text": WORDS}]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_hand_over_is_what_the_schema_of_the_tool_promises(tool: Any) -> None:
    schema = tool.described()["outputSchema"]
    structured = handed_over(tool, "resp_1")["structuredContent"]
    Draft202012Validator(schema).validate(structured)
    assert set(structured) <= set(schema["properties"])


@pytest.mark.parametrize(("revision", "meta"), [("2025-06-18", None), ("2026-07-28", ENVELOPE)])
async def test_a_research_without_an_answer_by_then_is_handed_over_and_goes_on(revision: str, meta: Any) -> None:
    wired = Impatient()
    reply = await wired.reply_after(50, tool_call(1, tool=RESEARCH, meta=meta))
    methods.validate_server_result("tools/call", revision, reply["result"])
    assert reply["result"]["structuredContent"] == HANDED_OVER
    assert "isError" not in reply["result"]
    assert wired.gateway.let_go_ids == ["resp_1"]
    wired.handle(cancel(1))
    assert wired.gateway.cancelled_ids == []


async def test_the_answer_comes_with_the_second_call() -> None:
    wired = Impatient()
    await wired.reply_after(50, tool_call(1, tool=RESEARCH))
    wired.handle(fetch(2, " resp_1 "))
    await wired.clock.wait_for_sleepers()
    wired.gateway.release()
    _, reply = await wired.drained()
    answer = reply["result"]["structuredContent"]
    assert answer["answer"].startswith("Because.")
    assert (answer["response_id"], answer["citations"][0]["url"]) == ("resp_1", "https://a.example")
    assert "status" not in answer
    assert len(wired.gateway.calls) == 1


async def test_the_second_call_is_handed_over_again_while_there_is_no_answer() -> None:
    wired = Impatient()
    await wired.reply_after(50, tool_call(1, tool=RESEARCH))
    for number in (2, 3):
        reply = await wired.reply_after(50, fetch(number))
        assert reply["result"]["structuredContent"] == HANDED_OVER
    assert wired.gateway.cancelled_ids == []
    assert wired.gateway.let_go_ids == ["resp_1"]


async def test_a_foreground_call_is_waited_for() -> None:
    wired = Impatient()
    wired.handle(tool_call(1, tool="answer"))
    await wired.clock.wait_for_sleepers()
    await wired.clock.advance(500)
    assert wired.transport.sent == []
    wired.gateway.release()
    assert len(await wired.drained()) == 1


async def test_cancelled_in_time_the_research_is_cancelled_at_the_api() -> None:
    wired = Impatient()
    wired.handle(tool_call(1, tool=RESEARCH))
    await wired.clock.wait_for_sleepers()
    wired.handle(cancel(1))
    assert await wired.drained() == []
    assert wired.gateway.cancelled_ids == ["resp_1"]


async def test_cancelling_the_second_call_leaves_the_research_alone() -> None:
    wired = Impatient()
    await wired.reply_after(50, tool_call(1, tool=RESEARCH))
    wired.handle(fetch(2))
    await wired.clock.wait_for_sleepers()
    wired.handle(cancel(2))
    assert len(await wired.drained()) == 1
    assert wired.gateway.cancelled_ids == []


async def test_answer_result_is_never_a_task() -> None:
    wired = Impatient()
    await wired.reply_after(50, tool_call(1, tool=RESEARCH))
    reply = await wired.reply_after(50, fetch(2, meta=DECLARED))
    assert reply["result"]["structuredContent"] == HANDED_OVER


async def test_progress_is_sent_while_the_second_call_waits_and_not_after_it() -> None:
    wired = Impatient()
    await wired.reply_after(50, tool_call(1, tool=RESEARCH))
    wired.gateway.progress = [Progress("writing")]
    wired.handle(fetch(2, meta={"progressToken": "t"}))
    await wired.clock.wait_for_sleepers(2)
    await wired.clock.advance(1)
    await wired.clock.advance(49)
    await wired.drained()
    await wired.clock.advance(100)
    messages = wired.transport.replies()[1:]
    assert [message.get("method") for message in messages] == [*["notifications/progress"] * (len(messages) - 1), None]
    assert "writing" in [message["params"]["message"] for message in messages[:-1]]


@pytest.mark.parametrize("hand_over", [None, 50])
@pytest.mark.parametrize(
    "outcome",
    [
        ResponseCancelled("It was cancelled at the API."),
        AnswerWithheld("It failed."),
        GatewayRefused("No.", status=403),
    ],
)
async def test_fetching_failed_research_is_a_clear_failure(hand_over: float | None, outcome: Exception) -> None:
    wired = Wired(tools=("answer_result",), hand_over=hand_over)
    wired.gateway.keep("resp_1", outcome)
    reply = await wired.reply_to(fetch(1))
    assert (reply["error"]["code"], reply["error"]["message"]) == (-32001, "answer failed")
    assert reply["error"]["data"]["message"] == str(outcome)
    reply = await wired.reply_to(fetch(2, "resp_unknown"))
    assert reply["error"]["data"]["message"] == "The API has no response resp_unknown."


@pytest.mark.parametrize("hand_over", [None, 50])
async def test_a_wait_as_long_as_one_may_be_ends_with_a_hand_over(hand_over: float | None) -> None:
    wired = Wired(tools=("answer_result",), hand_over=hand_over)
    wired.gateway.keep("resp_1", StillRunning("Too slow.", response_id="resp_1"))
    reply = await wired.reply_to(fetch(1))
    assert reply["result"]["structuredContent"] == HANDED_OVER


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {},
            "Too slow. The research goes on at the API as resp_1. Fetch it later: openai-responses-mcp --fetch resp_1",
        ),
        (
            {"hand_over": 50},
            "Too slow. The research goes on at the API. Call answer_result with response_id resp_1 in a minute.",
        ),
        (
            {"tools": (RESEARCH, "answer_result")},
            "Too slow. The research goes on at the API. Call answer_result with response_id resp_1 in a minute.",
        ),
    ],
)
async def test_a_research_that_takes_longer_than_an_attempt_may_says_how_to_fetch_it(
    options: dict[str, Any], message: str
) -> None:
    wired = Wired(**options)
    wired.gateway.enqueue(StillRunning("Too slow.", response_id="resp_1"))
    reply = await wired.reply_to(tool_call(1, tool=RESEARCH))
    assert reply["error"]["data"]["message"] == message


@pytest.mark.parametrize(
    ("response_id", "reason"),
    [
        (None, "response_id is required"),
        (" ", "response_id must be the response id that a call was answered with"),
        (5, "response_id must be the response id that a call was answered with"),
    ],
)
async def test_a_missing_or_wrong_id_is_refused(response_id: Any, reason: str) -> None:
    reply = await Impatient().reply_to(fetch(1, response_id))
    assert reply["error"]["message"] == "answer_result: invalid arguments"
    assert reply["error"]["data"] == {"reason": reason}


class SlowToStop(FakeGateway):
    """Fails while it is being stopped, as a connection may."""

    async def respond(self, *args: Any, **kwargs: Any) -> ModelReply:
        try:
            return await super().respond(*args, **kwargs)
        finally:
            raise GatewayRefused("too late")


async def test_a_failure_of_the_connection_after_the_hand_over_is_ignored() -> None:
    gateway = SlowToStop()
    gateway.hold()
    wired = Wired(gateway=gateway, hand_over=50)
    wired.handle(tool_call(1, tool=RESEARCH))
    await wired.clock.wait_for_sleepers()
    await wired.clock.advance(50)
    (reply,) = await wired.drained()
    assert reply["result"]["structuredContent"]["status"] == "working"
    assert wired.logger.lines == []
