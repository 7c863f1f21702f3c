"""The ledger of one run at the tool itself, and what it keeps over a pause."""

import json
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.agents.runs.ledger import RunLedger, RunLedgers
from openai_responses_mcp.agents.runs.models import Extensions
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.call_table import HumanAnswer, Permit
from openai_responses_mcp.gate.calls import (
    AgentCapabilitySnapshot,
    CallToApprove,
    McpCapabilitySummary,
    PlannedCall,
    ToolCallRequest,
    ToolCallResult,
    ToolDescription,
)
from openai_responses_mcp.gate.errors import AgentsError, DuplicateRecord, StoreUnavailable
from openai_responses_mcp.gate.guardrails import create_guardrails_template
from openai_responses_mcp.gate.policy.rules import PolicyProfile
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyGate
from tests.agents.fake_stores import FakeBudgetStore, FakeExecutionLogStore, FakePolicyStore
from tests.agents.fakes import ASK, DENY, BreakableLogStore, FakeClock, FakeJudge, code_of
from tests.agents.runs.ledgers import MASKING, audit_on, ledger_on, no_budget

TOOL = ToolDescription("pay", "function", definition_hash="d1")
CALL = PlannedCall("c1", TOOL, {"amount": 5})
LOOK = ToolDescription("look", "function", definition_hash="d3")
OTHER = PlannedCall("c2", LOOK, {"what": "here"})


def yes(call: PlannedCall) -> HumanAnswer:
    return HumanAnswer(Permit.of(call))


class Agent:
    name = "Clerk"

    def __init__(self, **rules: Any) -> None:
        self.guardrails = create_guardrails_template(**rules)
        self.extensions = Extensions()


@pytest.fixture
def store() -> BreakableLogStore:
    return BreakableLogStore(FakeExecutionLogStore())


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge()


@pytest.fixture
def ledger(store: BreakableLogStore, judge: FakeJudge) -> RunLedger:
    return ledger_on(store, judge)


async def start(ledger: RunLedger) -> None:
    await ledger.judge(None, [CALL], [TOOL])
    await ledger.starting("c1", TOOL, {"amount": 5})


async def events(store: BreakableLogStore) -> list[str]:
    return [f"{log.tool_call_id} {log.event} {log.decision}" for log in await store.query()]


async def last(store: BreakableLogStore) -> ExecutionLog:
    return (await store.query())[-1]


# ---------------------------------------------------------------------------------------------------------------------
# At the tool


@pytest.mark.parametrize(
    ("tool", "args"),
    [(TOOL, {"amount": 6}), (ToolDescription("pay", "function", definition_hash="d2"), {"amount": 5})],
)
async def test_a_call_starts_only_as_it_was_judged(ledger: RunLedger, tool: ToolDescription, args: Any) -> None:
    await ledger.judge(None, [CALL], [TOOL])
    assert not ledger.is_waiting("c1")
    assert ledger.may_start(CALL)
    assert not ledger.may_start(PlannedCall("c1", tool, args))
    assert await code_of(ledger.starting("c1", tool, args)) == "AGENTS-E-GATE-DENIED"


async def test_a_second_start_is_refused_and_the_first_goes_on(ledger: RunLedger, store: BreakableLogStore) -> None:
    await start(ledger)
    await code_of(ledger.starting("c1", TOOL, {"amount": 5}))
    await ledger.finished("c1", "paid")
    assert await events(store) == ["c1 decision allow", "c1 started started", "c1 refused deny", "c1 outcome completed"]
    assert (await last(store)).reason == ""


