"""Code written for the SDK works after an import swap, and then it is guarded."""

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents as sdk
import pytest

import openai_responses_mcp.agents as guarded
from openai_responses_mcp.agents.runner import configure
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import DENY, FakeJudge, within

SOURCE = (Path(__file__).parent / "swap_me.py").read_text()


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


def loaded(package: str) -> Any:
    """The file with `agents` as it stands, or with another package in its place."""
    module = types.ModuleType("swapped")
    source = SOURCE.replace("from agents import", f"from {package} import")
    exec(compile(source, "swap_me.py", "exec"), module.__dict__)
    return module


def models() -> tuple[ScriptedModel, ScriptedModel]:
    first = ScriptedModel(ScriptedCall("add", {"a": 1}, "c-1"), ScriptedCall("transfer_to_helper", {}, "c-2"))
    second = ScriptedModel(ScriptedCall("greet", {"name": "you"}, "c-3"), "all done")
    return first, second


async def test_the_same_file_gives_the_same_result_with_both_imports(judge: FakeJudge) -> None:
    plain = await within(loaded("agents").ask(*models()))
    swapped = await within(loaded("openai_responses_mcp.agents").ask(*models()))
    assert swapped == plain
    assert plain[0] == "all done"
    assert [request.tool_name for request in judge.requests] == ["add", "Helper", "greet"]


async def test_the_same_file_streams_the_same_events_with_both_imports(judge: FakeJudge) -> None:
    plain = await within(loaded("agents").ask_streamed(*models()))
    swapped = await within(loaded("openai_responses_mcp.agents").ask_streamed(*models()))
    assert swapped == plain
    assert len(judge.requests) == 3


def test_the_same_file_runs_without_a_loop_with_both_imports(judge: FakeJudge) -> None:
    swapped = loaded("openai_responses_mcp.agents")
    assert swapped.ask_sync(*models()) == "all done"
    assert len(judge.requests) == 3


async def test_without_a_configured_runner_nothing_runs() -> None:
    configure(None)
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        await within(loaded("openai_responses_mcp.agents").ask(*models()))
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        await guarded.run(object(), "go")


async def test_a_refusal_comes_out_of_the_swapped_runner(judge: FakeJudge) -> None:
    judge.on("add", DENY)
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
        await within(loaded("openai_responses_mcp.agents").ask(*models()))
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
        await within(loaded("openai_responses_mcp.agents").ask_streamed(*models()))


async def test_errors_of_the_sdk_come_out_as_they_are(judge: FakeJudge) -> None:
    agent = guarded.Agent(name="A", model=ScriptedModel(*(ScriptedCall("look") for _ in range(3))), tools=[look])
    with pytest.raises(sdk.MaxTurnsExceeded):
        await within(guarded.Runner.run(agent, "go", max_turns=2))


@sdk.function_tool
def look() -> str:
    """Look."""
    return "seen"


async def test_guardrails_of_the_sdk_come_out_as_they_are(judge: FakeJudge) -> None:
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
    agent = guarded.Agent(name="A", model=ScriptedModel(ScriptedCall("look")), tools=[look])
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


def test_every_public_name_of_the_sdk_is_there() -> None:
    missing = [name for name in sdk.__all__ if not name.startswith("__") and not hasattr(guarded, name)]
    assert missing == []
    assert guarded.function_tool is sdk.function_tool
    assert guarded.Runner.__module__ != sdk.Runner.__module__
    assert issubclass(guarded.Agent, sdk.Agent)


def test_names_that_nobody_has_are_not_there() -> None:
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
