"""The policy file as one more voice of the gate: it takes the place of the profile's threshold and of nothing else."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.gate.calls import GateDecision, ToolCallRequest, ToolDescription
from openai_responses_mcp.gate.policy.rules import PROFILES, PolicyProfile, RuleDecision
from openai_responses_mcp.gate.policy.ruling import PolicyRules, Ruling
from openai_responses_mcp.gate.reasons import DEFINITION_CHANGED, Decision, Reason
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyGate, decide
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_stores import SqlPolicyStore
from tests.agents.fake_policy import FakePaths, FakePolicySource
from tests.agents.fakes import FakeJudge
from tests.gate.policy.reading import a_policy

TOOL = ToolDescription("files/write", "mcp")
FINE = GateDecision("allow", 1, "fine")
ALLOW = Ruling("allow", None, 1)
ASK = Ruling("ask", None, 1)
DENY = Ruling("deny", None, 1)
STRICTNESS: dict[Decision, int] = {"allow": 0, "needs_human": 1, "deny": 2}


# ---------------------------------------------------------------------------------------------------------------------
# The rule itself


def test_a_decision_takes_the_place_of_the_threshold() -> None:
    cases: list[tuple[Ruling | None, int, str]] = [
        (None, 3, "needs_human"),
        (ALLOW, 5, "allow"),
        (ASK, 1, "needs_human"),
        (DENY, 1, "deny"),
    ]
    for ruling, own_risk, decision in cases:
        tool = replace(TOOL, risk_level=own_risk)
        outcome = decide(tool, FINE, PROFILES["balanced"], ruling=ruling)
        assert (outcome.decision, outcome.risk_level) == (decision, own_risk)


def test_a_risk_takes_the_place_of_the_tools_own_and_leaves_the_rest() -> None:
    cases: list[tuple[int, int, str, int]] = [
        (4, 1, "needs_human", 4),
        (5, 1, "deny", 5),
        (1, 3, "needs_human", 3),
        (2, 5, "deny", 5),
    ]
    for risk, judged, decision, counted in cases:
        ruling = Ruling(None, risk, 1)
        outcome = decide(TOOL, GateDecision("allow", judged, ""), PROFILES["balanced"], ruling=ruling)
        assert (outcome.decision, outcome.risk_level) == (decision, counted)


CHOSEN: dict[RuleDecision, Decision] = {"allow": "allow", "ask": "needs_human", "deny": "deny"}


def test_no_rule_loosens_another_voice() -> None:
    changed = replace(TOOL, doubts=(DEFINITION_CHANGED,))
    outside = PolicyProfile("balanced", 2, 5, ("function:*",))
    verdicts: list[Decision] = ["allow", "needs_human", "deny"]
    cases = itertools.product(CHOSEN, verdicts, [TOOL, changed], [PROFILES["balanced"], outside], [False, True])
    for choice, verdict, tool, profile, caller_asks in cases:
        outcome = decide(
            tool,
            GateDecision(verdict, 1, "said so"),
            profile,
            ruling=Ruling(choice, None, 1),
            require_human_approval=caller_asks,
        )
        voices = [STRICTNESS[CHOSEN[choice]], STRICTNESS[verdict], int(tool is changed or caller_asks)]
        assert STRICTNESS[outcome.decision] == max(*voices, 2 if profile is outside else 0)


def test_the_rule_is_among_the_reasons() -> None:
    reasons = [decide(TOOL, FINE, PROFILES["balanced"], ruling=ruling).reason for ruling in (ALLOW, ASK, DENY)]
    assert [reason.removesuffix(" (policy rule 1)") for reason in reasons] == [
        "fine; the policy file allows it",
        "the policy file asks for a human",
        "the policy file refuses it",
    ]


# ---------------------------------------------------------------------------------------------------------------------
# In the gate


class Bench:
    """A gate with a policy that can be changed."""

    def __init__(self, *rules: Any, **said: Any) -> None:
        self.judge = FakeJudge()
        self.source = FakePolicySource()
        self.write(*rules, **said)
        self.store = SqlPolicyStore(SqlDatabase())
        self.gate = SafetyGate(self.judge, self.store, rules=PolicyRules(self.source, FakePaths()))

    def write(self, *rules: Any, **said: Any) -> None:
        self.source.policy = a_policy(rules=list(rules), **said)

    async def decided(self, tool: ToolDescription = TOOL, chosen: str | None = None, **args: Any) -> str:
        request = ToolCallRequest(tool.name, tool.kind, args, target_tool=tool)
        return (await self.gate.evaluate(None, request, GateContext(chosen))).decision

    async def offered(self, tool: ToolDescription) -> tuple[str, str]:
        decision = await self.gate.offer(tool, None)
        return decision.decision, decision.reason


ALLOW_FILES = {"tools": ["files/*"], "decide": "allow"}


async def test_the_judge_is_not_shown_what_the_file_refuses() -> None:
    bench = Bench({"tools": ["files/*"], "decide": "deny"})
    assert await bench.decided(path="a") == "deny"
    assert bench.judge.requests == []


async def test_the_file_names_the_profile_unless_the_run_chose_one() -> None:
    bench = Bench(profile="fast")
    assert await bench.decided() == "allow"
    assert await bench.decided(chosen="balanced") == "needs_human"
    assert (bench.gate.policy.profile_name(None), bench.gate.policy.profile_name("strict")) == ("fast", "strict")


async def test_the_scopes_of_the_file_are_the_profiles() -> None:
    bench = Bench(ALLOW_FILES, profile="strict", scopes=["mcp:files/*"])
    assert await bench.decided() == "allow"
    assert await bench.decided(ToolDescription("other/x", "mcp")) == "deny"
    assert await bench.decided(ToolDescription("pay", "function")) == "deny"
    bench.write(ALLOW_FILES, profile="strict")
    assert await bench.decided() == "deny"
    bench.write(ALLOW_FILES, scopes=[])
    assert await bench.decided() == "deny"


SEARCH = ToolDescription("web_search", "function")


async def test_a_hosted_tool_is_refused_where_a_human_would_be_asked() -> None:
    cases: list[tuple[Any, str]] = [
        ({"tools": ["function/web_*"], "decide": "allow"}, "allow"),
        ({"tools": ["function/web_*"], "decide": "deny"}, "deny"),
        ({"tools": ["function/web_*"], "decide": "ask"}, "deny"),
        ({"tools": ["function/web_*"], "risk": 3}, "deny"),
        ({"tools": ["*"], "when": {"query": "*"}, "decide": "deny"}, "allow"),
    ]
    for rule, offered in cases:
        assert (await Bench(rule).offered(SEARCH))[0] == offered


async def test_the_decision_on_a_hosted_tool_has_its_reasons() -> None:
    asks, lowered = {"tools": ["*"], "decide": "ask", "reason": "careful"}, {"tools": ["*"], "risk": 1}
    decision, reason = await Bench(asks).offered(SEARCH)
    assert (decision, reason) == ("deny", "careful (policy rule 1); the provider runs it unasked")
    unasked = (await Bench(asks).gate.offer(SEARCH, None)).reasons[-1]
    assert unasked == Reason("provider", "deny", {"profile": "balanced"})
    runs = ("allow", "in scope of the profile strict, run by the provider")
    risky = replace(SEARCH, risk_level=4)
    assert await Bench(lowered, profile="strict").offered(risky) == runs
    assert await Bench(profile="strict").offered(risky) == runs


async def test_an_approved_call_is_refused_if_the_file_denies_it_by_now() -> None:
    gate = Bench({"tools": ["files/*"], "when": {"path": "/etc/*"}, "decide": "deny"}).gate
    refusal = await gate.denial(TOOL, {"path": "/etc/a"}, None)
    assert refusal is not None
    assert refusal.decision == "deny"
    assert await gate.denial(TOOL, {"path": "/tmp/a"}, None) is None


async def test_a_hosted_tool_outside_the_scopes_is_refused() -> None:
    decision, reason = await Bench(scopes=["mcp:*"]).offered(SEARCH)
    assert (decision, reason) == ("deny", "function:web_search is outside the scopes of the profile balanced")


async def test_a_path_to_the_guards_own_files_asks_whatever_a_rule_says() -> None:
    source = FakePolicySource(*a_policy(rules=[{"tools": ["*"], "decide": "allow"}]).rules)
    rules = PolicyRules(source, FakePaths(), own_files=["/var/policy.yaml"])
    gate = SafetyGate(FakeJudge(), SqlPolicyStore(SqlDatabase()), rules=rules)

    async def decided(**args: Any) -> GateDecision:
        request = ToolCallRequest("files/write", "mcp", args, target_tool=TOOL)
        return await gate.evaluate(None, request, GateContext())

    assert (await decided(path="/tmp/a")).decision == "allow"
    own = await decided(path="/var/policy.yaml")
    assert own.decision == "needs_human"
    assert own.reason == "a path leads to the policy file, the store or the configuration of a client"
    assert (await decided(path="~/.claude.json")).decision == "needs_human"
    source.policy = a_policy(rules=[{"tools": ["*"], "decide": "deny"}])
    assert (await decided(path="/var/policy.yaml")).decision == "deny"


def test_a_decision_in_doubt_says_so() -> None:
    rule = {"tools": ["*"], "when": {"path": "/etc/**"}, "decide": "deny"}
    for said, reason in (({}, "the policy file refuses it"), ({"reason": "not there"}, "not there")):
        source = FakePolicySource(*a_policy(rules=[{**rule, **said}]).rules)
        ruling = PolicyRules(source, FakePaths()).ruling(TOOL, {"path": "secret/x.txt"})
        decision = decide(TOOL, FINE, PROFILES["balanced"], ruling=ruling)
        doubt = "because it is not clear which file a path means"
        assert (decision.decision, decision.reason) == ("deny", f"{reason} (policy rule 1), {doubt}")


@pytest.mark.parametrize(
    ("ruling", "reason"),
    [
        (
            Ruling("ask", None, 3, would_allow=1),
            Reason("rule", "needs_human", {"rule": 3, "text": "", "would_allow": 1}),
        ),
        (
            Ruling(None, None, 0, would_allow=1),
            Reason("profile", "needs_human", {"risk": 3, "profile": "balanced", "would_allow": 1}),
        ),
    ],
)
def test_a_decision_names_the_rule_that_would_allow_a_clear_path(ruling: Ruling, reason: Reason) -> None:
    assert decide(TOOL, None, PROFILES["balanced"], ruling=ruling).reasons == (reason,)