async def test_a_refusal_at_the_tool_is_recorded_once_with_what_was_about_to_run(
    ledger: RunLedger, store: BreakableLogStore
) -> None:
    assert not ledger.is_answered(CALL)
    with pytest.raises(AgentsError) as caught:
        await ledger.starting("c1", TOOL, {"amount": 5})
    assert caught.value is ledger.refusal
    assert caught.value.message == "function:pay was about to run without having been let through"
    assert caught.value.details == {"tool_call_id": "c1"}
    log = await last(store)
    assert (log.run_id, log.tool_call_id, log.event, log.decision) == ("r1", "c1", "refused", "deny")
    assert (log.tool_name, log.tool_kind, log.arguments) == ("pay", "function", {"amount": 5})
    assert log.reason == caught.value.message
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED") as again:
        await ledger.starting("c1", TOOL, {"amount": 5})
    assert isinstance(again.value.__cause__, DuplicateRecord)
    assert await events(store) == ["c1 refused deny"]


async def test_a_refusal_that_cannot_be_recorded_still_refuses(store: BreakableLogStore) -> None:
    ledger = ledger_on(store, FakeJudge(), mode="required")
    store.is_broken = True
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED") as caught:
        await ledger.starting("c1", TOOL, {"amount": 5})
    assert isinstance(caught.value.__cause__, StoreUnavailable)


@pytest.mark.parametrize("reported", ["finished", "suspended"])
async def test_a_call_that_does_not_run_cannot_finish(
    ledger: RunLedger, store: BreakableLogStore, reported: str
) -> None:
    work = ledger.finished("c1", "paid") if reported == "finished" else ledger.suspend("c1")
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED: A call that is unknown cannot"):
        await work
    assert ledger.result_of("c1") is None
    assert await events(store) == ["c1 refused deny"]
    log = await last(store)
    assert (log.tool_name, log.tool_kind, log.arguments) == ("", "function", {})


async def test_an_outcome_is_recorded_and_shown_without_secrets(ledger: RunLedger, store: BreakableLogStore) -> None:
    args = {"note": "with hunter2hunter2"}
    await ledger.judge(None, [PlannedCall("c1", TOOL, args)], [TOOL])
    await ledger.starting("c1", TOOL, args)
    await ledger.finished("c1", None, error="no hunter2hunter2")
    [result] = ledger.results
    assert (result.tool_call_id, result.tool_name, result.tool_kind) == ("c1", "pay", "function")
    assert "hunter2" not in str(result)
    assert str(result.output).startswith("no ")
    log = await last(store)
    assert (log.event, log.decision, log.tool_name, log.tool_kind) == ("outcome", "failed", "pay", "function")
    assert log.reason.startswith("no ")
    assert "hunter2" not in str(log)


async def test_a_failure_that_became_an_answer_for_the_model_is_shown_as_that_answer(
    ledger: RunLedger, store: BreakableLogStore
) -> None:
    await start(ledger)
    await ledger.finished("c1", "try later", error="the bank is closed")
    assert [result.output for result in ledger.results] == ["try later"]
    log = await last(store)
    assert (log.decision, log.reason) == ("failed", "the bank is closed")


async def test_a_secret_of_a_call_is_not_shown_in_the_output_of_another(ledger: RunLedger) -> None:
    login = ToolDescription("login", "function", parameters={"properties": {"password": {"type": "string"}}})
    await ledger.judge(None, [PlannedCall("c0", login, {"password": "open sesame"}), CALL], [login, TOOL])
    await ledger.starting("c1", TOOL, {"amount": 5})
    await ledger.finished("c1", "paid with open sesame")
    [result] = ledger.results
    assert str(result.output).startswith("paid with ")
    assert "sesame" not in str(result)


@pytest.mark.parametrize("event", ["decision", "started"])
async def test_with_a_required_log_nothing_starts_unrecorded(store: BreakableLogStore, event: str) -> None:
    ledger = ledger_on(store, FakeJudge(), mode="required")
    store.breaks_at = lambda log: log.event == event

    async def both() -> None:
        await ledger.judge(None, [CALL], [TOOL])
        await ledger.starting("c1", TOOL, {"amount": 5})

    assert await code_of(both()) == "AGENTS-E-LOG-STORE"
    assert ledger.refusal is not None
    assert ledger.refusal.code == "AGENTS-E-LOG-STORE"
    assert await code_of(ledger.starting("c1", TOOL, {"amount": 5})) == "AGENTS-E-GATE-DENIED"


