"""What every guard must do, asked of the fake that engines are tried with and of the guard of a run."""

from collections.abc import Callable, Collection

import pytest

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.agents.runs.ports import TurnLedger
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.profiles import PolicyProfile
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyGate
from openai_responses_mcp.gate.secrets.masking import Masking
from tests.agents.fake_stores import FakeExecutionLogStore, FakePolicyStore
from tests.agents.fakes import ASK, DENY, FakeClock, FakeJudge, FakeLedger, code_of, within

LOOK = PlannedCall("l-1", ToolDescription("look", "function", definition_hash="look"), {"what": "here"})
PAY = PlannedCall("p-1", ToolDescription("pay", "function", definition_hash="pay"), {"amount": 5})
CATALOGUE = [LOOK.tool, PAY.tool]

Make = Callable[[Collection[str], Collection[str]], TurnLedger]


def fake(asks: Collection[str], denies: Collection[str]) -> TurnLedger:
    return FakeLedger(asks=asks, denies=denies)


def of_a_run(asks: Collection[str], denies: Collection[str]) -> TurnLedger:
    judge, policies, masking = FakeJudge(), FakePolicyStore(), Masking({})
    policies.profiles["balanced"] = PolicyProfile("balanced", 2, 5, ("function:look", "function:pay"))
    for name in asks:
        judge.on(name, ASK)
    for name in denies:
        judge.on(name, DENY)
    audit = AuditLog(FakeExecutionLogStore(), FakeClock(), masking)
    return RunLedger("r1", SafetyGate(judge, policies), audit, masking, GateContext("balanced"))


@pytest.fixture(params=[pytest.param(fake, id="fake"), pytest.param(of_a_run, id="run")])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


async def judged(guard: TurnLedger, *calls: PlannedCall) -> None:
    await within(guard.judge(None, calls, CATALOGUE))


async def start(guard: TurnLedger, call: PlannedCall) -> None:
    await within(guard.starting(call.call_id, call.tool, call.args))


async def test_a_call_that_was_let_through_runs_once(make: Make) -> None:
    guard = make((), ())
    await judged(guard, LOOK)
    assert not guard.is_waiting("l-1")
    await start(guard, LOOK)
    assert not guard.is_waiting("l-1")
    await guard.finished("l-1", "saw here")
    result = guard.result_of("l-1")
    assert result is not None
    assert (result.tool_name, result.args, result.output) == ("look", {"what": "here"}, "saw here")
    assert await code_of(start(guard, LOOK)) == "AGENTS-E-GATE-DENIED"


async def test_a_call_that_was_never_judged_does_not_run(make: Make) -> None:
    guard = make((), ())
    assert guard.is_waiting("l-1")
    assert await code_of(start(guard, LOOK)) == "AGENTS-E-GATE-DENIED"
    assert guard.refusal is not None


@pytest.mark.parametrize(
    "other",
    [
        PlannedCall("l-1", LOOK.tool, {"what": "there"}),
        PlannedCall("l-1", ToolDescription("look", "function", definition_hash="changed"), LOOK.args),
    ],
)
async def test_a_call_runs_only_as_it_was_judged(make: Make, other: PlannedCall) -> None:
    guard = make((), ())
    await judged(guard, LOOK)
    assert await code_of(start(guard, other)) == "AGENTS-E-GATE-DENIED"


async def test_a_turn_waits_as_a_whole(make: Make) -> None:
    guard = make(["pay"], ())
    await judged(guard, LOOK, PAY)
    assert guard.is_waiting("l-1")
    assert guard.is_waiting("p-1")
    assert await code_of(start(guard, LOOK)) == "AGENTS-E-GATE-DENIED"


async def test_a_turn_is_refused_as_a_whole(make: Make) -> None:
    guard = make((), ["pay"])
    assert await code_of(judged(guard, LOOK, PAY)) == "AGENTS-E-GATE-DENIED"
    assert guard.refusal is not None
    assert guard.is_waiting("l-1")
    assert await code_of(start(guard, LOOK)) == "AGENTS-E-GATE-DENIED"


async def test_a_turn_that_was_let_through_may_be_judged_again(make: Make) -> None:
    guard = make((), ())
    await judged(guard, LOOK)
    await judged(guard, LOOK)
    assert not guard.is_waiting("l-1")


def test_the_first_refusal_stands(make: Make) -> None:
    guard = make((), ())
    assert guard.refusal is None
    first, second = AgentsError("AGENTS-E-GATE-DENIED", "one"), AgentsError("AGENTS-E-GATE-DENIED", "two")
    assert (guard.refuse(first), guard.refuse(second)) == (first, second)
    assert guard.refusal is first


async def test_what_failed_has_its_error_as_result(make: Make) -> None:
    guard = make((), ())
    await judged(guard, LOOK)
    await start(guard, LOOK)
    await guard.finished("l-1", None, error="RuntimeError: no luck")
    result = guard.result_of("l-1")
    assert result is not None
    assert result.output == "RuntimeError: no luck"


async def test_a_suspended_call_has_not_finished(make: Make) -> None:
    guard = make((), ())
    await judged(guard, LOOK)
    await start(guard, LOOK)
    await guard.suspend("l-1")
    await guard.finished("l-1", "too early")
    assert guard.result_of("l-1") is None


async def test_a_hosted_tool_is_in_scope_or_refused(make: Make) -> None:
    guard = make((), ["web_search"])
    await within(guard.offer_hosted(None, LOOK.tool))
    assert guard.refusal is None
    assert await code_of(guard.offer_hosted(None, ToolDescription("web_search", "function"))) == "AGENTS-E-GATE-DENIED"
    assert guard.refusal is not None


def test_a_call_can_be_shown_before_it_ran(make: Make) -> None:
    shown = make((), ()).shown(LOOK)
    assert (shown.tool_call_id, shown.tool_name, shown.tool_kind, shown.args, shown.output) == (
        "l-1", "look", "function", {"what": "here"}, None,
    )  # fmt: skip


async def test_a_call_that_no_human_refused_or_changed_is_as_it_was(make: Make) -> None:
    guard = make(["pay"], ())
    await judged(guard, LOOK, PAY)
    for call_id in ("l-1", "p-1", "nobody"):
        assert guard.told(call_id) is None
        assert guard.changed(call_id) is None


async def test_what_models_use_is_told_at_any_time(make: Make) -> None:
    guard = make((), ())
    await within(guard.used_tokens(0))
    await within(guard.used_tokens(1_000_000))
    assert guard.refusal is None
