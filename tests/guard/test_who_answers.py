"""Who answers a question: a person, a program in a person's place, or nobody."""

from typing import Any

import pytest

from openai_responses_mcp.domain.jsonrpc import Request
from openai_responses_mcp.gate.policy.rules import Policy
from openai_responses_mcp.guard.client_ways import ClientWays
from openai_responses_mcp.guard.command_line import UsageError, parse
from tests.guard.keepers import ENVELOPE, GuardScene, refusal_in

NO = {"guard-approval": {"action": "decline"}}
YES = {"guard-approval": {"action": "accept", "content": {"decision": "allow_tool_for_session"}}}


async def reply_to(scene: GuardScene, call_id: int) -> Any:
    return await scene.to_client(lambda message: message.get("id") == call_id and "method" not in message)


async def statuses(scene: GuardScene) -> list[str]:
    return [log.decision for log in await scene.stores.logs.query() if log.event == "approval"]


async def test_a_no_that_no_person_can_have_given_is_nobodys_denial() -> None:
    async with GuardScene() as scene:
        scene.reading_seconds = 0.1
        scene.declare(elicitation=True)
        scene.start(1)
        question = await scene.question()
        scene.client.enqueue({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        refusal = refusal_in(await reply_to(scene, 1))
        assert "nobody was asked" in refusal
        assert "--ask desk" in refusal
        assert await statuses(scene) == ["unasked"]
        assert scene.calls_at_server() == []


async def test_the_same_in_the_reply() -> None:
    async with GuardScene() as scene:
        scene.reading_seconds = 0.1
        asked = (await scene.call(1, _meta=ENVELOPE))["result"]
        again = await scene.call(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=NO)
        assert "nobody was asked" in refusal_in(again)
        assert await statuses(scene) == ["unasked"]


@pytest.mark.parametrize("in_reply", [False, True])
async def test_with_somebody_at_the_desk_the_question_goes_there(in_reply: bool) -> None:
    async with GuardScene() as scene:
        scene.reading_seconds, scene.is_desk_open = 0.1, True
        scene.declare(elicitation=True)
        if in_reply:
            asked = (await scene.call(1, _meta=ENVELOPE))["result"]
            scene.start(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=NO)
        else:
            scene.start(2)
            question = await scene.question()
            scene.client.enqueue({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        await scene.approvals.submit_decision(await scene.asked(), "approve")
        assert (await reply_to(scene, 2))["result"]["structuredContent"] == {"text": "hi"}
        assert await statuses(scene) == ["approved"]


async def test_a_yes_that_no_person_can_have_given_counts_once() -> None:
    async with GuardScene() as scene:
        scene.reading_seconds = 0.1
        asked = (await scene.call(1, _meta=ENVELOPE))["result"]
        again = await scene.call(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=YES)
        assert again["result"]["structuredContent"] == {"text": "hi"}
        assert await scene.stores.standing.list_standing() == []
        [approval] = [log for log in await scene.stores.logs.query() if log.event == "approval"]
        assert "given by the client" in approval.comment


async def test_a_client_that_cannot_ask_after_all_is_not_asked_again() -> None:
    async with GuardScene() as scene:
        scene.declare(elicitation=True)
        scene.start(1)
        question = await scene.question()
        error = {"code": -32601, "message": "no such method"}
        scene.client.enqueue({"jsonrpc": "2.0", "id": question["id"], "error": error})
        await scene.approvals.submit_decision(await scene.asked(), "approve")
        assert (await reply_to(scene, 1))["result"]["structuredContent"] == {"text": "hi"}
        scene.start(2)
        await scene.approvals.submit_decision(await scene.asked(), "approve")
        await reply_to(scene, 2)
        assert [one.get("method") for one in scene.client.replies()].count("elicitation/create") == 1


async def test_a_client_that_has_to_be_asked_and_cannot_be_is_refused() -> None:
    async with GuardScene(Policy(ask="client")) as scene:
        scene.declare(elicitation=False)
        assert "this client cannot ask" in refusal_in(await scene.call())
        assert await scene.approvals.pending() == []


def test_a_client_is_asked_also_in_front_of_an_older_server() -> None:
    ways = ClientWays()
    params: dict[str, Any] = {"capabilities": {"elicitation": {}}}
    ways.note_initialize(Request(1, "initialize", params, {}, b""), {"protocolVersion": "2024-11-05"})
    assert ways.way_for({}) == "elicitation"


def test_where_a_person_is_asked_can_be_said() -> None:
    assert parse(["--ask", "desk", "--", "x"], {}).ask == "desk"
    with pytest.raises(UsageError, match="--ask is one of auto, client, desk"):
        parse(["--ask", "phone", "--", "x"], {})