async def test_with_a_required_log_no_call_of_a_turn_starts_if_one_cannot_be_recorded(
    store: BreakableLogStore,
) -> None:
    ledger = ledger_on(store, FakeJudge(), mode="required")
    store.refuses = lambda log: log.tool_call_id == "c2" and log.event == "decision"
    await ledger.judge(None, [CALL, OTHER], [TOOL, LOOK])
    assert await code_of(ledger.starting("c1", TOOL, {"amount": 5})) == "AGENTS-E-LOG-STORE"
    assert await code_of(ledger.starting("c2", LOOK, OTHER.args)) == "AGENTS-E-LOG-STORE"
    assert await events(store) == []


async def test_with_a_required_log_an_outcome_that_could_not_be_written_is_written_later(
    store: BreakableLogStore,
) -> None:
    ledger = ledger_on(store, FakeJudge(), mode="required")
    await start(ledger)
    store.is_broken = True
    assert await code_of(ledger.finished("c1", "paid")) == "AGENTS-E-LOG-STORE"
    store.is_broken = False
    assert await code_of(ledger.starting("c9", TOOL, {"amount": 5})) == "AGENTS-E-GATE-DENIED"
    assert (await events(store))[-2:] == ["c1 outcome completed", "c9 refused deny"]


async def test_a_human_is_asked_where_the_agent_demands_it(ledger: RunLedger) -> None:
    agent = Agent()
    agent.extensions = Extensions(require_human_approval=True)
    await ledger.judge(agent, [OTHER], [LOOK])
    assert [asked.call for asked in ledger.to_approve] == [OTHER]


# ---------------------------------------------------------------------------------------------------------------------
# Turns


@pytest.mark.parametrize("is_same_turn", [False, True])
async def test_an_id_that_is_used_again_for_another_call_is_refused(
    ledger: RunLedger, store: BreakableLogStore, is_same_turn: bool
) -> None:
    another = replace(CALL, args={"amount": 6})
    if not is_same_turn:
        await ledger.judge(None, [CALL], [TOOL])
        await ledger.starting("c1", TOOL, {"amount": 5})
    with pytest.raises(AgentsError, match=r"^AGENTS-E-RUNNER: The model used the id of a tool call twice$"):
        await ledger.judge(None, [CALL, another], [TOOL])
    assert (await last(store)).event == "refused"
    assert await code_of(ledger.starting("c1", TOOL, {"amount": 6})) == "AGENTS-E-GATE-DENIED"


async def test_a_call_that_the_model_repeats_is_decided_and_runs_once(ledger: RunLedger, judge: FakeJudge) -> None:
    await ledger.judge(None, [CALL, CALL], [TOOL])
    await ledger.starting("c1", TOOL, {"amount": 5})
    await ledger.finished("c1", "paid")
    await ledger.judge(None, [CALL], [TOOL])
    assert len(judge.requests) == 1
    assert not ledger.is_waiting("c1")
    assert await code_of(ledger.starting("c1", TOOL, {"amount": 5})) == "AGENTS-E-GATE-DENIED"


async def test_a_turn_with_a_refused_call_does_not_run_at_all(
    ledger: RunLedger, judge: FakeJudge, store: BreakableLogStore
) -> None:
    judge.on("look", DENY)
    with pytest.raises(AgentsError, match="function look was refused: not today") as caught:
        await ledger.judge(None, [CALL, OTHER], [TOOL, LOOK])
    assert caught.value is ledger.refusal
    assert caught.value.code == "AGENTS-E-GATE-DENIED"
    assert caught.value.details == {"tool_name": "look", "tool_call_id": "c2", "risk_level": 1}
    assert ledger.is_waiting("c1")
    assert await code_of(ledger.starting("c1", TOOL, {"amount": 5})) == "AGENTS-E-GATE-DENIED"
    assert await events(store) == ["c1 decision allow", "c2 decision deny", "c1 refused deny"]


