"""The rule of the gate, and how it fails closed."""

import asyncio
import itertools
import threading
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.gate.calls import GateDecision, ToolCallRequest, ToolDescription, ToolKind
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.guardrails import create_guardrails_template
from openai_responses_mcp.gate.policy.rules import PROFILES, PolicyProfile, PolicyStore
from openai_responses_mcp.gate.policy.ruling import Ruling
from openai_responses_mcp.gate.reasons import Decision, Reason, Voice
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyAgent, SafetyGate, decide, failed
from openai_responses_mcp.gate.schema.checking import SchemaChecker
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


def test_the_greater_risk_counts_and_an_undeclared_one_depends_on_the_kind_of_tool() -> None:
    cases: list[tuple[ToolKind, int | None, int, int]] = [
        ("function", 4, 2, 4),
        ("function", 1, 3, 3),
        ("function", None, 1, 1),
        ("skill", None, 1, 2),
        ("mcp", None, 1, 3),
    ]
    for kind, own, judged, counted in cases:
        tool = ToolDescription("a/b", kind, risk_level=own)
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


def test_a_tool_outside_the_scopes_is_refused() -> None:
    cases: list[tuple[tuple[str, ...], str, str]] = [
        (("mcp:github/*",), "github/read", "allow"),
        (("mcp:github/*", "mcp:GITLAB/*"), "gitlab/read", "deny"),
        (("mcp:github/re*",), "github/*", "deny"),
        ((), "github/read", "deny"),
        (("*:github/read",), "github/read", "allow"),
    ]
    for scopes, tool, decision in cases:
        profile = PolicyProfile("strict", 1, 5, scopes)
        assert decide(ToolDescription(tool, "mcp", risk_level=1), allowed(), profile).decision == decision


def test_a_decision_says_why() -> None:
    silent = decide(FUNCTION, GateDecision("allow", 1, ""), PROFILES["balanced"])
    assert [reason.voice for reason in silent.reasons] == ["profile"]
    tool = replace(FUNCTION, require_approval=True)
    outcome = decide(tool, allowed(3), PROFILES["balanced"], require_human_approval=True)
    assert outcome.reason == (
        "risk 3 needs a human under the profile balanced; the tool asks for approval; the caller asks for approval"
    )


def test_each_voice_is_recorded_with_its_facts() -> None:
    outcome = decide(FUNCTION, allowed(), PROFILES["balanced"], ruling=Ruling(None, 3, 7))
    asks = Reason("profile", "needs_human", {"risk": 3, "profile": "balanced", "rule": 7})
    assert outcome.reasons == (Reason("judge", "allow", {"risk": 1, "text": "fine"}), asks)


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
# The gate around it


def a_request(tool: ToolDescription | None = FUNCTION, **args: Any) -> ToolCallRequest:
    return ToolCallRequest("add", "function", args, target_tool=tool)


def a_gate(judge: Any = None, **options: Any) -> SafetyGate:
    """`judge` is a judge, or what a `SafetyAgent` takes."""
    agent = SafetyAgent(judge) if callable(judge) else judge or FakeJudge()
    return SafetyGate(agent, SqlPolicyStore(SqlDatabase()), **options)


async def refusal(gate: SafetyGate, request: ToolCallRequest | None = None, **context: Any) -> AgentsError:
    with pytest.raises(AgentsError) as caught:
        await within(gate.evaluate(None, request or a_request(), GateContext(**{"policy_profile": "fast", **context})))
    return caught.value


