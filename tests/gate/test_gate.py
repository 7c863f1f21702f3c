"""The rule of the gate, and that it fails closed."""

import asyncio
import itertools
import threading
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.gate.calls import AMBIGUOUS, GateDecision, ToolCallRequest, ToolDescription, ToolKind
from openai_responses_mcp.gate.deciding import decide
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.guardrails import create_guardrails_template
from openai_responses_mcp.gate.policy.profiles import PROFILES, PolicyProfile, PolicyStore
from openai_responses_mcp.gate.reasons import Decision
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyAgent, SafetyGate
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_stores import SqlPolicyStore
from tests.agents.fakes import DENY, FakeJudge, code_of, within

FUNCTION = ToolDescription("add", "function")


def allowed(risk: int = 1) -> GateDecision:
    return GateDecision("allow", risk, "fine")


@pytest.mark.parametrize(
    ("profile", "outcomes"),
    [
        ("strict", ["allow", "needs_human", "needs_human", "needs_human", "deny"]),
        ("balanced", ["allow", "allow", "needs_human", "needs_human", "deny"]),
        ("fast", ["allow", "allow", "allow", "needs_human", "deny"]),
    ],
)
def test_each_profile_draws_its_lines_on_the_risk_level(profile: str, outcomes: list[str]) -> None:
    decided = [decide(FUNCTION, allowed(risk), PROFILES[profile]).decision for risk in range(1, 6)]
    assert decided == outcomes


@pytest.mark.parametrize(("kind", "risk"), [("function", 1), ("skill", 2), ("mcp", 3)])
def test_an_undeclared_risk_depends_on_the_kind(kind: ToolKind, risk: int) -> None:
    assert decide(ToolDescription("a/b", kind), allowed(), PROFILES["fast"]).risk_level == risk


@pytest.mark.parametrize(("own", "judged", "counted"), [(4, 2, 4), (1, 3, 3), (None, 1, 1)])
def test_the_greater_risk_counts(own: int | None, judged: int, counted: int) -> None:
    tool = ToolDescription("add", "function", risk_level=own)
    assert decide(tool, allowed(judged), PROFILES["fast"]).risk_level == counted


def test_the_strictest_of_all_voices_wins() -> None:
    order: dict[Decision, int] = {"allow": 0, "needs_human": 1, "deny": 2}
    verdicts: list[Decision] = ["allow", "needs_human", "deny"]
    for verdict, tool_asks, caller_asks in itertools.product(verdicts, [False, True], [False, True]):
        tool = replace(FUNCTION, require_approval=tool_asks)
        judged = GateDecision(verdict, 1, "said so")
        outcome = decide(tool, judged, PROFILES["balanced"], require_human_approval=caller_asks)
        expected = max(order[verdict], int(tool_asks or caller_asks))
        assert order[outcome.decision] == expected


@pytest.mark.parametrize(
    ("profile", "tool", "decision"),
    [
        (PROFILES["strict"], ToolDescription("github/read", "mcp", risk_level=1), "deny"),
        (PROFILES["balanced"], ToolDescription("github/read", "mcp", risk_level=1), "allow"),
        (
            PolicyProfile("strict", 1, 5, ("mcp:github/*",)),
            ToolDescription("github/read", "mcp", risk_level=1),
            "allow",
        ),
        (PolicyProfile("strict", 1, 5, ("mcp:github/*",)), ToolDescription("gitlab/read", "mcp", risk_level=1), "deny"),
        (PolicyProfile("strict", 1, 5, ("mcp:github/re*",)), ToolDescription("github/*", "mcp", risk_level=1), "deny"),
        (PolicyProfile("strict", 1, 5, ()), FUNCTION, "deny"),
        (PolicyProfile("strict", 1, 5, ("*:add",)), FUNCTION, "allow"),
        (PolicyProfile("strict", 1, 5, ("function:ADD",)), FUNCTION, "deny"),
    ],
)
def test_what_is_outside_the_scopes_is_refused(profile: PolicyProfile, tool: ToolDescription, decision: str) -> None:
    assert decide(tool, allowed(), profile).decision == decision


def test_a_decision_says_why() -> None:
    tool = replace(FUNCTION, require_approval=True)
    outcome = decide(tool, allowed(3), PROFILES["balanced"], require_human_approval=True)
    assert outcome.reason == (
        "risk 3 needs a human under the profile balanced; the tool asks for approval; the caller asks for approval"
    )