async def test_a_call_that_could_not_be_judged_is_recorded_as_refused_with_the_tools_own_risk(
    ledger: RunLedger, store: BreakableLogStore
) -> None:
    risky = replace(OTHER, tool=replace(LOOK, risk_level=4))
    work = ledger.judge(Agent(tool_rules=["here"]), [CALL, risky], [TOOL, LOOK])
    assert await code_of(work) == "AGENTS-E-GUARDRAIL-DENIED"
    log = await last(store)
    assert (log.tool_call_id, log.decision, log.risk_level) == ("c2", "deny", 4)
    assert log.reason.startswith("AGENTS-E-GUARDRAIL-DENIED: tool: ")


async def test_the_rules_of_the_first_agent_hold_next_to_those_of_another(store: BreakableLogStore) -> None:
    first = create_guardrails_template(tool_rules=["pay"])
    for agent, call in ((Agent(), CALL), (Agent(tool_rules=["here"]), OTHER)):
        ledger = ledger_on(FakeExecutionLogStore(), FakeJudge(), GateContext("fast", guardrails=first))
        assert await code_of(ledger.judge(agent, [call], [TOOL])) == "AGENTS-E-GUARDRAIL-DENIED"


async def test_a_rule_of_the_first_agent_is_asked_once(store: BreakableLogStore) -> None:
    asked: list[ToolCallRequest] = []
    agent = Agent(tool_rules=[asked.append])
    ledger = ledger_on(store, FakeJudge(), GateContext("fast", guardrails=agent.guardrails))
    await ledger.judge(agent, [CALL], [TOOL])
    assert len(asked) == 1


async def test_the_judge_sees_the_call_the_user_and_all_that_the_agent_can_do(
    ledger: RunLedger, judge: FakeJudge
) -> None:
    mcp = ToolDescription("files/read", "mcp", "Reads.", risk_level=2)
    skill = ToolDescription("writer", "skill")
    agent = Agent()
    await ledger.judge(agent, [CALL], [TOOL, mcp, skill])
    [request] = judge.requests
    assert judge.agents == [agent]
    assert request == ToolCallRequest(
        tool_name="pay",
        tool_kind="function",
        args={"amount": 5},
        user_intent="what the user typed",
        capability_snapshot=AgentCapabilitySnapshot(
            "Clerk", ("pay", "files/read", "writer"), ("writer",), (McpCapabilitySummary("files/read", "Reads.", 2),)
        ),
        tool_catalog=(TOOL, mcp, skill),
        target_tool=TOOL,
        run_id="r1",
        tool_call_id="c1",
    )


async def test_a_decision_is_recorded_with_all_that_led_to_it(ledger: RunLedger, store: BreakableLogStore) -> None:
    await start(ledger)
    log = (await store.query())[0]
    assert (log.run_id, log.tool_call_id, log.event, log.decision) == ("r1", "c1", "decision", "allow")
    assert (log.tool_name, log.tool_kind, log.risk_level, log.reason) == ("pay", "function", 1, "fine")
    assert log.arguments == {"amount": 5}


# ---------------------------------------------------------------------------------------------------------------------
# Tools that the provider runs


async def test_a_tool_of_the_providers_is_judged_by_its_scope_once(ledger: RunLedger, store: BreakableLogStore) -> None:
    hosted = ToolDescription("web_search", "function", risk_level=2)
    await ledger.offer_hosted(None, hosted)
    await ledger.offer_hosted(None, hosted)
    [log] = await store.query()
    assert (log.run_id, log.tool_call_id, log.event, log.decision) == (
        "r1",
        "hosted:function:web_search",
        "decision",
        "allow",
    )
    assert (log.tool_name, log.tool_kind, log.risk_level) == ("web_search", "function", 2)
    assert log.reason == "in scope of the profile fast, run by the provider"
    assert ledger.saved()["offered"] == ["function:web_search"]


