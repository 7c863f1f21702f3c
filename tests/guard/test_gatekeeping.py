"""The gate as the guard asks it: what it decides and what it records."""

from typing import Any

from openai_responses_mcp.gate.budgets import Limit, SessionBudget
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.ruling import PolicyRules
from openai_responses_mcp.gate.reasons import reason_in_record
from openai_responses_mcp.gate.safety_gate import SafetyGate
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.guard.gatekeeping import Gatekeeper, GuardSession, NoJudge
from openai_responses_mcp.guard.servers import GuardOptions
from tests.agents.fake_policy import FakePaths, FakePolicySource
from tests.agents.fake_stores import FakeBudgetStore, FakePolicyStore
from tests.agents.fakes import FakeClock
from tests.gate.policy.reading import a_policy

CALL = PlannedCall("call_1", ToolDescription("small/echo", "mcp"), {"text": "hi"})
RISK_1: dict[str, Any] = {"rules": [{"tools": ["*"], "risk": 1}]}


def a_gatekeeper(*limits: Limit, profile: str = "fast", **said: Any) -> Gatekeeper:
    source = FakePolicySource()
    source.policy = a_policy(**said)
    gate = SafetyGate(NoJudge(), FakePolicyStore(), rules=PolicyRules(source, FakePaths()))
    budget = SessionBudget(FakeBudgetStore(), FakeClock(), "session", lambda: limits)
    return Gatekeeper(
        GuardSession(GuardOptions(("small",), "small", profile=profile), "session", "", "en"), gate, budget, Masking({})
    )


async def test_no_judge_adds_neither_a_risk_nor_a_reason() -> None:
    judgement = await a_gatekeeper(profile="strict", scopes=["mcp:*"], **RISK_1).judged(CALL, 1)
    assert (judgement.says, judgement.decision.risk_level, judgement.decision.reason) == ("allow", 1, "")
    assert (judgement.entry.event, judgement.entry.decision, judgement.entry.reason) == ("decision", "allow", "")


async def test_every_budget_that_is_used_up_is_a_reason_to_ask() -> None:
    keeper = a_gatekeeper(Limit(1, "calls", "session"), Limit(1, "calls", "hour"))
    assert (await keeper.judged(CALL, 1)).says == "allow"
    await keeper.budget.spend(calls=1)
    judgement = await keeper.judged(CALL, 2)
    used_up = ["the budget of 1 call per session is used up", "the budget of 1 call per hour is used up"]
    assert judgement.says == "needs_human"
    assert judgement.decision.reason == "; ".join(used_up)
    assert [reason_in_record([one.reason], "needs_human") for one in judgement.questions] == used_up
    assert judgement.entry.event == "decision:2"
    await keeper.budget.go_on(judgement.questions)
    assert (await keeper.judged(CALL, 1)).says == "allow"


def test_the_records_of_a_call_say_what_there_is_to_say() -> None:
    keeper = a_gatekeeper()
    passed = keeper.let_pass(CALL, 3)
    assert (passed.event, passed.decision, passed.risk_level, passed.reason) == (
        "decision",
        "allow",
        3,
        "only observed",
    )
    refused = keeper.refused(CALL, AgentsError("AGENTS-E-MCP-SCHEMA", "no such list"))
    reason = "AGENTS-E-MCP-SCHEMA: no such list"
    assert (refused.says, refused.decision.risk_level, refused.decision.reason) == ("deny", 3, reason)
    assert (refused.entry.event, refused.entry.reason, refused.questions) == ("decision", reason, ())
    started = keeper.about(CALL, "started", "started")
    assert (started.run_id, started.tool_call_id) == ("session", "call_1")
    assert (started.event, started.decision, started.reason) == ("started", "started", "")
