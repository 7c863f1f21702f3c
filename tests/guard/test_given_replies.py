"""What the client is given of replies under `hide_denied` and `results`, and what the log says about it."""

import base64
import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from openai_responses_mcp.gate.policy.rules import Policy, ResultLimits, Rule
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.guard.messages import JsonObject
from tests.guard.keepers import ENVELOPE, GuardScene, entry, refusal_in

TOKEN = "ghp_" + "a1B2" * 9
ALLOW = (Rule(9, ("*",), decide="allow"),)
HIDING = Policy(rules=ALLOW, results=ResultLimits("hide"))
DENIED = Rule(1, ("small/echo",), decide="deny")
READS = {"readOnlyHint": True}


async def listed(scene: GuardScene, list_id: str = "list", **params: Any) -> list[str]:
    scene.client.enqueue({"jsonrpc": "2.0", "id": list_id, "method": "tools/list", "params": params})
    reply = await scene.reply(list_id)
    return [tool["name"] for tool in reply["result"]["tools"]]


class Answering(GuardScene):
    """The server answers each call with `answer`."""

    answer: Any = None

    def result_of(self, message: dict[str, Any]) -> Any:
        return self.answer


async def answered(answer: Any, policy: Policy = HIDING, **others: Any) -> tuple[Any, Answering]:
    """The reply that the client gets, and the scene with its log."""
    scene = Answering(policy)
    scene.answer = answer
    async with scene:
        reply = await scene.call(1, **others)
        await scene.events()
    return reply, scene


async def outcome_of(scene: GuardScene) -> Any:
    return next(log for log in await scene.stores.logs.query() if log.event == "outcome")


# ---------------------------------------------------------------------------------------------------------------------
# hide_denied


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        ((DENIED,), ["other"]),
        ((Rule(1, ("small/*",), decide="deny", claims="writes"),), ["other"]),
        ((Rule(1, ("*",), decide="deny"),), []),
        # A rule before it may let some calls through, so the tool stays.
        ((Rule(1, ("small/echo",), decide="ask"), Rule(2, ("small/echo",), decide="deny")), ["echo", "other"]),
        ((Rule(1, ("small/echo",), risk=5),), ["echo", "other"]),
    ],
)
async def test_tools_that_are_denied_whatever_their_arguments_are_not_listed(
    rules: tuple[Rule, ...], shown: list[str]
) -> None:
    policy = Policy(rules=rules, hide_denied=True)
    tools = [entry("echo"), entry("other", annotations=READS)]
    async with GuardScene(policy) as scene:
        scene.server_lists = tools
        assert await listed(scene) == shown
    async with GuardScene(replace(policy, hide_denied=False)) as scene:
        scene.server_lists = tools
        assert await listed(scene) == ["echo", "other"]
    async with GuardScene(policy, observes=True) as scene:
        scene.server_lists = tools
        assert await listed(scene) == ["echo", "other"]


async def test_a_hidden_tool_is_denied_when_it_is_called_and_was_not_shown_to_the_client() -> None:
    async with GuardScene(Policy(rules=(DENIED,), hide_denied=True)) as scene:
        await listed(scene)
        assert scene.relay.listings.newest("echo") == {}
        assert "policy rule 1" in refusal_in(await scene.call(1))


