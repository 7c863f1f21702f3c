"""Runs inside runs: an agent as a tool, or a tool that calls the SDK's `Runner` itself.

Both end at the SDK's default runner. Ours stands in front of it for the whole process and does nothing at all unless
the call comes from inside a guarded run; then the agent is taken over by that run's guard.
"""

from typing import Any

from agents import Agent, RunResult, RunResultStreaming
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner

from openai_responses_mcp.agents.adapters.sdk.guard_hooks import GuardHooks
from openai_responses_mcp.agents.adapters.sdk.takeover import current_takeover


class NestedRunner(AgentRunner):
    def __init__(self, plain: AgentRunner) -> None:
        self.plain = plain

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:
        agent, options = _taken_over(starting_agent, options)
        return await self.plain.run(agent, input, **options)

    def run_sync(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:
        agent, options = _taken_over(starting_agent, options)
        return self.plain.run_sync(agent, input, **options)

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResultStreaming:
        agent, options = _taken_over(starting_agent, options)
        return self.plain.run_streamed(agent, input, **options)


def plain_runner() -> AgentRunner:
    """The runner below ours; puts ours in place if it is not, or no longer."""
    found = get_default_agent_runner()
    if isinstance(found, NestedRunner):
        return found.plain
    set_default_agent_runner(NestedRunner(found))
    return found


def _taken_over(agent: Agent[Any], options: dict[str, Any]) -> tuple[Agent[Any], dict[str, Any]]:
    takeover = current_takeover.get()
    if takeover is None:
        return agent, options
    return takeover.double_of(agent), {**options, "hooks": GuardHooks(takeover, options.get("hooks"))}
