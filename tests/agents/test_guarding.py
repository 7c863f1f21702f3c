"""The guard of one run at the tool itself, and what it keeps over a pause."""

import asyncio
from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents import Agent, Extensions, ResumeOptions, RunOptions, create_runner
from openai_responses_mcp.agents.adapters.models.standin_models import RepeatedModel
from openai_responses_mcp.agents.adapters.sdk.guard_hooks import GuardHooks
from openai_responses_mcp.agents.adapters.sdk.takeover import Takeover
from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_stores import SqlExecutionLogStore, SqlPolicyStore
from openai_responses_mcp.agents.audit.log import AuditLog
from openai_responses_mcp.agents.calls import PlannedCall, ToolDescription
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.run_guard import RunGuard
from openai_responses_mcp.agents.gate.safety_gate import GateContext, SafetyGate
from openai_responses_mcp.agents.runs.results import RunResult
from openai_responses_mcp.agents.secrets.masking import Masking
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import ASK, FakeClock, FakeJudge, code_of, within

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


async def test_a_handoff_made_by_hand_leads_to_a_guarded_agent() -> None:
    target = Agent(name="Target", model=ScriptedModel("target here"))

    async def choose(context: Any, arguments: str) -> Any:
        return target

    by_hand = sdk.Handoff[Any, Any](
        tool_name="go_there",
        tool_description="Go.",
        input_json_schema={},
        on_invoke_handoff=choose,
        agent_name="Somewhere",
    )
    agent = Agent(name="First", model=ScriptedModel(ScriptedCall("go_there")), handoffs=[by_hand])
    judge = FakeJudge()
    result = await within(create_runner(safety_agent=judge).run(agent, "go"))
    assert (result.output_text, result.last_agent) == ("target here", target)
    assert [request.tool_name for request in judge.requests] == ["Somewhere"]


async def test_a_reply_that_was_said_once_more_steps_aside_for_the_model() -> None:
    rest = ScriptedModel("from the model", "streamed")
    repeated = RepeatedModel(sdk.ModelResponse(output=[], usage=sdk.Usage(), response_id="before"), lambda: rest)
    assert (await repeated.get_response(None, "go", None, [])).response_id == "before"
    assert "from the model" in str((await repeated.get_response(None, "go", None, [])).output)
    assert len([event async for event in repeated.stream_response(None, "go", None, [])]) == 2


async def test_after_a_refusal_no_model_is_asked_any_more(guard: RunGuard) -> None:
    guard.refuse(AgentsError("AGENTS-E-GATE-DENIED", "no"))
    hooks = GuardHooks(Takeover(guard), None)
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
        await hooks.on_llm_start(sdk.RunContextWrapper(context=None), sdk.Agent(name="A"), None, [])


async def test_a_sync_tool_that_starts_a_run_itself_is_guarded_too() -> None:
    judge = FakeJudge()
    inner = sdk.Agent[Any](name="Inner", model=ScriptedModel("inner done"))

    @sdk.function_tool
    def sneak() -> str:
        """Start a run on the side."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            return str(sdk.Runner.run_sync(inner, "do it").final_output)
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    agent = Agent(name="Outer", model=ScriptedModel(ScriptedCall("sneak"), "done"), tools=[sneak])
    result = await within(create_runner(safety_agent=judge).run(agent, "go"))
    assert result.tool_calls[0].output == "inner done"


@pytest.mark.parametrize("config", [{"tracing_disabled": True}, sdk.RunConfig(tracing_disabled=True)])
async def test_settings_of_the_sdk_are_handed_on(config: Any) -> None:
    agent = Agent(name="A", model=ScriptedModel("done"))
    result = await within(
        create_runner(safety_agent=FakeJudge()).run(agent, "go", RunOptions(sdk={"run_config": config}))
    )
    assert result.output_text == "done"


async def test_a_model_for_all_agents_still_speaks_after_a_handoff_was_approved() -> None:
    model = ScriptedModel(ScriptedCall("transfer_to_second"), "second here")
    second = sdk.Agent[Any](name="Second", model=ScriptedModel())
    agent = Agent(name="First", model=ScriptedModel(), handoffs=[second])
    judge = FakeJudge()
    runner = create_runner(safety_agent=judge)

    judge.on("Second", ASK)
    options = RunOptions(sdk={"run_config": sdk.RunConfig(model=model, tracing_disabled=True)})
    paused = await within(runner.run(agent, "go", options))
    result = await within(runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert result.output_text == "second here"


async def test_an_agent_that_is_not_the_one_of_the_run_cannot_resume_its_handoff(sqlite_url: str) -> None:

    judge = FakeJudge()
    judge.on("Second", ASK)
    second = sdk.Agent[Any](name="Second", model=ScriptedModel())
    agent = Agent(name="First", model=ScriptedModel(ScriptedCall("transfer_to_second")), handoffs=[second])
    runner = create_runner(safety_agent=judge, store=sqlite_url)
    paused = await within(runner.run(agent, "go"))
    stranger = Agent(name="Stranger", model=ScriptedModel())
    work = runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id, agent=stranger)
    assert await code_of(work) == "AGENTS-E-RUNNER"


async def test_a_human_can_say_something_to_the_agent_that_takes_over() -> None:

    judge = FakeJudge()
    judge.on("Second", ASK)
    heard = ScriptedModel("fine")
    second = sdk.Agent[Any](name="Second", model=heard)
    agent = Agent(name="First", model=ScriptedModel(ScriptedCall("transfer_to_second")), handoffs=[second])
    runner = create_runner(safety_agent=judge)
    paused = await within(runner.run(agent, "go"))
    token = await runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    options = RunOptions(extensions=Extensions(resume=ResumeOptions(token.token, "be kind")))
    assert (await within(runner.run(agent, "go", options))).output_text == "fine"
    assert "be kind" in str(heard.calls[0].input)


def test_a_result_without_the_sdks_has_only_its_own_fields() -> None:
    result = RunResult(run_id="r1")
    assert (result.output_text, result.tool_calls, result.interruptions) == ("", [], [])
    with pytest.raises(AttributeError):
        _ = result.new_items
