"""What leaves the process in a trace: that something ran, and never what was said."""

import json
from collections.abc import Iterator
from typing import Any

import agents as sdk
import pytest
from agents.tracing import TracingProcessor

from openai_responses_mcp.agents import Agent, RunOptions, create_runner, tool
from openai_responses_mcp.agents.sdk.request_settings import SENSITIVE_VARIABLE
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import FakeJudge, code_of, within

PLANTED = "planted-in-the-arguments"


class Recording(TracingProcessor):
    def __init__(self) -> None:
        self.traces: list[Any] = []
        self.spans: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.traces.append(trace)

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None: ...

    def on_span_end(self, span: Any) -> None:
        self.spans.append(json.dumps(span.export(), default=str))

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recording]:
    monkeypatch.delenv(SENSITIVE_VARIABLE, raising=False)
    processor = Recording()
    sdk.set_trace_processors([processor])
    yield processor
    sdk.set_trace_processors([])


@tool
def look(what: str) -> str:
    """Look at something."""
    return f"saw {what}"


@tool(failure_error_function=None)
def fail(what: str) -> str:
    """Fail."""
    raise RuntimeError(what)


@tool
async def start_a_run(what: str) -> str:
    """Start a run without asking anybody."""
    agent = sdk.Agent(name="inner", model=ScriptedModel(ScriptedCall("look", {"what": what}), what), tools=[look])
    return str((await sdk.Runner.run(agent, what)).final_output)


def an_agent() -> Any:
    helper = sdk.Agent(
        name="helper", model=ScriptedModel(ScriptedCall("look", {"what": PLANTED}), PLANTED), tools=[look]
    )
    turns: list[str | ScriptedCall] = [
        ScriptedCall("look", {"what": PLANTED}),
        ScriptedCall("ask", {"input": PLANTED}),
        ScriptedCall("start_a_run", {"what": PLANTED}),
        PLANTED,
    ]
    asking = helper.as_tool("ask", "Ask the helper.")
    return Agent(name="A", model=ScriptedModel(*turns), tools=[look, start_a_run, asking], instructions=PLANTED)


async def ran(config: Any) -> None:
    options = RunOptions(sdk={} if config is None else {"run_config": config})
    result = await within(create_runner(safety_agent=FakeJudge()).run(an_agent(), PLANTED, options))
    assert result.output_text == PLANTED


async def test_nothing_is_traced_unless_asked_for(recording: Recording) -> None:
    for config in (None, sdk.RunConfig(tracing_disabled=True), {"tracing_disabled": True}):
        await ran(config)
    assert (recording.traces, recording.spans) == ([], [])


@pytest.mark.parametrize("config", [sdk.RunConfig(), {"workflow_name": "mine"}, sdk.RunConfig(trace_id="trace_1")])
async def test_traces_contain_no_inputs_or_outputs(recording: Recording, config: Any) -> None:
    await ran(config)
    failing = Agent(name="A", model=ScriptedModel(ScriptedCall("fail", {"what": PLANTED})), tools=[fail])
    options = RunOptions(sdk={"run_config": config})
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(failing, PLANTED, options)) == "AGENTS-E-RUNNER"
    assert len(recording.traces) == 2
    assert any("start_a_run" in span for span in recording.spans)
    assert [span for span in recording.spans if PLANTED in span] == []


async def test_traces_contain_inputs_and_outputs_if_the_sdk_variable_is_set(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SENSITIVE_VARIABLE, "true")
    await ran(sdk.RunConfig())
    assert [span for span in recording.spans if PLANTED in span]


@pytest.mark.parametrize("value", ["false", "0", ""])
async def test_a_variable_that_says_no_holds_whatever_the_configuration_says(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(SENSITIVE_VARIABLE, value)
    await ran(sdk.RunConfig(trace_include_sensitive_data=True))
    assert recording.spans
    assert [span for span in recording.spans if PLANTED in span] == []
