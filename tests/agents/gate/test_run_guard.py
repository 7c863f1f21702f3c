"""The guard of one run at the tool itself, and what it keeps over a pause."""

from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents.adapters.mcp.guarded_tools import guarded_mcp_tools
from openai_responses_mcp.agents.adapters.sdk.guard_hooks import GuardHooks
from openai_responses_mcp.agents.adapters.sdk.takeover import Takeover
from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_log import SqlExecutionLogStore
from openai_responses_mcp.agents.adapters.stores.sql_stores import SqlPolicyStore
from openai_responses_mcp.agents.audit.log import AuditLog
from openai_responses_mcp.agents.calls import PlannedCall, ToolDescription
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.run_guard import RunGuard
from openai_responses_mcp.agents.gate.safety_gate import GateContext, SafetyGate
from openai_responses_mcp.agents.secrets.masking import Masking
from tests.agents.fakes import FakeClock, FakeJudge, code_of

TOOL = ToolDescription("pay", "function", definition_hash="d1")
CALL = PlannedCall("c1", TOOL, {"amount": 5})


@pytest.fixture
def guard(clock: FakeClock) -> RunGuard:
    database, masking = SqlDatabase(), Masking({})
    gate = SafetyGate(FakeJudge(), SqlPolicyStore(database))
    return RunGuard("r1", gate, AuditLog(SqlExecutionLogStore(database), clock, masking), masking, GateContext("fast"))


async def test_a_call_that_nobody_judged_does_not_start(guard: RunGuard) -> None:
    assert guard.is_waiting("c1")
    assert await code_of(guard.starting("c1", TOOL, {"amount": 5})) == "AGENTS-E-GATE-DENIED"
    assert guard.refusal is not None


@pytest.mark.parametrize(
    ("tool", "args"),
    [(TOOL, {"amount": 6}), (ToolDescription("pay", "function", definition_hash="d2"), {"amount": 5})],
)
async def test_a_call_starts_only_as_it_was_judged(guard: RunGuard, tool: ToolDescription, args: Any) -> None:
    await guard.judge(None, [CALL], [TOOL])
    assert not guard.is_waiting("c1")
    assert await code_of(guard.starting("c1", tool, args)) == "AGENTS-E-GATE-DENIED"


async def test_a_call_starts_once(guard: RunGuard) -> None:
    await guard.judge(None, [CALL], [TOOL])
    await guard.starting("c1", TOOL, {"amount": 5})
    assert await code_of(guard.starting("c1", TOOL, {"amount": 5})) == "AGENTS-E-GATE-DENIED"


async def test_a_turn_that_was_let_through_is_not_judged_again(guard: RunGuard) -> None:
    await guard.judge(None, [CALL], [TOOL])
    await guard.judge(None, [CALL], [TOOL])
    assert not guard.is_waiting("c1")


@pytest.mark.parametrize("calls", [[CALL, CALL], [CALL]])
async def test_an_id_that_is_used_twice_is_refused(guard: RunGuard, calls: list[PlannedCall]) -> None:
    if len(calls) == 1:
        await guard.judge(None, calls, [TOOL])
        await guard.starting("c1", TOOL, {"amount": 5})
    assert await code_of(guard.judge(None, calls, [TOOL])) == "AGENTS-E-RUNNER"


async def test_after_a_refusal_no_model_is_asked_any_more(guard: RunGuard) -> None:
    guard.refuse(AgentsError("AGENTS-E-GATE-DENIED", "no"))
    hooks = GuardHooks(Takeover(guard, guarded_mcp_tools), None)
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
        await hooks.on_llm_start(sdk.RunContextWrapper(context=None), sdk.Agent(name="A"), None, [])
