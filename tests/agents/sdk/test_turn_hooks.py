"""The SDK's hooks, where the guard of a run is asked."""

import agents as sdk
import pytest

from openai_responses_mcp.agents.mcp.guarded_tools import guarded_mcp_tools
from openai_responses_mcp.agents.sdk.takeover import Takeover
from openai_responses_mcp.agents.sdk.turn_hooks import TurnHooks
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fake_stores import FakeExecutionLogStore
from tests.agents.fakes import FakeJudge
from tests.agents.runs.guards import guard_on


async def test_after_a_refusal_no_model_is_asked_any_more() -> None:
    guard = guard_on(FakeExecutionLogStore(), FakeJudge())
    guard.refuse(AgentsError("AGENTS-E-GATE-DENIED", "no"))
    hooks = TurnHooks(Takeover(guard, guarded_mcp_tools), None)
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
        await hooks.on_llm_start(sdk.RunContextWrapper(context=None), sdk.Agent(name="A"), None, [])
