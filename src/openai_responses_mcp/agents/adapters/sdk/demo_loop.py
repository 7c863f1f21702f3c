"""The SDK's demo loop through the configured runner: type, read, and decide yourself what waits for a human."""

import json
import sys
from typing import Any

from agents import Agent
from agents.run import DEFAULT_MAX_TURNS

from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest
from openai_responses_mcp.agents.configured import configured_runner
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonValue
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.runs.models import RunOptions
from openai_responses_mcp.agents.runs.results import RunEvent, RunResult
from openai_responses_mcp.domain.texts import revealed, visible


async def run_demo_loop(
    agent: Agent[Any], *, stream: bool = True, context: object = None, max_turns: int | None = DEFAULT_MAX_TURNS
) -> None:
    """Talk to an agent in a terminal until `exit`, `quit` or the end of the input."""
    runner, current, said = configured_runner(), agent, list[JsonValue]()
    options = RunOptions(sdk={"context": context, "max_turns": max_turns})
    while (typed := _read(" > ")) is not None and typed.strip().lower() not in ("exit", "quit"):
        if not typed.strip():
            continue
        asked = [*said, {"role": "user", "content": typed}]
        try:
            result = await (_streamed if stream else _whole)(runner, current, asked, options)
            while result.interruptions:
                result = await _decided(runner, result)
        except AgentsError as exc:
            _show(f"{exc}\n")
            continue
        current, said = result.last_agent, list(result.messages)


async def _whole(runner: AgentRunner, agent: object, asked: list[JsonValue], options: RunOptions) -> RunResult:
    result = await runner.run(agent, asked, options)
    _show(f"{result.output_text}\n" if result.output_text else "")
    return result


async def _streamed(runner: AgentRunner, agent: object, asked: list[JsonValue], options: RunOptions) -> RunResult:
    result = None
    async for event in runner.run_stream(agent, asked, options):
        _show(_shown(event))
        result = event.result or result
    _show("\n")
    assert isinstance(result, RunResult)  # noqa: S101 - a stream's last event carries it
    return result


def _shown(event: RunEvent) -> str:
    if event.tool_call is not None and event.type == "tool_call":
        return f"\n[tool called: {event.tool_call.tool_name}]\n"
    if event.tool_call is not None:
        return f"\n[tool output: {event.tool_call.output}]\n"
    return event.delta or ""


async def _decided(runner: AgentRunner, paused: RunResult) -> RunResult:
    request: HumanApprovalRequest = paused.interruptions[0]
    call = f"{request.tool_kind} {request.tool_name} {json.dumps(dict(request.arguments), ensure_ascii=False)}"
    told = [request.prompt, request.tool_description, request.definition_change, call]
    # Nothing that a model, a judge or a server wrote may be invisible here, or look like something else.
    _show(revealed("\n".join(["", *filter(None, told), ""])))
    is_approved = (_read("Let it run? [y/N] ") or "").strip().lower() in ("y", "yes")
    decision = "approve" if is_approved else "deny"
    result = await runner.approve_and_resume(paused.run_id, request.approval_id, decision=decision)  # type: ignore[arg-type]
    _show(f"{result.output_text}\n" if result.output_text else "")
    return result


def _read(prompt: str) -> str | None:
    """Nothing at the end of the input. As in the SDK the loop stands still meanwhile, so that Ctrl+C comes through."""
    try:
        return input(prompt)
    except (EOFError, KeyboardInterrupt):
        _show("\n")
        return None


def _show(text: str) -> None:
    sys.stdout.write(visible(text))
    sys.stdout.flush()
