"""Runs inside runs: an agent as a tool, or a tool that starts a run of the SDK by itself.

All of them end at the SDK's class `AgentRunner`, and anybody can make one of those. So our three methods stand in front
of the class's own, for the whole process. They do nothing at all unless the call comes from inside a guarded run; then
the agent is taken over by that run's guard.

Agents of another kind, such as the SDK's for realtime, run in sessions of their own, which cannot be guarded call by
call. Inside a guarded run they are refused when the session asks for their tools.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from agents import Agent, AgentBase, RunContextWrapper, RunResult, Tool
from agents.run import AgentRunner, get_default_agent_runner

from openai_responses_mcp.agents.adapters.sdk.side_threads import hand_on_to_threads
from openai_responses_mcp.agents.adapters.sdk.takeover import current_takeover
from openai_responses_mcp.agents.adapters.sdk.tracing import without_texts
from openai_responses_mcp.agents.adapters.sdk.turn_hooks import TurnHooks
from openai_responses_mcp.agents.errors import AgentsError

_plain_run = AgentRunner.run


def guarding_runner() -> AgentRunner:
    """The SDK's default runner, with every run inside the ones that it makes taken over."""
    for name in ("run", "run_sync", "run_streamed"):
        method = getattr(AgentRunner, name)
        if not hasattr(method, "takes_over"):
            setattr(AgentRunner, name, _taking_over(method))
    if not hasattr(AgentBase.get_all_tools, "takes_over"):
        AgentBase.get_all_tools = _refusing_other_kinds(AgentBase.get_all_tools)  # type: ignore[assignment, method-assign]
    hand_on_to_threads()
    return get_default_agent_runner()


def _refusing_other_kinds(method: Callable[..., Awaitable[list[Tool]]]) -> Callable[..., Awaitable[list[Tool]]]:
    @wraps(method)
    async def refusing(self: AgentBase[Any], run_context: RunContextWrapper[Any]) -> list[Tool]:
        takeover = current_takeover.get()
        if takeover is not None and not isinstance(self, Agent):
            message = f"A {type(self).__name__} runs in a session that cannot be guarded call by call"
            raise takeover.guard.refuse(AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", message))
        return await method(self, run_context)

    refusing.takes_over = True  # type: ignore[attr-defined]
    return refusing


async def run_unguarded(agent: Agent[Any], input: str, **options: Any) -> RunResult:
    """For the agent of a judge, which has no tools."""
    return await _plain_run(AgentRunner(), agent, input, **options)


def _taking_over(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def taken_over(self: AgentRunner, starting_agent: Agent[Any], input: str, **options: Any) -> Any:
        agent, options = _double_of(starting_agent, options)
        return method(self, agent, input, **options)

    taken_over.takes_over = True  # type: ignore[attr-defined]
    return taken_over


def _double_of(agent: Agent[Any], options: dict[str, Any]) -> tuple[Agent[Any], dict[str, Any]]:
    takeover, hooks = current_takeover.get(), options.get("hooks")
    if takeover is None:
        return agent, options
    double = takeover.double_of(agent)
    if double is agent and isinstance(hooks, TurnHooks) and hooks.takeover is takeover:
        return agent, options  # one of our own runs, or one method of the SDK that calls another
    config = without_texts(options.get("run_config"))
    return double, {**options, "hooks": TurnHooks(takeover, hooks, config), "run_config": config}
