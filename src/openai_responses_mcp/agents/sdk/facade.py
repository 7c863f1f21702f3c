"""The SDK's call shapes with the gate behind them: `Agent`, `tool`, a `Runner` that is not the SDK's, and the SDK's demo
loop and websocket sessions through the configured runner."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, overload

import agents as sdk
from agents import AgentUpdatedStreamEvent, TContext
from agents.mcp import MCPServer
from agents.run import DEFAULT_MAX_TURNS

from openai_responses_mcp.agents.runner import AgentRunner, configured_runner, question, read_line, show
from openai_responses_mcp.agents.runs.models import Extensions, RunEvent, RunOptions, RunResult
from openai_responses_mcp.agents.sdk.streamed_runs import StreamedRun
from openai_responses_mcp.agents.sdk.tool_traits import ToolTraits, with_traits
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.calls import is_risk_level
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.guardrails import AgentGuardrails
from openai_responses_mcp.gate.json_values import JsonValue


@dataclass
class Agent(sdk.Agent[TContext]):
    """The SDK's agent with `guardrails` (see `create_guardrails_template`) and `extensions`, its defaults for runs."""

    guardrails: AgentGuardrails | None = None
    extensions: Extensions | None = None

    swapped_runner: ClassVar[type["Runner"]]

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
        run = StreamedRun(configured_runner(), starting_agent, input, _options_from(options))
        run.check()
        await run.finish()
        return run.result

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
        streamed = replace(_options_from(options), stream=True)
        run = StreamedRun(configured_runner(), starting_agent, input, streamed)
        run.begin()
        return run


Agent.swapped_runner = Runner


def _options_from(given: dict[str, Any]) -> RunOptions:
    extensions = given.pop("extensions", None)
    turns = given.get("max_turns", DEFAULT_MAX_TURNS)
    return RunOptions(extensions=extensions, sdk={**given, "max_turns": turns})


# ---------------------------------------------------------------------------------------------------------------------
# The SDK's demo loop and websocket sessions


async def run_demo_loop(
    agent: sdk.Agent[Any], *, stream: bool = True, context: object = None, max_turns: int | None = DEFAULT_MAX_TURNS
) -> None:
    """Talk to an agent in a terminal until `exit`, `quit` or the end of the input."""
    runner, current, said = configured_runner(), agent, list[JsonValue]()
    options = RunOptions(stream=stream, sdk={"context": context, "max_turns": max_turns})
    while (typed := read_line(" > ")) is not None and typed.strip().lower() not in ("exit", "quit"):
        if not typed.strip():
            continue
        asked = [*said, {"role": "user", "content": typed}]
        try:
            result: RunResult | None = None
            async for raw, event in runner.events(current, asked, options):
                show(_shown(raw, event))
                result = event.result or result
            assert result is not None  # noqa: S101 - a stream's last event carries it
            show("\n" if stream else _line(result.output_text))
            while result.interruptions:
                result = await _decided(runner, result)
        except AgentsError as exc:
            show(f"{exc}\n")
            continue
        current, said = result.last_agent, list(result.messages)


def _line(text: str) -> str:
    return f"{text}\n" if text else ""


def _shown(raw: object, event: RunEvent) -> str:
    if isinstance(raw, AgentUpdatedStreamEvent):
        return f"\n[Agent updated: {raw.new_agent.name}]\n"
    if event.tool_call is not None and event.type == "tool_call":
        return f"\n[tool called] {event.tool_call.tool_name}\n"
    if event.tool_call is not None:
        return f"\n[tool output: {event.tool_call.output}]\n"
    return event.delta or ""


async def _decided(runner: AgentRunner, paused: RunResult) -> RunResult:
    request: HumanApprovalRequest = paused.interruptions[0]
    show(question(request))
    is_approved = (read_line("Let it run? [y/N] ") or "").strip().lower() in ("y", "yes")
    decision = "approve" if is_approved else "deny"
    result = await runner.approve_and_resume(paused.run_id, request.approval_id, decision=decision)  # type: ignore[arg-type]
    show(_line(result.output_text))
    return result


@dataclass(frozen=True)
class ResponsesWebSocketSession(sdk.ResponsesWebSocketSession):
    async def run(self, starting_agent: sdk.Agent[Any], input: object, **options: Any) -> Any:
        return await Runner.run(starting_agent, input, **self._with_config(options))

    def run_streamed(self, starting_agent: sdk.Agent[Any], input: object, **options: Any) -> StreamedRun:  # type: ignore[override]
        return Runner.run_streamed(starting_agent, input, **self._with_config(options))

    def _with_config(self, options: dict[str, Any]) -> dict[str, Any]:
        if "run_config" in options:
            raise ValueError("The session has its own run_config; do not give another")
        return {**options, "run_config": self.run_config}


@asynccontextmanager
async def responses_websocket_session(**options: Any) -> AsyncIterator[ResponsesWebSocketSession]:
    """The SDK's, with the same options."""
    async with sdk.responses_websocket_session(**options) as session:
        # Traces are off unless asked for, here as everywhere.
        yield ResponsesWebSocketSession(session.provider, replace(session.run_config, tracing_disabled=True))
