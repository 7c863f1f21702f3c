"""The SDK's call shapes with the gate behind them: `Agent`, `tool`, and a `Runner` that is not the SDK's."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, cast, overload

import agents as sdk
from agents import TContext
from agents.mcp import MCPServer
from agents.run import DEFAULT_MAX_TURNS

from openai_responses_mcp.agents.adapters.sdk.tool_traits import ToolTraits, with_traits
from openai_responses_mcp.agents.calls import is_risk_level
from openai_responses_mcp.agents.configured import configured_runner
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.guardrails import AgentGuardrails
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.runs.models import Extensions, RunOptions
from openai_responses_mcp.agents.runs.results import RunResult


@dataclass
class Agent(sdk.Agent[TContext]):
    """The SDK's agent with `guardrails` (see `create_guardrails_template`) and `extensions`, its defaults for runs."""

    guardrails: AgentGuardrails | None = None
    extensions: Extensions | None = None

    def __post_init__(self) -> None:
        for name, kind in (("guardrails", AgentGuardrails), ("extensions", Extensions)):
            given = getattr(self, name)
            if given is not None and not isinstance(given, kind):
                message = f"{name} of an agent is {kind.__name__}, not a {type(given).__name__}"
                raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
        servers: list[MCPServer] = [tool for tool in self.tools if isinstance(tool, MCPServer)]
        if servers:
            # What hosted_mcp_tool returns may be given where other tools are.
            self.tools = [tool for tool in self.tools if not isinstance(tool, MCPServer)]
            self.mcp_servers = [*self.mcp_servers, *servers]
        super().__post_init__()  # type: ignore[no-untyped-call]


@overload
def tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    risk_level: int | None = None,
    require_approval: bool = False,
    **sdk_options: Any,
) -> sdk.FunctionTool: ...


@overload
def tool(
    function: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    risk_level: int | None = None,
    require_approval: bool = False,
    **sdk_options: Any,
) -> Callable[[Callable[..., Any]], sdk.FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    risk_level: int | None = None,
    require_approval: bool = False,
    **sdk_options: Any,
) -> sdk.FunctionTool | Callable[[Callable[..., Any]], sdk.FunctionTool]:
    """A function tool of the SDK that declares what the gate should know; other options go to `function_tool`."""
    if risk_level is not None and not is_risk_level(risk_level):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "risk_level is a whole number from 1 to 5")
    traits = ToolTraits(risk_level=risk_level, require_approval=bool(require_approval))

    def wrap(wrapped: Callable[..., Any]) -> sdk.FunctionTool:
        made = sdk.function_tool(wrapped, name_override=name, description_override=description, **sdk_options)
        return with_traits(made, traits)

    return wrap if function is None else wrap(function)


_STREAMED_POSITIONS = (
    "context",
    "max_turns",
    "hooks",
    "run_config",
    "previous_response_id",
    "auto_previous_response_id",
    "conversation_id",
    "session",
)


class Runner:
    """Takes the place of the SDK's `Runner`: the same calls, through the runner given to `configure`."""

    @classmethod
    async def run(cls, starting_agent: sdk.Agent[Any], input: object, **options: Any) -> Any:
        try:
            return await configured_runner().run(starting_agent, input, _options_from(options))
        except AgentsError as exc:
            failure = exc
        raise _as_the_sdk_would(failure)

    @classmethod
    def run_sync(cls, starting_agent: sdk.Agent[Any], input: object, **options: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(cls.run(starting_agent, input, **options))
        raise RuntimeError("Runner.run_sync cannot be called where an event loop is running; await Runner.run instead")

    @classmethod
    def run_streamed(
        cls, starting_agent: sdk.Agent[Any], input: object, *positional: Any, **options: Any
    ) -> "StreamedRun":
        # The SDK takes these by position here, and only here.
        options.update(zip(_STREAMED_POSITIONS, positional, strict=False))
        return StreamedRun(configured_runner(), starting_agent, input, _options_from(options))


class StreamedRun:
    """What `Runner.run_streamed` returns: the SDK's events, then everything of the finished result."""

    def __init__(self, runner: AgentRunner, agent: object, input: object, options: RunOptions) -> None:
        self._runner = runner
        self._agent = agent
        self._input = input
        self._options = options
        self._is_cancelled = False
        self._result: RunResult | None = None
        self.is_complete = False

    async def stream_events(self) -> AsyncIterator[sdk.StreamEvent]:
        failure: AgentsError | None = None
        events = self._runner.stream_with_raw(self._agent, self._input, self._options)
        try:
            async for raw, event in events:
                self._result = event.result or self._result
                if raw is not None:
                    yield cast(sdk.StreamEvent, raw)
                if self._is_cancelled:
                    return
        except AgentsError as exc:
            failure = exc
        finally:
            self.is_complete = True
            await events.aclose()
        if failure is not None:
            raise _as_the_sdk_would(failure)

    def cancel(self, mode: str = "immediate") -> None:
        """No event after the one at hand."""
        self._is_cancelled = True

    @property
    def final_output(self) -> Any:
        return None if self._result is None else self._result.final_output

    def __getattr__(self, name: str) -> Any:
        result = self.__dict__.get("_result")
        if name.startswith("__") or result is None:
            raise AttributeError(f"{name!r} is not known before the stream has ended")
        return getattr(result, name)


sdk.RunResultStreaming.register(StreamedRun)


def _options_from(given: dict[str, Any]) -> RunOptions:
    extensions = given.pop("extensions", None)
    turns = given.get("max_turns", DEFAULT_MAX_TURNS)
    return RunOptions(extensions=extensions, sdk={**given, "max_turns": turns})


def _as_the_sdk_would(failure: AgentsError) -> Exception:
    """What the SDK itself raised comes out unchanged, so that code written for the SDK catches it."""
    cause = failure.__cause__
    is_own = failure.code in ("AGENTS-E-RUNNER", "AGENTS-E-STREAM", "AGENTS-E-GUARDRAIL-DENIED")
    return cause if is_own and isinstance(cause, Exception) else failure
