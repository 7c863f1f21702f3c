"""Every call is decided, and passed on, refused or asked about."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.gate.approvals.standing import StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.audit.verifying import contradictions
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.clock import LEASE_SECONDS, Presence, timestamp
from openai_responses_mcp.gate.errors import LONGEST_ID
from openai_responses_mcp.gate.policy.rules import Budget, OneOf, Policy, PolicyProfile, Rule, When
from openai_responses_mcp.guard import definitions, questions
from openai_responses_mcp.guard.questions import ContinuedCalls, Underway
from tests.agents.fakes import within
from tests.guard.keepers import ENVELOPE, GuardScene, entry, refusal_in

ALLOW = Policy(rules=(Rule(1, ("*",), decide="allow"),))
YES = {"guard-approval": {"action": "accept", "content": {"decision": "allow_once"}}}
NO = {"guard-approval": {"action": "decline"}}


async def test_a_call_that_the_profile_lets_run_passes_byte_for_byte() -> None:
    async with GuardScene(profile="fast") as scene:
        body = b'{ "jsonrpc":"2.0","id":1, "method":"tools/call","params":{"name":"echo","arguments":{"text":"\xc3\xa9"}},"x":1}'
        scene.client.enqueue(body)
        await scene.reply(1)
        assert body in scene.server.sent
        assert await scene.events() == [
            ("call_1", "decision", "allow"),
            ("call_1", "started", "started"),
            ("call_1", "outcome", "completed"),
        ]


async def test_a_call_that_the_profile_refuses_asks_no_one() -> None:
    async with GuardScene(profile="strict") as scene:
        scene.declare(elicitation=True)
        assert "outside the scopes of the profile strict" in refusal_in(await scene.call())
        assert await scene.approvals.pending() == []
        assert scene.calls_at_server() == []
        assert await scene.events() == [("call_1", "decision", "deny")]


async def test_a_profile_that_another_process_sets_counts(scene: GuardScene) -> None:
    await scene.stores.policies.set_profile(PolicyProfile("balanced", 1, 3, ("mcp:*",)))
    assert refusal_in(await scene.call()) == "echo: risk 3 is refused by the profile balanced"


NO_NAME = f"Invalid params: name must have 1 to {LONGEST_ID} printable characters"


async def test_a_call_that_makes_no_sense_is_an_error() -> None:
    cases: list[tuple[Any, Any, str]] = [
        *((name, {}, NO_NAME) for name in (7, "", "a\nb", "x" * (LONGEST_ID + 1))),
        ("echo", [1], "Invalid params: arguments must be an object"),
        *((name, {}, f"Unknown tool: {name}") for name in ("x", "x" * LONGEST_ID)),
    ]
    for name, arguments, problem in cases:
        async with GuardScene(profile="fast") as scene:
            assert (await scene.call(1, name, arguments))["error"] == {"code": -32602, "message": problem}
            assert scene.calls_at_server() == []


async def test_argument_names_in_another_case_are_refused_unless_the_schema_has_them() -> None:
    async with GuardScene(profile="fast") as scene:
        properties: dict[str, Any] = {"x": {}, "X": {}}
        scene.server_lists = [entry("echo"), entry("both", inputSchema={"properties": properties})]
        assert "could be taken for" in refusal_in(await scene.call(1, "echo", {"Text": "x"}))
        assert scene.calls_at_server() == []
        assert "structuredContent" in (await scene.call(2, "both", {"x": 1, "X": 2}))["result"]


async def test_a_tool_that_is_listed_twice_is_refused() -> None:
    async with GuardScene(profile="fast") as scene:
        scene.server_lists = [entry("echo"), entry("echo", description="another")]
        assert "lists echo twice" in refusal_in(await scene.call())
        assert scene.calls_at_server() == []
        await scene.events()
        assert [log.arguments for log in await scene.stores.logs.query()] == [{"text": "hi"}]


@pytest.mark.parametrize("schema", [None, {"type": "string"}, {"properties": 7, "$ref": "https://example.com/other"}])
async def test_no_schema_makes_a_tool_unusable(schema: Any) -> None:
    async with GuardScene(ALLOW) as scene:
        scene.server_lists = [entry("echo", inputSchema=schema)]
        assert (await scene.call())["result"]["structuredContent"] == {"text": "hi"}


@pytest.mark.parametrize(
    ("page", "reason", "pages"),
    [
        ({"error": {"code": -1, "message": "é" * 300}}, f': it does not list its tools ("{"é" * 200}")', 1),
        ({"tools": "none"}, "answers tools/list with something else", 1),
        ({"tools": [], "nextCursor": "on"}, "lists more than 1000 tools; let it offer fewer", 100),
        (
            {"tools": [entry(f"t{n}") for n in range(500)], "nextCursor": "on"},
            "lists more than 1000 tools; let it offer fewer",
            3,
        ),
    ],
)
async def test_a_list_that_cannot_be_had_refuses_the_call(page: Any, reason: str, pages: int) -> None:
    async with GuardScene(profile="fast") as scene:
        scene.pages = {None: page, "on": page}
        assert refusal_in(await scene.call()).endswith(reason)
        assert len(scene.server.replies()) == pages


async def test_calls_at_once_look_the_list_up_once_and_find_a_tool_on_a_later_page() -> None:
    async with GuardScene(profile="fast") as scene:
        scene.pages = {None: {"tools": [entry("a")], "nextCursor": "2"}, "2": {"tools": [entry("echo")]}}
        for reply in await asyncio.gather(*(scene.call(number) for number in range(5))):
            assert reply["result"]["structuredContent"] == {"text": "hi"}
        assert [message["method"] for message in scene.server.replies()].count("tools/list") == 2


async def test_a_look_up_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "LOOK_UP_SECONDS", 0.01)
    async with GuardScene(profile="fast") as scene:
        scene._readers[2].cancel()
        assert refusal_in(await scene.call()).endswith(": it did not list its tools within 0.01 s")


async def test_without_a_record_nothing_runs() -> None:
    async with GuardScene(profile="fast") as scene:
        scene.logs.breaks_at = lambda log: log.event == "started"
        assert refusal_in(await scene.call()) == "echo: it cannot be recorded (broken on purpose)"
        assert scene.calls_at_server() == []


async def test_secrets_are_shown_as_what_they_are_and_sent_as_they_are() -> None:
    arguments = {"text": "planted-secret-value", "password": "hunter22"}
    async with GuardScene() as scene:
        question = await scene.asked_in_client(1, "echo", arguments)
        assert "planted-secret-value" not in json.dumps(question)
        assert "hunter22" not in json.dumps(question)
        scene.answer(question, "allow_once")
        reply = await scene.reply(1)
        assert reply["result"].get("structuredContent") == arguments, reply
        await scene.keeper.settle()
        kept = str([*await scene.stores.logs.query()])
        assert "planted-secret-value" not in kept
        assert "hunter22" not in kept


async def test_a_failure_of_the_tool_is_its_outcome() -> None:
    class Failing(GuardScene):
        def result_of(self, message: dict[str, Any]) -> Any:
            return {"content": [{"type": "text", "text": "no"}, 7, {}, {"text": "x" * 600}], "isError": True}

    async with Failing(profile="fast") as scene:
        await scene.call()
        assert (await scene.events())[-1] == ("call_1", "outcome", "failed")
        assert (await scene.stores.logs.query())[-1].reason == f"no  {'x' * 496}"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [({"error": {"code": -1, "message": "no"}}, "no"), ({"error": {"code": -1}}, ""), (None, "over")],
)
async def test_an_error_and_an_end_without_an_answer_are_outcomes_too(answer: Any, reason: str) -> None:
    async with GuardScene(profile="fast") as scene:
        scene.server_lists = [entry("hang")]
        scene.start(1, "hang")
        await scene.server.wait_for_sent(2)
        if answer:
            scene.server.enqueue({"jsonrpc": "2.0", "id": 1, **answer})
            await scene.reply(1)
    assert (await scene.events())[-1] == ("call_1", "outcome", "failed")
    assert (await scene.stores.logs.query())[-1].reason == reason


async def test_a_server_that_ends_while_its_list_is_asked_for_is_a_refusal(scene: GuardScene) -> None:
    scene.relay.server.close_all()
    assert refusal_in(await scene.call()).endswith(": it has ended")


# ---------------------------------------------------------------------------------------------------------------------
# Observing


async def test_observing_passes_what_cannot_be_decided_too() -> None:
    async with GuardScene(observes=True) as scene:
        scene.server_lists = [entry("echo"), entry("echo", description="another")]
        assert (await scene.call(1))["result"]["structuredContent"] == {"text": "hi"}
        assert (await scene.call(2, "never listed"))["result"]["structuredContent"] == {"text": "hi"}
        assert await scene.events() == [
            ("call_1", "observed", "deny"),
            ("call_1", "decision", "allow"),
            ("call_1", "started", "started"),
            ("call_1", "outcome", "completed"),
        ]


async def test_observing_goes_on_when_calls_cannot_be_counted_or_recorded() -> None:
    async with GuardScene(replace(ALLOW, budget=Budget(1, "session")), observes=True) as scene:
        scene.budgets.is_broken = scene.logs.is_broken = True
        assert (await scene.call(1))["result"]["structuredContent"] == {"text": "hi"}
        scene.logs.is_broken = False
        assert ("call_1", "uncounted", "unknown") in await scene.events()


async def test_observing_counts_each_call_once() -> None:
    async with GuardScene(replace(ALLOW, budget=Budget(2, "session")), observes=True) as scene:
        for call_id in (1, 2, 3):
            await scene.call(call_id)
        observed = [decision for _, event, decision in await scene.events() if event == "observed"]
        assert observed == ["allow", "allow", "needs_human"]


async def test_observing_records_nothing_of_a_tool_that_the_server_does_not_list() -> None:
    async with GuardScene(observes=True) as scene:
        scene.start(1, "hang")
        await scene.server.wait_for_sent(2)
    assert await scene.events() == []


# ---------------------------------------------------------------------------------------------------------------------
# Definitions


async def test_a_server_that_changes_with_every_look_is_asked_about_once() -> None:
    class Changing(GuardScene):
        looks = 0

        async def _serve(self) -> None:
            while True:
                for message in (await self.server.wait_for_sent(self._answered + 1))[self._answered :]:
                    self._answered += 1
                    if message.get("method") == "tools/list":
                        self.looks += 1
                        page = {"tools": [entry("echo", description=f"version {self.looks}")]}
                        self.server.enqueue({"jsonrpc": "2.0", "id": message["id"], "result": page})

    scene = Changing()
    async with scene:
        scene.declare(elicitation=True)
        scene.start(1)
        await scene.question()
        assert scene.looks == 2


# ---------------------------------------------------------------------------------------------------------------------
# Asking


async def test_a_decision_at_the_desk_counts_if_it_comes_first(scene: GuardScene) -> None:
    scene.logs.waits_at = lambda log: log.event == "started"
    question = await scene.asked_in_client()
    assert [one.waits_for_human for one in scene.relay.server.open_requests] == [True]
    await scene.approvals.submit_decision(await scene.asked(), "approve")
    await within(scene.logs.is_reached.wait())
    assert [one.waits_for_human for one in scene.relay.server.open_requests] == [False]
    scene.logs.goes_on.set()
    assert (await scene.reply(1))["result"]["structuredContent"]
    cancelled = {"requestId": question["id"]}
    assert await scene.to_client(lambda message: message.get("params") == cancelled)


async def test_a_yes_that_cannot_be_recorded_does_not_count(scene: GuardScene) -> None:
    question = await scene.asked_in_client()
    scene.logs.is_broken = True
    scene.answer(question, "allow_once")
    assert refusal_in(await scene.reply(1)) == "echo: the decision could not be recorded"
    scene.logs.is_broken = False
    assert scene.calls_at_server() == []


GONE = {"error": {"code": -32601, "message": "gone"}}


async def test_without_a_list_neither_what_was_approved_nor_what_would_be_asked_runs(scene: GuardScene) -> None:
    question = await scene.asked_in_client()
    listed, scene.pages = scene.pages, {None: GONE}
    await scene.list_changed()
    scene.answer(question, "allow_once")
    reply = await scene.reply(1)
    assert refusal_in(reply).startswith("echo: it cannot be run any more: AGENTS-E-MCP-UNREACHABLE: The tool")
    scene.pages = listed
    await scene.call(2, "no such tool")  # The list is known again.
    scene.pages = {None: GONE}
    refusal = refusal_in(await scene.call(3))
    assert refusal.startswith("echo: no person could be asked: AGENTS-E-MCP-UNREACHABLE: The tool")


async def test_a_request_that_cannot_be_stored_refuses_the_call(scene: GuardScene) -> None:
    scene.logs.breaks_at = lambda log: log.event == "decision"
    assert refusal_in(await scene.call()).startswith("echo: no person could be asked: AGENTS-E-LOG-STORE: ")


async def test_progress_goes_on_while_the_desk_is_waited_for() -> None:
    async with GuardScene(Policy(ask="desk")) as scene:
        scene.declare(elicitation=True)
        scene.start(1, "echo", None, _meta={"progressToken": 7})
        approval_id = await scene.asked()

        async def several() -> bool:
            progress = [one for one in scene.client.replies() if one.get("method") == "notifications/progress"]
            return len(progress) >= 3

        await scene.until(several)
        sent = [one["params"] for one in scene.client.replies() if "progress" in one.get("params", {})]
        assert [one["progress"] for one in sent[:3]] == [0.001667, 0.003333, 0.005]
        short = approval_id[4:8]
        text = f"waiting for approval {short}…: openai-responses-mcp approvals show {short}"
        assert {(one["progressToken"], one["message"]) for one in sent} == {(7, text)}
        assert f"small/echo: {text}" in scene.notices.lines
        assert {*scene.sleeps} == {0.5, 5.0}
        await scene.approvals.submit_decision(approval_id, "deny", "no")
        assert refusal_in(await scene.reply(1)) == ("echo: denied by a human. The approver says: no")
        running = [str(task.get_coro()) for task in asyncio.all_tasks() if not task.cancelling()]
        assert [one for one in running if "Asking" in one] == []


async def test_without_a_decision_in_time_the_call_is_refused() -> None:
    async with GuardScene(wait_seconds=0.01) as scene:
        assert refusal_in(await scene.call()) == "echo: nobody decided within 0.01 s"
        assert ("call_1", "approval", "expired") in await scene.events()


async def test_a_request_that_the_desk_lets_expire_after_five_minutes_refuses_the_call(scene: GuardScene) -> None:
    scene.start(1)
    await scene.asked()
    scene.clock.move(299)
    assert len(await scene.approvals.pending()) == 1
    scene.clock.move(1)
    assert await scene.approvals.pending() == []
    assert refusal_in(await scene.reply(1)) == "echo: the request has expired"


async def test_a_tool_that_changes_while_somebody_is_asked_is_refused(scene: GuardScene) -> None:
    question = await scene.asked_in_client()
    scene.server_lists = [entry("echo", description="another")]
    await scene.list_changed()
    scene.answer(question, "allow_once")
    reply = await scene.reply(1)
    assert refusal_in(reply) == "echo: the server changed the tool while it was asked about; call again"


async def test_a_task_that_is_refused_is_an_error() -> None:
    async with GuardScene(profile="strict") as scene:
        reply = await scene.call(1, "echo", None, task={})
        assert "The guard did not run small/echo" in reply["error"]["message"]


async def test_of_very_many_questions_the_oldest_cannot_be_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "_MOST_REMEMBERED", 1)
    async with GuardScene() as scene:
        first, second = [(await scene.call(one, _meta=ENVELOPE))["result"]["requestState"] for one in (1, 2)]
        late = await scene.call(3, _meta=ENVELOPE, requestState=first, inputResponses=YES)
        assert "too old" in refusal_in(late)
        reply = await scene.call(4, _meta=ENVELOPE, requestState=second, inputResponses=YES)
        assert reply["result"]["structuredContent"] == {"text": "hi"}


async def test_a_question_in_the_reply_expires() -> None:
    async with GuardScene(wait_seconds=0.01) as scene:
        asked = (await scene.call(1, _meta=ENVELOPE))["result"]
        approval_id = await scene.asked()
        await scene.until_status(approval_id, "expired")
        assert (scene.asking._waiting, scene.asking._timers) == (set(), {})
        assert (await scene.approvals.get(approval_id)).request.comment == "nobody decided in time"
        late = await scene.call(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=YES)
        assert "too old" in refusal_in(late)


async def test_a_question_in_the_reply_can_be_decided_at_the_desk_only_as_a_no(scene: GuardScene) -> None:
    asked = (await scene.call(1, _meta=ENVELOPE))["result"]
    [request] = await scene.approvals.pending()
    form = {"method": "elicitation/create", "params": {"mode": "form", **questions.form_for(request, "small")}}
    assert asked == {
        "resultType": "input_required",
        "inputRequests": {"guard-approval": form},
        "requestState": asked["requestState"],
    }
    await scene.approvals.submit_decision(request.approval_id, "deny")
    again = await scene.call(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=YES)
    assert refusal_in(again) == "echo: denied by a human"
    assert (scene.asking._waiting, scene.asking._timers) == (set(), {})


@pytest.mark.parametrize(
    "change",
    [
        lambda state: "forged",
        lambda state: 7,
        # Letters that none of our states has.
        lambda state: f"{state[:-1]}é",
        lambda state: state.replace(":", ":é", 1),
    ],
)
async def test_a_state_that_is_not_ours_is_the_servers_and_asks_all_the_same(scene: GuardScene, change: Any) -> None:
    state = (await scene.call(1, _meta=ENVELOPE))["result"]["requestState"]
    reply = await scene.call(2, _meta=ENVELOPE, requestState=change(state), inputResponses=YES)
    assert list(reply["result"]["inputRequests"]) == ["guard-approval"]
    assert scene.calls_at_server() == []


@pytest.mark.parametrize(
    ("name", "arguments", "is_forged"),
    [("other", None, False), ("echo", {"text": "other"}, False), ("echo", None, True)],
)
async def test_a_state_holds_for_the_same_tool_and_arguments_and_with_its_seal(
    scene: GuardScene, name: str, arguments: Any, is_forged: bool
) -> None:
    state = (await scene.call(1, _meta=ENVELOPE))["result"]["requestState"]
    if is_forged:
        state = state[:-1] + ("0" if state[-1] != "0" else "1")
    again = await scene.call(2, name, arguments, _meta=ENVELOPE, requestState=state, inputResponses=YES)
    reason = "the question was answered before, is too old, or was about another call"
    assert refusal_in(again) == f"{name}: {reason}"
    await scene.call(3, "other", _meta=ENVELOPE)  # It came later, and has been asked about.
    assert scene.calls_at_server() == []
    assert await scene.events() == [
        ("call_1", "decision", "needs_human"),
        ("call_1", "approval_requested", "pending"),
        ("call_2", "decision", "needs_human"),
        ("call_2", "approval_requested", "pending"),
    ]


async def test_an_answered_question_is_not_asked_again_while_the_call_runs(scene: GuardScene) -> None:
    scene.server_lists = [entry("hang"), entry("other")]
    state = (await scene.call(1, "hang", _meta=ENVELOPE))["result"]["requestState"]
    scene.start(2, "hang", _meta=ENVELOPE, requestState=state, inputResponses=YES)
    await scene.call(3, "other", _meta=ENVELOPE)  # It came later, and has been asked about.
    assert [call["name"] for call in scene.calls_at_server()] == ["hang"]
    assert [message for message in scene.client.replies() if message.get("id") == 2] == []
    assert await scene.events() == [
        ("call_1", "decision", "needs_human"),
        ("call_1", "approval_requested", "pending"),
        ("call_1", "approval", "approved"),
        ("call_1", "started", "started"),
        ("call_2", "decision", "needs_human"),
        ("call_2", "approval_requested", "pending"),
    ]


async def test_a_call_without_arguments_is_the_same_call_when_it_comes_again() -> None:
    def call(call_id: int, **answer: Any) -> Any:
        params = {"name": "echo", "_meta": ENVELOPE, **answer}
        scene.client.enqueue({"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params})
        return scene.reply(call_id)

    async with GuardScene() as scene:
        state = (await call(1))["result"]["requestState"]
        assert (await call(2, requestState=state, inputResponses=YES))["result"]["structuredContent"] == {}


async def test_answers_to_the_servers_own_question_are_passed_on_after_the_guards() -> None:
    theirs = {"requestState": "theirs", "inputResponses": {"city": {"action": "accept", "content": {}}}}
    async with GuardScene() as scene:
        asked = (await scene.call(1, _meta=ENVELOPE, **theirs))["result"]
        await scene.call(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=YES)
        assert scene.calls_at_server() == [{"name": "echo", "arguments": {"text": "hi"}, "_meta": ENVELOPE, **theirs}]


async def test_cancelling_a_call_that_waits_withdraws_its_request(scene: GuardScene) -> None:
    scene.start(1)
    approval_id = await scene.asked()
    scene.cancel(1)
    await scene.until_status(approval_id, "withdrawn")
    assert (await scene.approvals.get(approval_id)).request.comment == "the client cancelled the call"
    await scene.call(2, "no such tool")  # It came later, and is decided.
    assert scene.asking._waiting == set()
    assert [message for message in scene.client.replies() if message.get("id") == 1] == []


async def given_up(scene: GuardScene, call_id: int = 1, **others: Any) -> str:
    """The client cancels a call that waits at the desk. The id of its request, which is withdrawn."""
    scene.start(call_id, **others)
    approval_id = await scene.asked()
    scene.cancel(call_id)
    await scene.until_status(approval_id, "withdrawn")
    return approval_id


async def test_a_yes_after_the_client_gave_up_is_kept_for_the_identical_call(scene: GuardScene) -> None:
    approval_id = await given_up(scene)
    await scene.approvals.submit_decision(approval_id, "approve", "go on")
    assert (await scene.approvals.get(approval_id)).request.status == "kept"
    assert scene.calls_at_server() == []
    await scene.call(2)
    assert len(scene.calls_at_server()) == 1
    # Once, and the log says by whose yes.
    scene.start(3)
    await scene.asked()
    events = await scene.events()
    assert ("call_1", "approval_kept", "kept") in events
    assert ("call_2", "approval", "approved") in events
    assert list(contradictions(await scene.stores.logs.query())) == []


async def test_a_yes_that_another_guard_uses_first_is_not_used_again(scene: GuardScene) -> None:
    approval_id = await given_up(scene)
    await scene.approvals.submit_decision(approval_id, "approve")

    async def used_already(pause_id: str, token_hash: str | None, now: str) -> bool:
        return False

    scene.stores.approvals.consume = used_already  # type: ignore[method-assign]
    scene.start(2)
    assert await scene.asked() != approval_id
    assert scene.calls_at_server() == []


async def test_a_guard_that_the_desk_took_for_gone_runs_the_call_all_the_same(scene: GuardScene) -> None:
    """Its machine slept, or its clock is slow."""
    scene.start(1)
    moment = timestamp(scene.clock.now())
    await scene.stores.presence.renew(Presence("guard_1", "guard", "small", moment, moment))
    scene.clock.move(LEASE_SECONDS + 1)
    approval_id = await scene.asked()
    await scene.approvals.submit_decision(approval_id, "approve")
    assert (await scene.approvals.get(approval_id)).request.status == "kept"
    assert (await scene.reply(1))["result"]["structuredContent"] == {"text": "hi"}
    assert list(contradictions(await scene.stores.logs.query())) == []
    # The yes is used up.
    scene.start(2)
    assert await scene.asked() != approval_id


@pytest.mark.parametrize(
    ("decision", "seconds", "is_kept"), [("allow_once", 0.5, True), ("deny", 0.5, False), ("allow_once", 0.1, False)]
)
async def test_a_yes_in_a_question_that_the_client_left_open_is_kept(
    scene: GuardScene, decision: str, seconds: float, is_kept: bool
) -> None:
    scene.declare(elicitation=True)
    scene.reading_seconds = seconds
    scene.start(1)
    question = await scene.question()
    approval_id = await scene.asked()
    scene.cancel(1)
    await scene.to_client(lambda message: message.get("method") == "notifications/cancelled")
    scene.answer(question, decision)
    scene.answer(question, decision)

    async def status() -> str:
        now = (await scene.approvals.get(approval_id)).request.status
        return "" if now == "pending" or (is_kept and now == "withdrawn") else now

    assert await scene.until(status) == ("kept" if is_kept else "withdrawn")
    scene.start(2)
    if is_kept:
        await scene.reply(2)
    else:
        await scene.asked()
    assert len(scene.calls_at_server()) == is_kept


class NeverLooking(GuardScene):
    """It looks once, and never notices a decision at the desk."""

    def __init__(self) -> None:
        super().__init__()
        self.has_looked = asyncio.Event()

    async def _sleep(self, seconds: float) -> None:
        self.has_looked.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize(("changed", "comment"), [(None, "go on"), (None, ""), ({"text": "another"}, "go on")])
async def test_a_yes_in_the_moment_of_the_cancellation_is_kept_too(changed: Any, comment: str) -> None:
    async with NeverLooking() as scene:
        scene.start(1)
        await within(scene.has_looked.wait())
        approval_id = await scene.asked()
        await scene.approvals.submit_decision(approval_id, "approve", comment, arguments=changed)
        scene.cancel(1)

        async def settled() -> bool:
            record = await scene.approvals.get(approval_id)
            return record.request.status == "kept" or record.used_at is not None

        await scene.until(settled)
        # Changed arguments are not those that the client will send again.
        record = await scene.approvals.get(approval_id)
        assert (record.request.status, record.used_at is None) == (("approved", False) if changed else ("kept", True))
        assert (record.request.comment or "") == comment


async def test_a_yes_that_a_killed_guard_did_not_use_is_for_the_identical_call_of_the_next_one() -> None:
    async with NeverLooking() as killed, GuardScene(beside=killed) as scene:
        killed.start(1)
        await within(killed.has_looked.wait())
        await killed.approvals.submit_decision(await killed.asked(), "approve")
        scene.clock.move(5)
        assert (await scene.call(1))["result"]["structuredContent"] == {"text": "hi"}
        assert list(contradictions(await scene.stores.logs.query())) == []
        scene.start(2)
        await scene.asked()


async def test_a_call_that_is_cancelled_while_its_request_is_stored_leaves_none_behind(scene: GuardScene) -> None:
    scene.logs.waits_at = lambda log: log.event == "approval_requested"
    scene.start(1)
    await within(scene.logs.is_reached.wait())
    approval_id = await scene.asked()
    scene.cancel(1)
    await scene.call(2, "no such tool")  # The cancellation was read before this.
    scene.logs.goes_on.set()
    await scene.until_status(approval_id, "withdrawn")


async def test_a_call_that_is_closed_while_its_start_is_written_is_not_sent() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.logs.waits_at = lambda log: log.event == "started"
        scene.start(1)
        await within(scene.logs.is_reached.wait())
        scene.relay.server.close(1)
        scene.logs.goes_on.set()

        async def has_outcome() -> bool:
            return ("call_1", "outcome", "failed") in await scene.events()

        assert await scene.until(has_outcome)
        assert (await scene.stores.logs.query())[-1].reason == "cancelled before it was sent"
        assert scene.calls_at_server() == []


async def test_a_call_that_is_cancelled_while_its_start_is_written_has_an_outcome() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.logs.waits_at = lambda log: log.event == "started"
        scene.start(1)
        await within(scene.logs.is_reached.wait())
        scene.cancel(1)
        await scene.call(2, "no such tool")
        scene.logs.goes_on.set()
        events = [("call_1", "decision", "allow"), ("call_1", "started", "started"), ("call_1", "outcome", "failed")]
        assert await scene.events() == events
        assert scene.calls_at_server() == []


@pytest.mark.parametrize("answer", [NO, None])
async def test_a_yes_at_the_desk_that_the_client_does_not_use_is_not_asked_for_again(answer: Any) -> None:
    async with GuardScene(wait_seconds=None if answer else 0.01) as scene:
        asked = (await scene.call(1, _meta=ENVELOPE))["result"]
        approval_id = await scene.asked()
        await scene.approvals.submit_decision(approval_id, "approve")
        if answer:
            again = await scene.call(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=answer)
            assert refusal_in(again) == "echo: denied in the client"

        async def used_up() -> bool:
            return (await scene.approvals.get(approval_id)).used_at is not None

        assert await scene.until(used_up)
        scene.clock.move(3600)
        assert await scene.approvals.pending() == []
        assert scene.calls_at_server() == []


async def test_questions_that_are_open_at_the_end_are_withdrawn() -> None:
    async with GuardScene() as scene:
        await scene.call(1, _meta=ENVELOPE)
        approval_id = await scene.asked()
        timers = list(scene.asking._timers.values())
    request = (await scene.approvals.get(approval_id)).request
    assert (request.status, request.comment) == ("withdrawn", "the session is over")
    assert [timer.cancelled() for timer in timers] == [True]


# ---------------------------------------------------------------------------------------------------------------------
# Allowed from now on


async def answered_once(scene: GuardScene, decision: str) -> None:
    scene.declare(elicitation=True)
    scene.start("first")
    scene.answer(await scene.question(), decision)
    await scene.reply("first")


@pytest.mark.parametrize(
    ("decision", "takes_any_arguments", "for_good"),
    [("allow_tool_for_session", True, 0), ("allow_tool_for_good", True, 1), ("allow_call_for_good", False, 1)],
)
async def test_what_is_allowed_from_now_on_is_not_asked_about_again(
    decision: str, takes_any_arguments: bool, for_good: int
) -> None:
    async with GuardScene() as scene:
        await answered_once(scene, decision)
        assert (await scene.call(2))["result"]["structuredContent"] == {"text": "hi"}
        scene.start(3, "echo", {"text": "else"})
        if takes_any_arguments:
            await scene.reply(3)
        scene.start(4, "other")
        await scene.until_pending(2 - takes_any_arguments)
    assert len(await scene.stores.standing.list_standing()) == for_good


READS = {"annotations": {"readOnlyHint": True}}


async def test_tools_that_claim_to_read_only_are_allowed_as_they_are_listed_now() -> None:
    async with GuardScene() as scene:
        scene.server_lists = [entry("echo", **READS), entry("look", **READS), entry("other")]
        await answered_once(scene, "allow_reads_for_good")
        question = await scene.question()
        assert "which claims to read only" in question["params"]["message"]
        assert "allow_reads_for_good" in question["params"]["requestedSchema"]["properties"]["decision"]["enum"]
        allowed = [one.tool_name for one in await scene.stores.standing.list_standing()]
        assert allowed == ["small/echo", "small/look"]
        assert "structuredContent" in (await scene.call(2, "look", {"text": "else"}))["result"]
        scene.server_lists = [entry("look", description="does more", **READS), entry("later", **READS)]
        await scene.list_changed()
        for call_id, name in ((3, "look"), (4, "later")):
            scene.start(call_id, name)
            waiting = await scene.asked()
            assert (await scene.approvals.get(waiting)).request.tool_name == f"small/{name}"
            await scene.approvals.submit_decision(waiting, "deny")
            await scene.to_client(lambda message, call_id=call_id: message.get("id") == call_id)  # type: ignore[misc]
    assert "small/later" not in [one.tool_name for one in await scene.stores.standing.list_standing()]


async def test_what_was_not_offered_is_a_no() -> None:
    async with GuardScene() as scene:
        scene.server_lists = [entry("echo"), entry("look", **READS)]
        await answered_once(scene, "allow_reads_for_good")
        question = await scene.question()
        assert "claims to read only" not in question["params"]["message"]
        assert "allow_reads_for_good" not in question["params"]["requestedSchema"]["properties"]["decision"]["enum"]
        assert scene.calls_at_server() == []
        assert ("call_1", "approval", "denied") in await scene.events()
    assert await scene.stores.standing.list_standing() == []


@pytest.mark.parametrize(
    ("decision", "released"),
    [("allow_tool_for_session", {"same", "else"}), ("allow_call_for_good", {"same"}), ("allow_once", set())],
)
async def test_what_is_allowed_from_now_on_releases_the_calls_that_wait_for_it(
    scene: GuardScene, decision: str, released: set[str]
) -> None:
    for call_id, name, text in (("same", "echo", "hi"), ("else", "echo", "else"), ("other", "other", "hi")):
        scene.start(call_id, name, {"text": text})
    await scene.until_pending(3)
    await answered_once(scene, decision)
    for call_id in released:
        reply = await scene.to_client(lambda message, call_id=call_id: message.get("id") == call_id)  # type: ignore[misc]
        assert "structuredContent" in reply["result"]
    assert len(await scene.approvals.pending()) == 3 - len(released)
    comments = [log.comment for log in await scene.stores.logs.query() if log.event == "approval" and log.comment]
    assert len([one for one in comments if one.startswith("covered by the standing approval sta_")]) == len(released)
    said = f"waiting calls that are allowed with it and run now: {len(released)}"
    assert (said in scene.notices.lines) is bool(released)


async def test_a_call_that_waits_for_more_than_its_rule_is_not_released() -> None:
    async with GuardScene(Policy(budget=Budget(1, "session"))) as scene:
        await answered_once(scene, "allow_once")
        for call_id in (2, 3):
            scene.start(call_id)
        first, second = await scene.until_pending(2)
        assert {reason.voice for reason in second.reasons if reason.says == "needs_human"} == {"profile", "budget"}
        terms = StandingTerms(always=True)
        *_, released = await approve_from_now_on(scene.approvals, scene.standing, first.approval_id, terms=terms)
        assert released == 0
        assert await scene.approvals.pending() == [second]


# ---------------------------------------------------------------------------------------------------------------------
# Budgets and changed arguments


async def test_a_budget_that_is_used_up_asks_and_a_yes_allows_as_much_again() -> None:
    async with GuardScene(Policy(budget=Budget(2, "session")), profile="fast") as scene:
        scene.declare(elicitation=True)
        for call_id in (1, 2):
            assert "structuredContent" in (await scene.call(call_id))["result"]
        scene.start(3)
        question = await scene.question()
        assert "the budget of 2 calls per session is used up" in question["params"]["message"]
        scene.answer(question, "allow_once")
        await scene.reply(3)
        assert "structuredContent" in (await scene.call(4))["result"]
        scene.start(5)
        await scene.asked()


async def test_a_budget_that_cannot_be_read_refuses_the_call() -> None:
    async with GuardScene(replace(ALLOW, budget=Budget(1, "session"))) as scene:
        scene.budgets.is_broken = True
        assert "broken on purpose" in refusal_in(await scene.call())
        assert scene.calls_at_server() == []


async def test_a_policy_that_becomes_looser_does_not_ask_again(scene: GuardScene) -> None:
    scene.start(1)
    asked = await scene.asked()
    scene.source.policy = Policy(rules=(Rule(1, ("small/*",), decide="allow"),))
    await scene.approvals.submit_decision(asked, "approve")
    reply = await scene.reply(1)
    assert reply["result"]["structuredContent"] == {"text": "hi"}


async def test_changed_arguments_are_sent_and_the_model_learns_of_them(scene: GuardScene) -> None:
    scene.start(1)
    await scene.approvals.submit_decision(await scene.asked(), "approve", arguments={"text": "better"})
    reply = await scene.reply(1)
    assert reply["result"]["structuredContent"] == {"text": "better"}
    assert reply["result"]["content"][0]["text"].startswith("A human changed the arguments of this call:")
    assert scene.calls_at_server() == [{"name": "echo", "arguments": {"text": "better"}}]
    assert ("call_1", "decision:2", "needs_human") in await scene.events()


async def test_changed_arguments_are_judged_by_every_rule_again() -> None:
    rules = (
        Rule(1, ("small/echo",), (When(("text",), (OneOf(("forbidden",)),)),), "deny", reason="not that"),
        Rule(2, ("small/echo",), (When(("text",), (OneOf(("unusual",)),)),), "ask", reason="look twice"),
    )
    async with GuardScene(Policy(rules=rules)) as scene:
        scene.start(1)
        await scene.approvals.submit_decision(await scene.asked(), "approve", arguments={"text": "forbidden"})
        assert "not that" in refusal_in(await scene.reply(1))
        scene.start(2)
        await scene.approvals.submit_decision(await scene.asked(), "approve", arguments={"text": "unusual"})

        async def asked_again() -> bool:
            return any("look twice" in one.reason for one in await scene.approvals.pending())

        assert await scene.until(asked_again)
        await scene.approvals.submit_decision(await scene.asked(), "approve")
        reply = await scene.reply(2)
        assert reply["result"]["structuredContent"] == {"text": "unusual"}
        assert scene.calls_at_server() == [{"name": "echo", "arguments": {"text": "unusual"}}]


# ---------------------------------------------------------------------------------------------------------------------
# Questions of the server's own


class AskingServer(GuardScene):
    """Answers every call that brings no answer with a question."""

    def result_of(self, message: dict[str, Any]) -> Any:
        if message["params"].get("requestState") == "theirs":
            return super().result_of(message)
        return {"resultType": "input_required", "inputRequests": {"city": {}}, "requestState": "theirs"}


THEIRS = {"requestState": "theirs", "inputResponses": {"city": {"action": "accept", "content": {}}}}


async def test_what_a_person_changed_stays_changed_when_the_server_asks_back() -> None:
    async with AskingServer(Policy(ask="desk")) as scene:
        scene.start(1, "echo", {"text": "harmful"}, _meta=ENVELOPE)
        await scene.approvals.submit_decision(await scene.asked(), "approve", arguments={"text": "harmless"})
        await scene.reply(1)
        again = await scene.call(2, "echo", {"text": "harmful"}, _meta=ENVELOPE, **THEIRS)
        assert [call["arguments"] for call in scene.calls_at_server()] == [{"text": "harmless"}] * 2
        assert '"text": "harmful" is now "harmless"' in again["result"]["content"][0]["text"]


async def test_the_answer_to_the_servers_question_holds_once_and_for_the_same_arguments() -> None:
    async with AskingServer() as scene:
        asked = (await scene.call(1, _meta=ENVELOPE))["result"]
        await scene.call(2, _meta=ENVELOPE, requestState=asked["requestState"], inputResponses=YES)
        other = await scene.call(3, "echo", {"text": "other"}, _meta=ENVELOPE, **THEIRS)
        assert "guard-approval" in other["result"]["inputRequests"]
        assert (await scene.call(4, _meta=ENVELOPE, **THEIRS))["result"]["structuredContent"] == {"text": "hi"}
        twice = await scene.call(5, _meta=ENVELOPE, **THEIRS)
        assert "guard-approval" in twice["result"]["inputRequests"]


async def test_an_allowed_call_that_comes_again_passes_byte_for_byte() -> None:
    body = b'{"jsonrpc":"2.0","id":2, "method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"},"requestState":"theirs"}}'
    async with AskingServer(ALLOW) as scene:
        await scene.call(1, _meta=ENVELOPE)
        scene.client.enqueue(body)
        reply = await scene.reply(2)
        assert body in scene.server.sent
        assert reply["result"] == {"content": [], "structuredContent": {"text": "hi"}}


async def test_a_call_that_comes_again_is_refused_if_the_policy_denies_it_by_now() -> None:
    async with AskingServer(ALLOW) as scene:
        await scene.call(1, _meta=ENVELOPE)
        scene.source.policy = Policy(rules=(Rule(1, ("*",), decide="deny", reason="not any more"),))
        assert "not any more" in refusal_in(await scene.call(2, _meta=ENVELOPE, **THEIRS))
        assert len(scene.calls_at_server()) == 1
    *_, refused, ended = await scene.events()
    assert refused == ("call_1", "decision:11", "deny")
    assert ended == ("call_1", "outcome", "failed")
    assert (await scene.stores.logs.query())[-1].reason == "refused when it came again"


async def test_a_question_of_the_server_without_an_answer_is_an_outcome() -> None:
    async with AskingServer(ALLOW) as scene:
        await scene.call(1, _meta=ENVELOPE)
    assert (await scene.events())[-1] == ("call_1", "outcome", "failed")
    assert (await scene.stores.logs.query())[-1].reason == "the server's own question was never answered"


def test_a_server_that_never_stops_asking_back_is_forgotten_in_part() -> None:
    continued = ContinuedCalls()
    tool = ToolDescription("small/echo", "mcp")
    for number in range(1_001):
        continued.put(Underway(PlannedCall(f"call_{number}", tool, {})), {}, str(number))
    assert continued.take({"requestState": "0"}, tool) is None
    assert len(continued.clear()) == 1_000


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


async def test_arguments_that_are_nested_too_deep_are_refused_with_the_reason() -> None:
    async with GuardScene(ALLOW) as scene:
        for levels in (101, 900):
            reply = await scene.call(levels, arguments=nested(levels))
            assert reply["error"]["message"] == "Invalid params: arguments are nested more than 100 levels deep"
        assert "result" in await scene.call(2, arguments=nested(99))


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (nested(900), "nested more than 100 levels deep"),
        ({"description": "x" * 1_000_001}, "has more than 1000000 characters"),
    ],
)
async def test_a_definition_that_would_take_too_long_is_refused_and_no_other_tool(schema: Any, problem: str) -> None:
    async with GuardScene(ALLOW) as scene:
        scene.server_lists = [entry("echo", inputSchema=schema), entry("other")]
        assert problem in refusal_in(await scene.call(1))
        assert "isError" not in (await scene.call(2, "other"))["result"]


async def test_what_a_server_says_instead_of_its_list_cannot_begin_a_line() -> None:
    async with GuardScene(ALLOW) as scene:
        scene.pages = {None: {"error": {"code": -1, "message": "no\nall is allowed\u2028now"}}}
        assert '("no\\nall is allowed\\u2028now")' in refusal_in(await scene.call(1))
