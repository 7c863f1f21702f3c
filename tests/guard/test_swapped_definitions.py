"""A definition that no person or rule has let through never runs, whatever the server lists to whom."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.calls import GuardedServer
from openai_responses_mcp.gate.definitions import pin_of
from openai_responses_mcp.gate.policy.rules import Budget, Policy, Rule, Unstable
from openai_responses_mcp.gate.stores import CallStart, StartOutcome
from tests.agents.fakes import within
from tests.fakes import PAUSE_SECONDS
from tests.guard.keepers import GuardScene, entry, refusal_in

ALLOW = Policy(rules=(Rule(1, ("*",), decide="allow"),))
A, B, C = entry("echo"), entry("echo", description="sends it away"), entry("echo", description="something else")
KEY = ("small/echo", "fingerprint")


def hash_of(one: dict[str, Any]) -> str:
    return pin_of(one).partition(" ")[0]


def pinned(scene: GuardScene) -> str:
    return scene.starts.pins[KEY].partition(" ")[0]


async def client_lists(scene: GuardScene, *entries: Any, list_id: str = "list") -> None:
    """The client asks for the list, and is shown this one."""
    lists, scene.server_lists = scene.server_lists, list(entries)
    scene.client.enqueue({"jsonrpc": "2.0", "id": list_id, "method": "tools/list", "params": {}})
    await scene.reply(list_id)
    scene.server_lists = lists


async def test_one_definition_for_the_client_and_another_for_the_guard_is_asked_about() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.declare(elicitation=True)
        scene.server_lists = [A]
        await scene.call(1)
        await client_lists(scene, B)
        scene.start(2)
        question = await scene.question()
        message = question["params"]["message"]
        assert "the client was shown another definition of this tool than the guard" in message
        assert (
            "What changed:\n  shown to the client and seen by the guard:\n"
            '  "description": "sends it away" is now "does echo"\n' in message
        )
        scene.answer(question, "deny")
        await scene.reply(2)
        assert len(scene.calls_at_server()) == 1
        assert pinned(scene) == hash_of(A)


async def test_a_second_look_cannot_make_a_changed_tool_an_unchanged_one() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.declare(elicitation=True)
        scene.server_lists = [A]
        await scene.call(1)
        # The first look after the notice gives B, the next one A again.
        looks = iter([[B], [A]])
        scene.pages = _Pages(looks)
        await scene.list_changed()
        scene.start(2)
        assert "shown to the client and seen by the guard" in (await scene.question())["params"]["message"]
        assert len(scene.calls_at_server()) == 1


class _Pages(dict[str | None, Any]):
    def __init__(self, looks: Any) -> None:
        super().__init__()
        self._looks = looks

    def get(self, cursor: Any, default: Any = None) -> Any:
        return {"tools": next(self._looks, default["tools"])}


async def test_a_pin_that_is_set_between_decision_and_start_is_decided_on_again() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.declare(elicitation=True)
        scene.server_lists = [B]
        known = scene.starts.known

        async def known_then_pinned(server: GuardedServer, tool: str) -> Any:
            found = await known(server, tool)
            scene.starts.pins.setdefault(KEY, pin_of(A))
            return found

        scene.starts.known = known_then_pinned  # type: ignore[method-assign]
        scene.start(1)
        scene.answer(await scene.question(), "deny")
        await scene.reply(1)
        assert scene.calls_at_server() == []
        assert pinned(scene) == hash_of(A)


async def test_parallel_calls_with_a_budget_never_pin_what_was_refused() -> None:
    async with GuardScene(replace(ALLOW, budget=Budget(50, "session"))) as scene:
        scene.declare(elicitation=True)
        scene.server_lists = [A]
        await scene.call(0)
        for number in range(1, 6):
            scene.start(number)
        scene.server_lists = [B]
        scene.server.enqueue({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        for number in range(6, 11):
            scene.start(number)
        answered: set[str] = set()
        replies = 0
        while replies < 11:
            sent = await scene.client.wait_for_sent(1)
            for message in sent:
                if message.get("method") == "elicitation/create" and message["id"] not in answered:
                    answered.add(message["id"])
                    scene.answer(message, "deny")
            replies = len({message["id"] for message in sent if isinstance(message.get("id"), int)})
            await asyncio.sleep(PAUSE_SECONDS)
        assert answered
        assert pinned(scene) == hash_of(A)


async def test_the_same_name_with_another_command_asks_once_also_where_a_rule_allows() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.declare(elicitation=True)
        scene.starts.servers[("small", "before")] = "npx -y small"
        scene.starts.pins[("small/echo", "before")] = pin_of(A)
        scene.starts.pins[KEY] = pin_of(B)
        scene.start(1)
        question = await scene.question()
        message = question["params"]["message"]
        assert "another command runs under the name of this server than before" in message
        assert (
            'What changed:\n  command: "npx -y small" is now "python small.py"\n'
            '  "description": "sends it away" is now "does echo"\n' in message
        )
        scene.answer(question, "allow_once")
        await scene.to_client(lambda message: message.get("id") == 1 and "result" in message)
        assert "structuredContent" in (await scene.call(2))["result"]
        assert "structuredContent" in (await scene.call(3, "other"))["result"]
        assert scene.starts.pins[("small/echo", "before")] == pin_of(A)


async def test_for_good_for_one_command_is_not_for_another(scene: GuardScene) -> None:
    scene.answer(await scene.asked_in_client(), "allow_call_for_good")
    await scene.to_client(lambda message: message.get("id") == 1 and "result" in message)
    [standing] = await scene.stores.standing.list_standing()
    assert standing.origin == "fingerprint"
    await scene.stores.standing.end(standing.standing_id, "2026-01-01T00:00:00+00:00", "test")
    await scene.stores.standing.create(replace(standing, standing_id="sta_2", origin="another"))
    scene.start(2)
    await scene.until(lambda: _asked_twice(scene))
    assert len(await scene.stores.standing.list_standing()) == 1


async def _asked_twice(scene: GuardScene) -> bool:
    return len([one for one in scene.client.replies() if one.get("method") == "elicitation/create"]) == 2


async def test_a_policy_that_becomes_deny_while_a_person_is_asked_stops_the_call(scene: GuardScene) -> None:
    question = await scene.asked_in_client()
    scene.source.policy = Policy(rules=(Rule(1, ("*",), decide="deny", reason="not any more"),))
    scene.answer(question, "allow_once")
    reply = await scene.to_client(lambda message: message.get("id") == 1 and "result" in message)
    assert "not any more" in refusal_in(reply)
    assert scene.calls_at_server() == []
    assert ("call_1", "decision:2", "deny") in await scene.events()


async def test_a_tool_that_changes_while_the_start_of_a_call_is_written_is_not_sent() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.logs.waits_at = lambda log: log.event == "started"
        scene.start(1)
        await within(scene.logs.is_reached.wait())
        scene.server_lists = [B]
        await scene.list_changed()
        scene.logs.goes_on.set()
        reason = "the server changed the tool before it was sent; call again"
        assert refusal_in(await scene.reply(1)) == f"echo: {reason}"
        assert scene.calls_at_server() == []
        assert (await scene.events())[-1] == ("call_1", "outcome", "failed")
        assert (await scene.stores.logs.query())[-1].reason == reason


async def test_ids_of_the_guard_have_no_fixed_prefix() -> None:
    async with GuardScene(ALLOW) as scene:
        await scene.call(1)
        [listing] = [message for message in scene.server.replies() if message["method"] == "tools/list"]
        assert "guard" not in listing["id"]


async def test_a_changed_definition_ends_what_was_allowed_for_the_old_one_at_once(scene: GuardScene) -> None:
    scene.declare(elicitation=True)
    scene.server_lists = [A]
    scene.start(1)
    scene.answer(await scene.question(), "allow_tool_for_good")
    await scene.reply(1)
    [standing] = await scene.stores.standing.list_standing()
    # One for another command of the same name is not about this server.
    await scene.stores.standing.create(replace(standing, standing_id="sta_other", origin="another"))
    scene.server_lists = [B]
    await scene.list_changed()
    scene.start(2)
    await scene.asked()
    # While somebody is asked: nothing is listed any more that no longer holds.
    assert [one.standing_id for one in await scene.standing.list()] == ["sta_other"]
    ended = await scene.stores.standing.get(standing.standing_id)
    assert ended is not None
    assert ended.ended_because == "definition changed"


def with_default(*fields: str, **changes: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"fields": {"type": "string", "default": ",".join(fields)}}}
    return entry("echo", inputSchema=schema, **changes)


async def test_a_default_in_random_order_does_not_count_where_the_file_says_so_and_nothing_else_is_hidden_by_it() -> (
    None
):
    parts = (("inputSchema", "properties", "fields", "default"),)
    policy = replace(ALLOW, unstable=(Unstable(("small/echo",), parts),))
    async with GuardScene(policy) as scene:
        scene.server_lists = [with_default("a", "b")]
        await scene.call(1)
        scene.server_lists = [with_default("b", "a")]
        await scene.list_changed()
        await scene.call(2)
        assert len(scene.calls_at_server()) == 2
        scene.server_lists = [with_default("b", "a", description="does another thing")]
        await scene.list_changed()
        scene.start(3)
        await scene.asked()
        assert len(scene.calls_at_server()) == 2
    async with GuardScene(ALLOW, beside=scene) as other:
        # Without the key the whole definition counts.
        other.server_lists = [with_default("c")]
        other.start(1)
        await other.asked()
        assert other.calls_at_server() == []


# ---------------------------------------------------------------------------------------------------------------------
# What changes between the decision and the start


def before_the_start(scene: GuardScene, happens: Callable[[], Awaitable[None]]) -> None:
    """Something happens after the guard has decided and before it writes that the call starts."""
    start = scene.starts.start

    async def started_later(before: Sequence[ExecutionLog], starts: Sequence[CallStart]) -> list[StartOutcome]:
        await happens()
        return await start(before, starts)

    scene.starts.start = started_later  # type: ignore[method-assign]


async def test_a_call_is_refused_in_the_end_if_its_pin_keeps_changing() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.server_lists = [A]

        known = scene.starts.known

        async def known_for_a_moment(server: GuardedServer, tool: str) -> Any:
            """Other guards pin the other definition after each look, and take it back before the next."""
            scene.starts.pins.pop(KEY, None)
            found = await known(server, tool)
            scene.starts.pins[KEY] = pin_of(B)
            return found

        scene.starts.known = known_for_a_moment  # type: ignore[method-assign]
        refusal = refusal_in(await scene.call(1))
        assert refusal == "echo: its definition or its budget keeps changing; call again"
        assert scene.calls_at_server() == []
        decisions = [event for _, event, _ in await scene.events() if event.startswith("decision")]
        assert decisions == ["decision", *(f"decision:{attempt}" for attempt in range(2, 11))]


async def test_a_tool_that_is_gone_when_it_is_decided_on_again_does_not_run() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.server_lists = [A]

        async def pinned_and_gone() -> None:
            if scene.server_lists:
                scene.starts.pins[KEY], scene.server_lists = pin_of(B), []
                await scene.list_changed()

        before_the_start(scene, pinned_and_gone)
        assert refusal_in(await scene.call(1)) == "echo: it cannot be run any more: echo"
        assert scene.calls_at_server() == []


async def test_a_second_look_that_shows_what_a_rule_denies_is_not_asked_about() -> None:
    policy = Policy(rules=(Rule(1, ("*",), claims="destroys", decide="deny", reason="it destroys"),))
    async with GuardScene(policy) as scene:
        scene.declare(elicitation=True)
        scene.pages = _Pages(iter([[entry("echo", annotations={"destructiveHint": False})], [A]]))
        assert "it destroys" in refusal_in(await scene.call(1))
        assert scene.calls_at_server() == []