class Strict:
    """An agent that asks for a stricter profile than its run has."""

    extensions = Extensions(policy_profile="strict")


async def test_a_tool_of_the_providers_is_judged_again_for_an_agent_with_a_stricter_profile(
    ledger: RunLedger, store: BreakableLogStore
) -> None:
    hosted, strict = ToolDescription("web_search", "function"), Strict()
    for agent in (None, strict, strict):
        await ledger.offer_hosted(agent, hosted)
    assert [log.tool_call_id for log in await store.query()] == [
        "hosted:function:web_search",
        "hosted:function:web_search under strict",
    ]


async def test_a_tool_of_the_providers_outside_the_scopes_is_refused(store: BreakableLogStore) -> None:
    ledger = ledger_on(store, FakeJudge(), GateContext("strict"))
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED: mcp files/\\* was refused") as caught:
        await ledger.offer_hosted(None, ToolDescription("files/*", "mcp"))
    assert caught.value is ledger.refusal
    log = await last(store)
    assert (log.decision, log.risk_level) == ("deny", 3)
    assert log.reason == "mcp:files/* is outside the scopes of the profile strict"


# ---------------------------------------------------------------------------------------------------------------------
# Over a pause


async def paused(ledger: RunLedger, judge: FakeJudge) -> dict[str, Any]:
    judge.on("pay", ASK)
    await ledger.judge(None, [OTHER, CALL], [TOOL, LOOK])
    saved: dict[str, Any] = json.loads(json.dumps(ledger.saved()))
    return saved


async def test_an_approved_pause_is_let_through_as_a_whole(ledger: RunLedger, judge: FakeJudge) -> None:
    saved = await paused(ledger, judge)
    assert [(call["state"], call["permit"]["call_id"]) for call in saved["calls"]] == [("held", "c2"), ("asked", "c1")]
    assert ledger.to_approve == [CallToApprove(CALL, ASK)]
    resumed = ledger_on(FakeExecutionLogStore(), judge)
    resumed.restore(saved, [yes(CALL)])
    assert resumed.may_start(CALL)
    assert resumed.may_start(OTHER)
    assert resumed.to_approve == []
    await resumed.judge(None, [OTHER, CALL], [TOOL, LOOK])
    await resumed.starting("c1", TOOL, {"amount": 5})
    await resumed.starting("c2", LOOK, {"what": "here"})


async def test_an_answer_that_nobody_was_asked_for_lets_nothing_through(ledger: RunLedger, judge: FakeJudge) -> None:
    saved = await paused(ledger, judge)
    resumed = ledger_on(FakeExecutionLogStore(), judge)
    resumed.restore(saved, [yes(CALL), yes(OTHER)])
    for call in (CALL, OTHER):
        assert resumed.is_waiting(call.call_id)
        assert not resumed.is_answered(call)
        assert not resumed.may_start(call)


async def test_a_suspended_call_is_taken_up_once_and_recorded_as_one(
    ledger: RunLedger, store: BreakableLogStore
) -> None:
    await start(ledger)
    await ledger.suspend("c1")
    await ledger.suspend("c1")
    assert not ledger.is_waiting("c1")
    await ledger.finished("c1", "the engine says so when it pauses")
    assert ledger.results == []
    resumed = ledger_on(store, FakeJudge())
    resumed.restore(ledger.saved(), [])
    assert resumed.may_start(CALL)
    await resumed.starting("c1", TOOL, {"amount": 5})
    assert await code_of(resumed.starting("c1", TOOL, {"amount": 5})) == "AGENTS-E-GATE-DENIED"
    await resumed.finished("c1", "paid")
    assert await events(store) == ["c1 decision allow", "c1 started started", "c1 refused deny", "c1 outcome completed"]