@pytest.mark.parametrize("verdict", ["allow", "needs_human", "deny"])
def test_no_verdict_and_no_human_can_allow_what_the_profile_refuses(verdict: Decision) -> None:
    nowhere = PolicyProfile("fast", 3, 5, ())
    tool = replace(FUNCTION, require_approval=True)
    outcome = decide(tool, GateDecision(verdict, 5, ""), nowhere, require_human_approval=True)
    assert (outcome.decision, outcome.risk_level) == ("deny", 5)
    assert outcome.reason == (
        "function:add is outside the scopes of the profile fast; risk 5 is refused by the profile fast"
    )


# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def policies() -> PolicyStore:
    return SqlPolicyStore(SqlDatabase())


def a_request(tool: ToolDescription | None = FUNCTION, **args: Any) -> ToolCallRequest:
    return ToolCallRequest("add", "function", args, target_tool=tool)


async def test_the_judge_is_asked_with_the_profile_in_force(policies: PolicyStore) -> None:
    seen: list[PolicyProfile] = []

    def judge(agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        seen.append(policy)
        return allowed()

    await policies.set_profile(PolicyProfile("fast", 0, 2, ("function:*",)))
    decision = await SafetyGate(SafetyAgent(judge), policies).evaluate(None, a_request(), GateContext("fast"))
    assert seen == [PolicyProfile("fast", 0, 2, ("function:*",))]
    assert decision.decision == "needs_human"


async def test_nobody_is_shown_the_arguments_of_a_call_outside_the_scopes(policies: PolicyStore) -> None:
    judge = FakeJudge()
    request = a_request(ToolDescription("github/read", "mcp"))
    decision = await SafetyGate(judge, policies).evaluate(None, request, GateContext("strict"))
    assert (decision.decision, judge.requests) == ("deny", [])
    assert decision.reason == "mcp:github/read is outside the scopes of the profile strict"


async def test_a_tool_rule_refuses_before_the_judge_is_asked(policies: PolicyStore) -> None:
    judge = FakeJudge()
    rules = create_guardrails_template(tool_rules=["rm -rf"])
    work = SafetyGate(judge, policies).evaluate(None, a_request(x="rm -rf /"), GateContext("fast", guardrails=rules))
    assert await code_of(work) == "AGENTS-E-GUARDRAIL-DENIED"
    assert judge.requests == []


async def test_a_call_of_no_known_tool_is_refused(policies: PolicyStore) -> None:
    work = SafetyGate(FakeJudge(), policies).evaluate(None, a_request(None), GateContext("fast"))
    assert await code_of(work) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"


async def test_a_call_that_could_be_read_in_two_ways_is_refused(policies: PolicyStore) -> None:
    judge = FakeJudge()
    request = replace(a_request(), args={AMBIGUOUS: '{"a": 1, "a": 2}'})
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED: The arguments of the call could be read in more"):
        await SafetyGate(judge, policies).evaluate(None, request, GateContext())
    assert judge.requests == []


async def test_a_name_that_could_be_taken_for_another_is_refused(policies: PolicyStore) -> None:
    tool = replace(FUNCTION, parameters={"allOf": [{"properties": {"path": {"type": "string"}}}]})
    gate = SafetyGate(FakeJudge(), policies)
    with pytest.raises(AgentsError, match="could be taken for"):
        await gate.evaluate(None, a_request(tool, Path="/etc/passwd"), GateContext())


async def test_an_unknown_profile_is_refused(policies: PolicyStore) -> None:
    work = SafetyGate(FakeJudge(), policies).evaluate(None, a_request(), GateContext("lenient"))
    assert await code_of(work) == "AGENTS-E-POLICY-INVALID"


async def test_a_profile_that_cannot_be_read_refuses_everything() -> None:
    class Broken(PolicyStore):
        async def get_profile(self, name: str) -> PolicyProfile:
            raise StoreUnavailable("gone")

        async def set_profile(self, profile: PolicyProfile) -> None: ...

    work = SafetyGate(FakeJudge(), Broken()).evaluate(None, a_request(), GateContext("fast"))
    assert await code_of(work) == "AGENTS-E-GATE-EVAL"


def raises(agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
    raise RuntimeError("my key is sk-verysecretindeed")


async def hangs(agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
    await asyncio.Event().wait()
    raise AssertionError


BROKEN_JUDGES: dict[str, Any] = {
    "raises": raises,
    "hangs": hangs,
    "nothing": lambda *_: None,
    "junk": lambda *_: "allow",
    "empty": lambda *_: {},
    "no reason": lambda *_: {"decision": "allow", "risk_level": 1},
    "risk 0": lambda *_: {"decision": "allow", "risk_level": 0, "reason": ""},
    "risk 6": lambda *_: {"decision": "allow", "risk_level": 6, "reason": ""},
    "risk true": lambda *_: {"decision": "allow", "risk_level": True, "reason": ""},
    "risk 1.0": lambda *_: {"decision": "allow", "risk_level": 1.0, "reason": ""},
    "risk text": lambda *_: {"decision": "allow", "risk_level": "1", "reason": ""},
    "unknown decision": lambda *_: {"decision": "maybe", "risk_level": 1, "reason": ""},
    "decision list": lambda *_: {"decision": ["allow"], "risk_level": 1, "reason": ""},
    "reason number": lambda *_: {"decision": "allow", "risk_level": 1, "reason": 5},
}


@pytest.mark.parametrize("name", BROKEN_JUDGES)
async def test_whatever_is_no_verdict_is_a_refusal(policies: PolicyStore, name: str) -> None:
    judge = SafetyAgent(BROKEN_JUDGES[name], timeout_seconds=0.05)
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-EVAL") as caught:
        await SafetyGate(judge, policies).evaluate(None, a_request(), GateContext("fast"))
    assert "sk-very" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises", "The judge failed with RuntimeError"),
        ("hangs", "The judge took too long"),
        ("junk", "The judge returned str, not a verdict"),
        ("no reason", "The verdict lacks reason"),
        ("empty", "The verdict lacks decision, risk_level, reason"),
    ],
)
async def test_a_refusal_says_how_the_judge_failed(policies: PolicyStore, name: str, said: str) -> None:
    judge = SafetyAgent(BROKEN_JUDGES[name], timeout_seconds=0.05 if name == "hangs" else None)
    with pytest.raises(AgentsError) as caught:
        await SafetyGate(judge, policies).evaluate(None, a_request(), GateContext("fast"))
    assert caught.value.message.startswith(said)


async def failing(*_: Any) -> GateDecision:
    raise LookupError("no such rule:\n\x1b[2J 5, my key is sk-0123456789abcdef")


async def failing_over_a_failure(*_: Any) -> GateDecision:
    raise LookupError("no such rule") from OSError("no such file")


@pytest.mark.parametrize(
    ("judge", "failure"),
    [
        (SafetyAgent(failing_over_a_failure), "LookupError: no such rule"),
        (SafetyAgent(lambda *_: PROFILES["x" * 498]), f"KeyError: '{'x' * 498}'"),
        (SafetyAgent(failing), "LookupError: no such rule:  [2J 5, my key is ‹sk-…, 19 characters›"),
        (SafetyAgent(lambda *_: [][0]), "IndexError: list index out of range"),
        (SafetyAgent(lambda *_: PROFILES["x" * 600]), f"KeyError: '{'x' * 498}…"),
        (SafetyAgent(lambda *_: next(iter(()))), "StopIteration"),
        (
            SafetyAgent(lambda *_: PolicyProfile("lenient", 1, 2, ())),  # type: ignore[arg-type]
            "AgentsError: AGENTS-E-POLICY-INVALID: a profile is called one of ('strict', 'balanced', 'fast')",
        ),
    ],
)
async def test_a_judge_that_fails_says_how(
    policies: PolicyStore, caplog: pytest.LogCaptureFixture, judge: SafetyAgent, failure: str
) -> None:
    with caplog.at_level("DEBUG", "openai_responses_mcp"), pytest.raises(AgentsError) as caught:
        await SafetyGate(judge, policies, Masking({})).evaluate(None, a_request(), GateContext("fast"))
    assert caught.value.message == f"The judge failed with {failure}"
    assert "Traceback (most recent call last)" in caplog.text
    assert "test_gate.py" in caplog.text
    assert "sk-0123" not in caplog.text
    assert {record.name for record in caplog.records} == {"openai_responses_mcp.agents"}


async def test_a_verdict_that_is_none_says_what_is_wrong_with_it(policies: PolicyStore) -> None:
    with pytest.raises(AgentsError, match="The verdict lacks risk_level, reason"):
        await SafetyGate(SafetyAgent(lambda *_: {"decision": "allow"}), policies).evaluate(
            None, a_request(), GateContext("fast")
        )


async def test_the_judge_is_shown_real_secrets_as_what_they_are_and_rules_the_texts_themselves(
    policies: PolicyStore,
) -> None:
    judge, seen = FakeJudge(), list[Any]()
    schema = {"properties": {"password": {"type": "string"}}}
    request = replace(
        a_request(replace(FUNCTION, parameters=schema), password="hunter2", command="ls --password=$(touch x)"),
        user_intent="use very-private-value",
    )
    rules = create_guardrails_template(tool_rules=[lambda call: seen.append(call.args)])
    gate = SafetyGate(judge, policies, Masking({"MY_KEY": "very-private-value"}))
    await gate.evaluate(None, request, GateContext("fast", guardrails=rules))
    assert judge.requests[0].args == {"password": "‹password, 7 characters›", "command": "ls --password=$(touch x)"}
    assert judge.requests[0].user_intent == "use ‹MY_KEY›"
    assert seen[0]["password"] == "hunter2"


async def test_judges_that_never_return_do_not_keep_others_waiting(policies: PolicyStore) -> None:
    released = threading.Event()

    def stuck(*_: Any) -> GateDecision:
        released.wait()
        return allowed()

    gate = SafetyGate(SafetyAgent(stuck, timeout_seconds=0.05), policies)
    work = [code_of(gate.evaluate(None, a_request(), GateContext("fast"))) for _ in range(40)]
    assert set(await asyncio.gather(*work)) == {"AGENTS-E-GATE-EVAL"}
    assert await asyncio.to_thread(lambda: "free") == "free"
    released.set()


async def test_a_judge_that_never_returns_does_not_keep_the_process_alive(policies: PolicyStore) -> None:
    threads: list[threading.Thread] = []

    def judge(*_: Any) -> GateDecision:
        threads.append(threading.current_thread())
        return allowed()

    await SafetyGate(SafetyAgent(judge), policies).evaluate(None, a_request(), GateContext("fast"))
    assert [(thread.daemon, thread.name) for thread in threads] == [(True, "agents-judge")]


async def test_a_judge_that_wants_to_leave_is_a_refusal(policies: PolicyStore) -> None:
    def leaves(*_: Any) -> GateDecision:
        raise SystemExit

    work = SafetyGate(SafetyAgent(leaves), policies).evaluate(None, a_request(), GateContext("fast"))
    assert await code_of(work) == "AGENTS-E-GATE-EVAL"


async def test_a_judge_that_says_it_was_cancelled_is_a_refusal(policies: PolicyStore) -> None:
    async def gives_up(*_: Any) -> GateDecision:
        raise asyncio.CancelledError

    for judge in (SafetyAgent(gives_up), SafetyAgent(lambda *_: gives_up())):
        work = SafetyGate(judge, policies).evaluate(None, a_request(), GateContext("fast"))
        assert await code_of(work) == "AGENTS-E-GATE-EVAL"


async def test_a_run_that_is_cancelled_while_the_judge_thinks_is_cancelled(policies: PolicyStore) -> None:
    asked = asyncio.Event()

    async def thinks(*_: Any) -> GateDecision:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    work = SafetyGate(SafetyAgent(thinks), policies).evaluate(None, a_request(), GateContext("fast"))
    task = asyncio.ensure_future(work)
    await within(asked.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)


async def test_an_async_judge_that_wants_to_leave_is_a_refusal(policies: PolicyStore) -> None:
    async def leaves(*_: Any) -> GateDecision:
        raise SystemExit

    work = SafetyGate(SafetyAgent(leaves), policies).evaluate(None, a_request(), GateContext("fast"))
    assert await code_of(work) == "AGENTS-E-GATE-EVAL"


async def test_a_judge_of_another_class_is_checked_as_well(policies: PolicyStore) -> None:
    class Sloppy(FakeJudge):
        async def evaluate(self, agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> Any:
            return "yes"

    work = SafetyGate(Sloppy(), policies).evaluate(None, a_request(), GateContext("fast"))
    assert await code_of(work) == "AGENTS-E-GATE-EVAL"


async def test_a_judge_of_another_class_has_a_limit_too(policies: PolicyStore) -> None:
    class Endless(FakeJudge):
        async def evaluate(self, agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> Any:
            await asyncio.Event().wait()

    gate = SafetyGate(Endless(), policies, limit_seconds=0.05)
    with pytest.raises(AgentsError, match=r"^AGENTS-E-GATE-EVAL: The judge took too long$"):
        await gate.evaluate(None, a_request(), GateContext("fast"))


async def test_verdicts_may_be_sync_async_and_mappings(policies: PolicyStore) -> None:
    async def slow(*_: Any) -> dict[str, Any]:
        return {"decision": "deny", "risk_level": 2, "reason": "no", "more": "ignored"}

    for judge in (SafetyAgent(slow), SafetyAgent(lambda *_: slow()), SafetyAgent(lambda *_: DENY)):
        decision = await SafetyGate(judge, policies).evaluate(None, a_request(), GateContext("fast"))
        assert decision.decision == "deny"


async def test_allow_all_allows(policies: PolicyStore) -> None:
    decision = await SafetyGate(SafetyAgent.allow_all(), policies).evaluate(None, a_request(), GateContext("strict"))
    assert decision == GateDecision("allow", 1, "everything is allowed")


def test_a_safety_agent_needs_a_callable() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        SafetyAgent("allow")  # type: ignore[arg-type]