async def test_a_list_without_hidden_tools_and_what_is_no_list_pass_as_they_came() -> None:
    async with GuardScene(Policy(hide_denied=True)) as scene:
        scene.server_lists = [entry("echo"), "no tool", {"name": 5}]
        scene.client.enqueue({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
        reply = await scene.reply(1)
        assert reply["result"]["tools"] == scene.server_lists
        scene.pages = {None: {"tools": 5}}
        scene.client.enqueue({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}})
        assert (await scene.reply(2))["result"] == {"tools": 5}


async def test_tools_are_hidden_on_every_page() -> None:
    async with GuardScene(Policy(rules=(DENIED,), hide_denied=True)) as scene:
        scene.pages = {
            None: {"tools": [entry("other")], "nextCursor": "2"},
            "2": {"tools": [entry("echo"), entry("last")]},
        }
        assert await listed(scene, "first") == ["other"]
        assert await listed(scene, "second", cursor="2") == ["last"]
        # The first page is still known after the second.
        initialize(scene, declares=True)
        await scene.reply("init")
        scene.source.policy = Policy(rules=(DENIED, Rule(2, ("small/other",), decide="deny")), hide_denied=True)
        scene.relay.tell_of_other_tools()
        assert len(change_notifications(scene)) == 1


def change_notifications(scene: GuardScene) -> list[Any]:
    return [
        message for message in scene.client.replies() if message.get("method") == "notifications/tools/list_changed"
    ]


def initialize(scene: GuardScene, *, declares: bool) -> None:
    scene.client.enqueue({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {"capabilities": {}}})
    capabilities = {"tools": {"listChanged": declares}}
    result = {"protocolVersion": "2025-06-18", "capabilities": capabilities}
    scene.server.enqueue({"jsonrpc": "2.0", "id": "init", "result": result})


@pytest.mark.parametrize("declares", [True, False])
async def test_the_client_is_notified_of_other_hidden_tools_if_the_server_declared_it(declares: bool) -> None:
    async with GuardScene(Policy(rules=(DENIED,), hide_denied=True)) as scene:
        initialize(scene, declares=declares)
        await listed(scene)
        scene.relay.tell_of_other_tools()
        assert change_notifications(scene) == []
        scene.source.policy = Policy(hide_denied=True)
        scene.relay.tell_of_other_tools()
        scene.relay.tell_of_other_tools()
        assert len(change_notifications(scene)) == declares
        assert await listed(scene, "again") == ["echo", "other"]


async def test_in_the_newer_era_only_subscribers_are_notified_of_hidden_tools() -> None:
    async with GuardScene(Policy(hide_denied=True)) as scene:
        for number, wanted in enumerate([{"toolsListChanged": True}, {"promptsListChanged": True}]):
            params = {"notifications": wanted, "_meta": ENVELOPE}
            scene.client.enqueue({"jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": params})
        await listed(scene)
        scene.source.policy = Policy(rules=(DENIED,), hide_denied=True)
        scene.relay.tell_of_other_tools()
        assert [sent["params"] for sent in change_notifications(scene)] == [
            {"_meta": {"io.modelcontextprotocol/subscriptionId": 0}}
        ]


# ---------------------------------------------------------------------------------------------------------------------
# results


async def test_secrets_in_a_result_become_labels_and_the_log_says_how_many() -> None:
    blob = base64.b64encode(f"token: {TOKEN}".encode()).decode()
    image = {"type": "image", "data": "AAECAwQ=", "mimeType": "image/png"}
    answer = {
        "content": [
            {"type": "text", "text": f"the key is planted-secret-value and {TOKEN}"},
            {"type": "resource", "resource": {"uri": "file:///a", "blob": blob}},
            image,
            {"type": "image", "data": base64.encodebytes(f"token: {TOKEN}".encode()).decode()},
        ],
        "structuredContent": {TOKEN: 1, "list": [TOKEN, 5, None]},
    }
    reply, scene = await answered(answer)
    assert TOKEN not in json.dumps(reply)
    assert "planted-secret-value" not in json.dumps(reply)
    content = reply["result"]["content"]
    assert content[0]["text"] == "the key is ‹MY_SECRET_KEY› and ‹ghp_…, 40 characters›"
    assert base64.b64decode(content[1]["resource"]["blob"]).decode() == "token: ‹ghp_…, 40 characters›"
    assert content[2] == image
    assert base64.b64decode(content[3]["data"]).decode() == "token: ‹ghp_…, 40 characters›"
    assert reply["result"]["structuredContent"] == {
        "‹ghp_…, 40 characters›": 1,
        "list": ["‹ghp_…, 40 characters›", 5, None],
    }
    outcome = await outcome_of(scene)
    assert outcome.decision == "completed"
    assert outcome.reasons == (Reason("result", "allow", {"hidden": 6}),)
    assert outcome.reason == "secrets in the result that were hidden from the client: 6"


async def test_results_pass_as_they_came_unless_the_file_says_otherwise() -> None:
    answer = {"content": [{"type": "text", "text": TOKEN}]}
    for policy in (Policy(rules=ALLOW), Policy(rules=ALLOW, results=ResultLimits("pass", 1_000))):
        reply, scene = await answered(answer, policy)
        assert reply["result"] == answer
        assert (await outcome_of(scene)).reasons == ()


async def test_data_that_is_no_base64_text_is_searched_unchanged() -> None:
    utf_16 = base64.b64encode(b"\xff\xfe" + "x".encode("utf-16-le")).decode()
    reply, _ = await answered({"content": [{"data": TOKEN}, {"data": utf_16}, {"blob": "not base64 at all"}]})
    assert [next(iter(block.values())) for block in reply["result"]["content"]] == [
        "‹ghp_…, 40 characters›",
        utf_16,
        "not base64 at all",
    ]


async def test_a_result_that_is_no_object_is_searched_too() -> None:
    label = "‹ghp_…, 40 characters›"
    for result, shown in (([TOKEN], [label]), (TOKEN, label)):
        reply, _ = await answered(result)
        assert reply == {"jsonrpc": "2.0", "id": 1, "result": shown}


async def test_two_secret_keys_stay_two_keys() -> None:
    other = TOKEN[:-1] + "9"
    reply, _ = await answered({"content": [], "structuredContent": {TOKEN: 1, other: 2}})
    label = "‹ghp_…, 40 characters›"
    assert reply["result"]["structuredContent"] == {label: 1, f"{label}'": 2}


async def test_fields_that_the_schemas_name_after_a_secret_are_hidden_wherever_their_text_stands() -> None:
    scene = Answering(HIDING)
    user = {"type": "object", "properties": {"password": {"type": "string"}, "pin": {"type": "string"}}}
    output = {"type": "object", "properties": {"users": {"type": "array", "items": user}}}
    scene.server_lists = [entry("echo", outputSchema=output)]
    users = [{"password": 'née "word" 1', "pin": "1"}, {"password": "short"}]
    texts = [json.dumps(users), json.dumps(users, ensure_ascii=False), "old-word is not short"]
    scene.answer = {
        "content": [{"type": "text", "text": text} for text in texts],
        "structuredContent": {"users": users},
    }
    async with scene:
        reply = await scene.call(1, arguments={"password": "old-word"})
        await scene.events()
    hidden = [{"password": "‹password, 12 characters›", "pin": "1"}, {"password": "‹password, 5 characters›"}]
    assert reply["result"]["structuredContent"] == {"users": hidden}
    # A word that is too short is hidden in its own field only.
    text = '[{"password": "‹password, 12 characters›", "pin": "1"}, {"password": "short"}]'
    assert [block["text"] for block in reply["result"]["content"]] == [
        text,
        text,
        "‹password, 8 characters› is not short",
    ]
    assert (await outcome_of(scene)).reasons[0].about == {"hidden": 5}


async def test_an_error_reply_is_searched_too() -> None:
    async with GuardScene(HIDING) as scene:
        scene.start(1, "hang")
        scene.server_lists = [entry("hang")]
        await scene.until(lambda: _sent(scene))
        scene.server.enqueue({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": f"no {TOKEN}"}})
        reply = await scene.reply(1)
        await scene.events()
        assert reply["error"] == {"code": -1, "message": "no ‹ghp_…, 40 characters›"}
        assert (await outcome_of(scene)).reasons[0].about == {"hidden": 1}


async def _sent(scene: GuardScene) -> bool:
    return bool(scene.calls_at_server())


async def test_values_that_go_back_to_the_server_are_not_masked() -> None:
    state = "ghp_" + "c3D4" * 9
    question = {"resultType": "input_required", "requestState": state, "inputRequests": {"a": {"message": TOKEN}}}
    reply, _ = await answered(question)
    assert reply["result"]["requestState"] == state
    assert TOKEN not in json.dumps(reply)
    task = {"task": {"taskId": state, "status": "working", "statusMessage": TOKEN}}
    reply, scene = await answered(task)
    assert reply["result"] == {
        "task": {"taskId": state, "status": "working", "statusMessage": "‹ghp_…, 40 characters›"}
    }
    assert (await outcome_of(scene)).reasons[0].about == {"hidden": 1}


@pytest.mark.parametrize("answer", [{"task": {"taskId": "t1"}}, {"resultType": "task", "taskId": "t1"}])
async def test_the_result_of_a_task_is_searched_and_recorded_once(answer: Any) -> None:
    scene = Answering(HIDING)
    scene.answer = answer
    async with scene:
        await scene.call(1, task={})
        for number in (2, 3):
            params = {"taskId": "t1"}
            scene.client.enqueue({"jsonrpc": "2.0", "id": number, "method": "tasks/result", "params": params})
            content = [{"type": "text", "text": TOKEN}]
            await scene.until(partial(_has_reached, scene, number))
            scene.server.enqueue({"jsonrpc": "2.0", "id": number, "result": {"content": content}})
        reply = await scene.reply(3)
        assert TOKEN not in json.dumps(scene.client.replies())
        assert reply["result"]["content"][0]["text"] == "‹ghp_…, 40 characters›"
        await scene.events()
    [log] = [log for log in await scene.stores.logs.query() if log.event == "result"]
    assert (log.tool_call_id, log.decision) == ("call_1", "completed")
    assert log.reason == "secrets in the result that were hidden from the client: 1"


async def _has_reached(scene: GuardScene, request_id: int) -> bool:
    return any(message.get("id") == request_id for message in scene.server.replies())


async def test_only_so_many_tasks_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai_responses_mcp.guard.call_keeper._MOST_TASKS", 1)
    scene = Answering(HIDING)
    async with scene:
        for number in (1, 2):
            scene.answer = {"task": {"taskId": f"t{number}"}}
            await scene.call(number, task={})
        assert list(scene.keeper._of_tasks) == ["t2"]


async def test_a_result_over_the_limit_is_replaced_by_one_that_says_size_and_limit() -> None:
    answer = {"content": [{"type": "text", "text": "é" * 100 + "\ud800"}]}
    size = len('{"content":[{"type":"text","text":""}]}') + 2 * 100 + 3
    limited = Policy(rules=ALLOW, results=ResultLimits(max_bytes=size - 1))
    reply, scene = await answered(answer, limited)
    assert reply["result"] == {
        "content": [
            {"type": "text", "text": f"The guard withheld the result: it has {size} bytes, and the limit is {size - 1}"}
        ],
        "isError": True,
    }
    outcome = await outcome_of(scene)
    assert outcome.decision == "completed"
    assert outcome.reasons == (Reason("result", "deny", {"bytes": size, "limit": size - 1}),)
    # Written with escapes it is longer on the wire, and not longer as a result.
    reply, _ = await answered(answer, replace(limited, results=ResultLimits(max_bytes=size)))
    assert reply["result"] == answer


async def test_a_long_result_in_the_newer_era_and_of_a_task_have_the_forms_that_are_expected() -> None:
    limited = Policy(rules=ALLOW, results=ResultLimits(max_bytes=10))
    reply, _ = await answered({"content": []}, limited, _meta=ENVELOPE)
    assert reply["result"]["resultType"] == "complete"
    reply, scene = await answered({"content": []}, limited, task={})
    text = "The guard withheld the result: it has 14 bytes, and the limit is 10"
    error = {"code": -32603, "message": text}
    assert reply == {"jsonrpc": "2.0", "id": 1, "error": error}
    assert scene.client.error_codes == [-32603]
    scene = Answering(limited)
    async with scene:
        scene.client.enqueue({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "t1"}})
        await scene.until(partial(_has_reached, scene, 1))
        scene.server.enqueue({"jsonrpc": "2.0", "id": 1, "result": {"status": 1234}})
        text = "The guard withheld the result: it has 15 bytes, and the limit is 10"
        assert (await scene.reply(1))["error"] == {"code": -32603, "message": text}


async def test_a_result_that_cannot_be_searched_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai_responses_mcp.gate.secrets.masking.MOST_STEPS", 50)
    scene = Answering(HIDING)
    output: JsonObject = {"properties": {f"name {number}": {} for number in range(60)}}
    scene.server_lists = [entry("echo", outputSchema=output)]
    scene.answer = {"content": [], "structuredContent": {"password": "x"}}
    async with scene:
        reply = await scene.call(1)
        await scene.events()
    text = reply["result"]["content"][0]["text"]
    assert text.startswith("The guard withheld the result, because it could not be searched: AGENTS-E-")
    facts = {"code": "AGENTS-E-AGENT-CAPABILITY-RESOLVE", "message": text}
    assert (await outcome_of(scene)).reasons == (Reason("failure", "deny", facts),)


async def test_a_result_that_is_nested_too_deep_to_be_searched_is_withheld() -> None:
    deep: JsonObject = {}
    for _ in range(450):
        deep = {"a": [deep]}
    reply, scene = await answered({"content": [], "structuredContent": deep})
    assert "could not be searched" in reply["result"]["content"][0]["text"]
    assert (await outcome_of(scene)).reasons[0].about["code"] == "AGENTS-E-GATE-EVAL"


@pytest.mark.parametrize("levels", [700, 850])
async def test_no_depth_of_a_reply_ends_the_relay(levels: int) -> None:
    deep: Any = 1
    for _ in range(levels):
        deep = [deep]
    policy = Policy(rules=(DENIED, *ALLOW), hide_denied=True, results=ResultLimits("hide", 10))
    scene = Answering(policy)
    scene.server_lists = [entry("echo"), entry("other", _meta=deep)]
    scene.answer = {"content": [], "deep": deep}
    async with scene:
        scene.client.enqueue({"jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": {}})
        await scene.reply("list")
        assert "levels deep" in str(await scene.call(1, "other"))
        scene.server_lists = [entry("other")]
        await scene.list_changed()
        assert "too deep to be compared" in str(await scene.call("seen otherwise", "other"))
        await listed(scene, "again")
        assert "the limit is 10" in str(await scene.call(2, "other"))
        scene.answer = {}
        assert (await scene.call(3, "other"))["result"] == {}


async def test_a_later_call_with_such_a_label_is_refused() -> None:
    cases: list[tuple[str, bool]] = [
        ("‹MY_SECRET_KEY›", True),
        ("use ‹ghp_…, 40 characters› here", True),
        ("‹password in DATABASE_URL›", True),
        ("‹Guten Tag›, said he", False),
    ]
    for text, is_refused in cases:
        async with GuardScene(HIDING) as scene:
            reply = await scene.call(1, arguments={"list": [{"text": text}]})
            if is_refused:
                assert "hold a label that stands in the place of a secret" in refusal_in(reply)
                assert not scene.calls_at_server()
            else:
                assert scene.calls_at_server()
        async with GuardScene(Policy(rules=ALLOW)) as scene:
            await scene.call(1, arguments={"text": text})
            assert scene.calls_at_server()