async def test_the_judge_is_asked_with_the_profile_in_force() -> None:
    seen: list[PolicyProfile] = []

    def judge(agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        seen.append(policy)
        return allowed()

    policies = SqlPolicyStore(SqlDatabase())
    await policies.set_profile(PolicyProfile("fast", 0, 2, ("function:*",)))
    decision = await SafetyGate(SafetyAgent(judge), policies).evaluate(None, a_request(), GateContext("fast"))
    assert seen == [PolicyProfile("fast", 0, 2, ("function:*",))]
    assert decision.decision == "needs_human"


async def test_a_call_outside_the_scopes_is_refused_without_the_judge() -> None:
    judge = FakeJudge()
    request = a_request(ToolDescription("github/read", "mcp"))
    decision = await a_gate(judge).evaluate(None, request, GateContext("strict"))
    assert (decision.decision, judge.requests) == ("deny", [])
    assert decision.reason == "mcp:github/read is outside the scopes of the profile strict"


CASED = replace(FUNCTION, parameters={"allOf": [{"properties": {"path": {"type": "string"}}}]})


async def test_a_call_that_cannot_be_decided_on_is_refused_without_the_judge() -> None:
    cases: list[tuple[ToolCallRequest, dict[str, Any], str]] = [
        (a_request(None), {}, "AGENTS-E-AGENT-CAPABILITY-RESOLVE: add is not a tool of this agent"),
        (a_request(FUNCTION, **{"<ambiguous>": "{}"}), {}, "AGENTS-E-GATE-DENIED: The arguments of the call could be read in more than one way"),
        (a_request(CASED, Path="/etc/passwd"), {}, 'AGENTS-E-GATE-DENIED: The name of an argument is not clear: "Path" could'),
        (a_request(), {"policy_profile": "lenient"}, "AGENTS-E-POLICY-INVALID"),
        (a_request(x="rm -rf /"), {"guardrails": create_guardrails_template(tool_rules=["rm -rf"])}, "AGENTS-E-GUARDRAIL-DENIED"),
    ]  # fmt: skip
    for request_, context, error in cases:
        judge = FakeJudge()
        assert str(await refusal(a_gate(judge), request_, **context)).startswith(error)
        assert judge.requests == []


async def test_a_profile_that_cannot_be_read_refuses_everything() -> None:
    class Broken(PolicyStore):
        async def get_profile(self, name: str) -> PolicyProfile:
            raise StoreUnavailable("gone")

        async def set_profile(self, profile: PolicyProfile) -> None: ...

    failure = await refusal(SafetyGate(FakeJudge(), Broken()))
    assert str(failure) == "AGENTS-E-GATE-EVAL: The policy profile cannot be read: gone"


@pytest.mark.parametrize(
    ("code", "voice"), [("AGENTS-E-GUARDRAIL-DENIED", "guardrail"), ("AGENTS-E-GATE-EVAL", "failure")]
)
def test_an_error_of_the_gate_is_a_refusal_with_its_code(code: str, voice: Voice) -> None:
    refused = failed(4, AgentsError(code, "broken"))
    assert (refused.decision, refused.risk_level) == ("deny", 4)
    assert refused.reasons == (Reason(voice, "deny", {"code": code, "message": "broken"}),)


async def hangs(*_: Any) -> GateDecision:
    await asyncio.Event().wait()
    raise AssertionError


def leaves(*_: Any) -> GateDecision:
    raise SystemExit


async def leaves_later(*_: Any) -> GateDecision:
    raise SystemExit


async def gives_up(*_: Any) -> GateDecision:
    raise asyncio.CancelledError


class Sloppy(FakeJudge):
    async def evaluate(self, agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> Any:
        return "yes"


BROKEN_JUDGES: list[tuple[Any, str]] = [
    (SafetyAgent(hangs, timeout_seconds=0.05), "The judge took too long"),
    (lambda *_: "allow", "The judge returned str, not a verdict"),
    (Sloppy(), "The judge returned str, not a verdict"),
    (lambda *_: {}, "The verdict lacks decision, risk_level, reason"),
    (lambda *_: {"decision": "allow", "risk_level": 6, "reason": ""}, "a verdict's risk_level is a whole number"),
    (lambda *_: {"decision": ["allow"], "risk_level": 1, "reason": ""}, "a verdict's decision is allow, deny or"),
    (leaves, "The judge failed with SystemExit"),
    (leaves_later, "The judge failed with SystemExit"),
    (gives_up, "The judge failed with CancelledError"),
    (lambda *_: gives_up(), "The judge failed with CancelledError"),
]


async def test_a_judge_without_a_valid_verdict_refuses() -> None:
    for judge, message in BROKEN_JUDGES:
        failure = await refusal(a_gate(judge))
        assert str(failure).startswith(f"AGENTS-E-GATE-EVAL: {message}")


async def failing(*_: Any) -> GateDecision:
    raise LookupError("no such rule:\n\x1b[2J 5, my key is sk-0123456789abcdef")


async def failing_over_a_failure(*_: Any) -> GateDecision:
    raise LookupError("no such rule") from OSError("no such file")


@pytest.mark.parametrize(
    ("judge", "failure"),
    [
        (failing_over_a_failure, "LookupError: no such rule"),
        (lambda *_: PROFILES["x" * 498], f"KeyError: '{'x' * 498}'"),
        (lambda *_: next(iter(())), "StopIteration"),
        (failing, "LookupError: no such rule:  [2J 5, my key is ‹sk-…, 19 characters›"),
        (lambda *_: PROFILES["x" * 600], f"KeyError: '{'x' * 498}…"),
    ],
)
async def test_a_judge_that_fails_says_how_without_a_secret(
    caplog: pytest.LogCaptureFixture, judge: Any, failure: str
) -> None:
    with caplog.at_level("DEBUG", "openai_responses_mcp"):
        error = await refusal(a_gate(judge, masking=Masking({})))
    assert error.message == f"The judge failed with {failure}"
    assert (error.__cause__, error.__context__) == (None, None)
    assert "Traceback (most recent call last)" in caplog.text
    assert "test_gate.py" in caplog.text
    assert "sk-0123" not in caplog.text
    assert {record.name for record in caplog.records} == {"openai_responses_mcp.agents"}


async def test_the_judge_sees_labels_for_secrets_and_rules_see_the_texts() -> None:
    judge, seen = FakeJudge(), list[Any]()
    schema = {"properties": {"password": {"type": "string"}}}
    request = replace(
        a_request(replace(FUNCTION, parameters=schema), password="hunter2", command="ls --password=$(touch x)"),
        user_intent="use very-private-value",
    )
    rules = create_guardrails_template(tool_rules=[lambda call: seen.append(call.args)])
    gate = a_gate(judge, masking=Masking({"MY_KEY": "very-private-value"}))
    await gate.evaluate(None, request, GateContext("fast", guardrails=rules))
    assert judge.requests[0].args == {"password": "‹password, 7 characters›", "command": "ls --password=$(touch x)"}
    assert judge.requests[0].user_intent == "use ‹MY_KEY›"
    assert seen[0]["password"] == "hunter2"


async def test_judges_that_never_return_keep_neither_others_nor_the_process() -> None:
    released, threads = threading.Event(), list[threading.Thread]()

    def stuck(*_: Any) -> GateDecision:
        threads.append(threading.current_thread())
        released.wait(5)
        return allowed()

    gate = a_gate(SafetyAgent(stuck, timeout_seconds=0.05))
    work = [code_of(gate.evaluate(None, a_request(), GateContext("fast"))) for _ in range(40)]
    assert set(await asyncio.gather(*work)) == {"AGENTS-E-GATE-EVAL"}
    assert await asyncio.to_thread(lambda: "free") == "free"
    assert {(thread.daemon, thread.name) for thread in threads} == {(True, "agents-judge")}
    released.set()


async def test_a_run_that_is_cancelled_while_the_judge_thinks_is_cancelled() -> None:
    asked = asyncio.Event()

    async def thinks(*_: Any) -> GateDecision:
        asked.set()
        return await hangs()

    task = asyncio.ensure_future(a_gate(thinks).evaluate(None, a_request(), GateContext("fast")))
    await within(asked.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)


async def test_a_judge_of_another_class_has_a_limit_too() -> None:
    class Endless(FakeJudge):
        async def evaluate(self, agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> Any:
            await asyncio.Event().wait()

    failure = await refusal(a_gate(Endless(), limit_seconds=0.05))
    assert str(failure) == "AGENTS-E-GATE-EVAL: The judge took too long"


async def test_verdicts_may_be_sync_async_and_mappings() -> None:
    async def slow(*_: Any) -> dict[str, Any]:
        return {"decision": "deny", "risk_level": 2, "reason": "no", "more": "ignored"}

    for judge in (slow, lambda *_: slow(), lambda *_: DENY):
        assert (await a_gate(judge).evaluate(None, a_request(), GateContext("fast"))).decision == "deny"


async def test_allow_all_allows() -> None:
    decision = await a_gate(SafetyAgent.allow_all()).evaluate(None, a_request(), GateContext("strict"))
    assert decision == GateDecision("allow", 1, "everything is allowed")


def test_a_gate_checks_schemas_with_the_checker_that_it_is_given() -> None:
    given = SchemaChecker()
    assert a_gate(schemas=given).schemas is given


def test_a_safety_agent_needs_a_callable() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        SafetyAgent("allow")  # type: ignore[arg-type]