async def test_a_finished_call_is_known_after_a_pause_and_does_not_run_again(ledger: RunLedger) -> None:
    await start(ledger)
    await ledger.finished("c1", "paid")
    await ledger.offer_hosted(None, ToolDescription("web_search", "function"))
    saved = json.loads(json.dumps(ledger.saved()))
    store = FakeExecutionLogStore()
    resumed = ledger_on(store, FakeJudge())
    resumed.restore(saved, [])
    await resumed.offer_hosted(None, ToolDescription("web_search", "function"))
    assert await store.query() == []
    assert resumed.results == [ToolCallResult("c1", "pay", "function", {"amount": 5}, "paid")]
    assert resumed.saved() == saved
    await resumed.judge(None, [CALL], [TOOL])
    assert await code_of(resumed.starting("c1", TOOL, {"amount": 5})) == "AGENTS-E-GATE-DENIED"


async def test_a_call_that_the_policy_denies_meanwhile_does_not_start_after_a_pause(judge: FakeJudge) -> None:
    read = ToolDescription("files/read", "mcp")
    before = ledger_on(FakeExecutionLogStore(), judge)
    judge.on("files/read", ASK)
    await before.judge(None, [PlannedCall("c1", read, {})], [read])
    assert before.is_asking
    resumed = ledger_on(FakeExecutionLogStore(), judge, GateContext("strict"))
    assert not resumed.is_asking
    resumed.restore(before.saved(), [yes(PlannedCall("c1", read, {}))])
    with pytest.raises(AgentsError) as caught:
        await resumed.starting("c1", read, {})
    outside = "mcp:files/read is outside the scopes of the profile strict"
    assert caught.value.message == f"mcp files/read was refused: {outside}"
    assert resumed.is_waiting("c1")


async def test_a_profile_that_changes_between_decision_and_start_counts_with_the_next_decision(
    store: BreakableLogStore,
) -> None:
    policies = FakePolicyStore()
    gate = SafetyGate(FakeJudge(), policies)
    ledger = RunLedger("r1", gate, audit_on(store), MASKING, GateContext("fast"), no_budget())
    await ledger.judge(None, [CALL], [TOOL])
    await policies.set_profile(PolicyProfile("fast", 0, 1, ("mcp:*",)))
    await ledger.starting("c1", TOOL, {"amount": 5})
    assert await code_of(ledger.judge(None, [OTHER], [LOOK])) == "AGENTS-E-GATE-DENIED"


ELSEWHERE = {"$ref": "https://example.com/schema.json"}


@pytest.mark.parametrize(
    ("kind", "parameters", "is_noted"),
    [("mcp", ELSEWHERE, True), ("mcp", {"type": "object"}, False), ("function", ELSEWHERE, False)],
)
async def test_a_decision_says_if_arguments_go_to_a_server_unchecked(
    ledger: RunLedger, store: BreakableLogStore, kind: Any, parameters: Any, is_noted: bool
) -> None:
    tool = ToolDescription("files/read", kind, parameters=parameters)
    await ledger.judge(None, [PlannedCall("c1", tool, {"a": 1})], [tool])
    await ledger.starting("c1", tool, {"a": 1})
    decision = (await store.query())[0]
    assert decision.decision == "allow"
    assert decision.reason.startswith("fine")
    assert ("cannot be checked" in decision.reason) == is_noted
    doubt = Reason("schema", "allow", {"why": "a reference leads out of the schema"})
    assert (decision.reasons[-1] == doubt) == is_noted


async def test_a_ledger_for_a_look_starts_nothing_and_records_no_offer(store: BreakableLogStore) -> None:
    gate = SafetyGate(FakeJudge(), FakePolicyStore())
    ledgers = RunLedgers(gate, audit_on(store), MASKING, FakeBudgetStore(), FakeClock())
    look = ledgers.looking_ledger()
    await look.offer_hosted(None, ToolDescription("web_search", "function"))
    assert await store.query() == []
    assert await code_of(look.starting(CALL.call_id, TOOL, CALL.args)) == "AGENTS-E-GATE-DENIED"
