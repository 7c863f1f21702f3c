"""Code written for the SDK works after an import swap, and then it is guarded."""

from collections.abc import Iterator
from typing import Any

import agents as sdk
import pytest

import openai_responses_mcp.agents as guarded
from openai_responses_mcp.agents.runner import configure
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import DENY, FakeJudge, within

ADD = ScriptedCall("add", {"a": 1, "b": 2}, "c-1")


@sdk.function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def an_adder() -> Any:
    return guarded.Agent(name="Adder", model=ScriptedModel(ADD, "3"), tools=[add])


@pytest.fixture(autouse=True)
def _no_traces() -> Iterator[None]:
    sdk.set_tracing_disabled(True)
    yield
    sdk.set_tracing_disabled(False)


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    judge = FakeJudge()
    configure(guarded.create_runner(safety_agent=judge))
    yield judge
    configure(None)


def test_a_swapped_run_needs_no_loop(judge: FakeJudge) -> None:
    assert guarded.Runner.run_sync(an_adder(), "1 + 2?").final_output == "3"
    assert [request.tool_name for request in judge.requests] == ["add"]


async def test_without_a_configured_runner_nothing_runs() -> None:
    configure(None)
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        await within(guarded.Runner.run(an_adder(), "go"))
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        await guarded.run(object(), "go")


async def test_a_refusal_comes_out_of_the_swapped_runner(judge: FakeJudge) -> None:
    judge.on("add", DENY)
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
        await within(guarded.Runner.run(an_adder(), "go"))
    streamed = guarded.Runner.run_streamed(an_adder(), "go")
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
        [event async for event in streamed.stream_events()]


async def test_errors_of_the_sdks_guardrails_come_out_unchanged(judge: FakeJudge) -> None:
    @sdk.input_guardrail
    async def never(context: Any, agent: Any, input: Any) -> sdk.GuardrailFunctionOutput:
        return sdk.GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    agent = guarded.Agent(name="A", model=ScriptedModel("hello"), input_guardrails=[never])
    with pytest.raises(sdk.InputGuardrailTripwireTriggered):
        await within(guarded.Runner.run(agent, "go"))
    agent = guarded.Agent(name="A", model=ScriptedModel("hello"), input_guardrails=[never])
    with pytest.raises(AgentsError, match="AGENTS-E-GUARDRAIL-DENIED"):
        await within(guarded.run(agent, "go"))


async def test_extensions_pass_through_the_swapped_runner(judge: FakeJudge) -> None:
    agent = an_adder()
    extensions = guarded.Extensions(require_human_approval=True)
    result = await within(guarded.Runner.run(agent, "go", extensions=extensions))
    assert len(result.interruptions) == 1
    assert result.final_output is None
    assert isinstance(result, sdk.RunResult)


async def test_a_cancelled_stream_stops(judge: FakeJudge) -> None:
    agent = guarded.Agent(name="A", model=ScriptedModel("hello"))
    result = guarded.Runner.run_streamed(agent, "go")
    assert isinstance(result, sdk.RunResultStreaming)
    assert (result.new_items, result.raw_responses, result.current_turn) == ([], [], 0)
    assert (result.input, result.last_agent, result.is_complete) == ("go", agent, False)
    seen = 0
    async for _ in result.stream_events():
        seen += 1
        result.cancel()
    assert seen == 1
    assert result.final_output is None


def test_unknown_names_cannot_be_imported() -> None:
    assert not hasattr(guarded, "no_such_name")
    assert not hasattr(guarded, "__no_such_name__")
    with pytest.raises(ImportError):
        exec("from openai_responses_mcp.agents import no_such_name", {})


def test_every_listed_name_can_be_imported() -> None:
    assert dir(guarded) == sorted(guarded.__all__)
    for name in guarded.__all__:
        assert getattr(guarded, name) is not None


def test_only_a_runner_can_be_configured() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        configure("runner")  # type: ignore[arg-type]


def test_a_tool_declares_its_risk_within_range() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        guarded.tool(risk_level=6)
    named = guarded.tool(lambda: "x", name="named", description="A tool.")
    assert (named.name, named.description) == ("named", "A tool.")


async def test_a_swapped_run_sync_is_not_for_running_loops(judge: FakeJudge) -> None:
    with pytest.raises(RuntimeError, match="await Runner"):
        guarded.Runner.run_sync(guarded.Agent(name="A", model=ScriptedModel("hi")), "go")
