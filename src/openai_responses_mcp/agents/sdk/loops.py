"""The SDK's demo loop and its websocket sessions, through the configured runner."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import agents as sdk
from agents import Agent, AgentUpdatedStreamEvent
from agents.run import DEFAULT_MAX_TURNS

from openai_responses_mcp.agents.asking import question, read_line, show
from openai_responses_mcp.agents.runner import AgentRunner, configured_runner
from openai_responses_mcp.agents.runs.models import RunEvent, RunOptions, RunResult
from openai_responses_mcp.agents.sdk.facade import Runner, StreamedRun
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonValue


async def run_demo_loop(
    agent: Agent[Any], *, stream: bool = True, context: object = None, max_turns: int | None = DEFAULT_MAX_TURNS
) -> None:
    """Talk to an agent in a terminal until `exit`, `quit` or the end of the input."""
    runner, current, said = configured_runner(), agent, list[JsonValue]()
    options = RunOptions(sdk={"context": context, "max_turns": max_turns})
    while (typed := read_line(" > ")) is not None and typed.strip().lower() not in ("exit", "quit"):
        if not typed.strip():
            continue
        asked = [*said, {"role": "user", "content": typed}]
        try:
            result = await (_streamed if stream else _whole)(runner, current, asked, options)
            while result.interruptions:
                result = await _decided(runner, result)
        except AgentsError as exc:
            show(f"{exc}\n")
            continue
        current, said = result.last_agent, list(result.messages)


async def _whole(runner: AgentRunner, agent: object, asked: list[JsonValue], options: RunOptions) -> RunResult:
    result = await runner.run(agent, asked, options)
    show(f"{result.output_text}\n" if result.output_text else "")
    return result


async def _streamed(runner: AgentRunner, agent: object, asked: list[JsonValue], options: RunOptions) -> RunResult:
    result = None
    async for raw, event in runner.stream_with_raw(agent, asked, options):
        show(_shown(raw, event))
        result = event.result or result
    show("\n")
    assert isinstance(result, RunResult)  # noqa: S101 - a stream's last event carries it
    return result


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
    show(f"{result.output_text}\n" if result.output_text else "")
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
        # Traces are off unless somebody asks for them, here as everywhere.
        yield ResponsesWebSocketSession(session.provider, replace(session.run_config, tracing_disabled=True))
