"""Who answers a question: a person in the client or at the desk, or a program by itself."""

import pytest

from openai_responses_mcp.gate.policy.rules import Policy
from tests.guard.keepers import ENVELOPE, GuardScene, refusal_in

NO = {"guard-approval": {"action": "decline"}}
YES = {"guard-approval": {"action": "accept", "content": {"decision": "allow_tool_for_session"}}}


async def statuses(scene: GuardScene) -> list[str]:
    return [log.decision for log in await scene.stores.logs.query() if log.event == "approval"]


async def test_a_no_faster_than_a_person_reads_is_recorded_as_unasked(scene: GuardScene) -> None:
    scene.reading_seconds = 0.1
    question = await scene.asked_in_client()
    scene.client.enqueue({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert refusal_in(await scene.reply(1)) == (
        "echo: nobody was asked: the client answered by itself, faster than a person could read;"
        " start the guard with --ask desk to decide with openai-responses-mcp approvals"
    )
    assert await statuses(scene) == ["unasked"]
    assert scene.calls_at_server() == []


async def test_the_same_in_the_reply(scene: GuardScene) -> None:
    scene.reading_seconds = 0.1
    asked = (await scene.call(1, _meta=ENVELOPE))["result"]
    again = await scene.call(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=NO)
    assert "nobody was asked" in refusal_in(again)
    assert await statuses(scene) == ["unasked"]


@pytest.mark.parametrize("in_reply", [False, True])
async def test_with_somebody_at_the_desk_the_question_goes_there(scene: GuardScene, in_reply: bool) -> None:
    scene.reading_seconds, scene.is_desk_open = 0.1, True
    scene.declare(elicitation=True)
    if in_reply:
        asked = (await scene.call(1, _meta=ENVELOPE))["result"]
        scene.start(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=NO)
    else:
        scene.start(2)
        question = await scene.question()
        scene.client.enqueue({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    await scene.call(3, "no such tool")  # It came later, and is decided.
    await scene.approvals.submit_decision(await scene.asked(), "approve")
    assert (await scene.reply(2))["result"]["structuredContent"] == {"text": "hi"}
    assert await statuses(scene) == ["approved"]
    assert [one.get("method") for one in scene.client.replies()].count("elicitation/create") == (not in_reply)


async def test_a_yes_faster_than_a_person_reads_counts_once(scene: GuardScene) -> None:
    scene.reading_seconds = 0.1
    asked = (await scene.call(1, _meta=ENVELOPE))["result"]
    again = await scene.call(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=YES)
    assert again["result"]["structuredContent"] == {"text": "hi"}
    assert await scene.stores.standing.list_standing() == []
    [approval] = [log for log in await scene.stores.logs.query() if log.event == "approval"]
    assert approval.comment == "given by the client, faster than a person could read"


async def test_a_client_that_cannot_ask_after_all_is_not_asked_again(scene: GuardScene) -> None:
    question = await scene.asked_in_client()
    error = {"code": -32601, "message": "no such method"}
    scene.client.enqueue({"jsonrpc": "2.0", "id": question["id"], "error": error})
    await scene.call(3, "no such tool")  # It came later, and is decided.
    await scene.approvals.submit_decision(await scene.asked(), "approve")
    assert (await scene.reply(1))["result"]["structuredContent"] == {"text": "hi"}
    scene.start(2)
    await scene.approvals.submit_decision(await scene.asked(), "approve")
    await scene.reply(2)
    assert [one.get("method") for one in scene.client.replies()].count("elicitation/create") == 1
    assert "the client cannot ask (no such method); from now on the desk is asked" in scene.notices.lines


async def test_a_client_that_goes_while_it_is_asked_withdraws_the_question(scene: GuardScene) -> None:
    await scene.asked_in_client()
    approval_id = await scene.asked()
    scene.relay.client.close_all()
    assert refusal_in(await scene.reply(1)) == "echo: the client is gone"
    request = (await scene.approvals.get(approval_id)).request
    assert (request.status, request.comment) == ("withdrawn", "the client is gone")


async def test_a_client_that_has_to_be_asked_and_cannot_be_is_refused() -> None:
    async with GuardScene(Policy(ask="client")) as scene:
        scene.declare(elicitation=False)
        refusal = refusal_in(await scene.call())
        assert refusal == "echo: a person is to be asked in the client, and this client cannot ask"
        assert await scene.approvals.pending() == []
