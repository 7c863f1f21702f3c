"""The user's code sees the user's own agents: hooks, guardrails and tools of a double get the agent behind it."""

import copy
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from agents import Agent, AgentHooks, InputGuardrail, ModelResponse, OutputGuardrail, RunContextWrapper, Tool

from openai_responses_mcp.agents.sdk.internals import public_agent, use_tools, watch_tools

TGuardrail = TypeVar("TGuardrail", InputGuardrail[Any], OutputGuardrail[Any])


class OwnAgentHooks(AgentHooks[Any]):
    """An agent's hooks, called with that agent and its own tools."""

    def __init__(self, agent: Agent[Any], hooks: AgentHooks[Any]) -> None:
        self._agent = agent
        self._hooks = hooks

    async def on_start(self, context: Any, agent: Agent[Any]) -> None:
        with watch_tools(self._agent):
            await self._hooks.on_start(context, self._agent)

    async def on_end(self, context: Any, agent: Agent[Any], output: Any) -> None:
        await self._hooks.on_end(context, self._agent, output)

    async def on_handoff(self, context: RunContextWrapper[Any], agent: Agent[Any], source: Agent[Any]) -> None:
        await self._hooks.on_handoff(context, public_agent(agent), public_agent(source))

    async def on_tool_start(self, context: Any, agent: Agent[Any], tool: Tool) -> None:
        await self._hooks.on_tool_start(with_own_agent(context), self._agent, own_tool(tool))

    async def on_tool_end(self, context: Any, agent: Agent[Any], tool: Tool, result: Any) -> None:
        await self._hooks.on_tool_end(with_own_agent(context), self._agent, own_tool(tool), result)

    async def on_llm_start(self, context: Any, agent: Agent[Any], system_prompt: str | None, input_items: Any) -> None:
        await self._hooks.on_llm_start(context, self._agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        await self._hooks.on_llm_end(context, self._agent, response)


def own_hooks(agent: Agent[Any], hooks: AgentHooks[Any]) -> OwnAgentHooks:
    """The SDK tells agents of one name apart by the class of their hooks: its name, and whether it is a dataclass."""
    users = type(hooks)
    names: dict[str, Any] = {"__module__": users.__module__, "__qualname__": users.__qualname__}
    if hasattr(users, "__dataclass_fields__"):
        names["__dataclass_fields__"] = {}
    made: OwnAgentHooks = type(users.__name__, (OwnAgentHooks,), names)(agent, hooks)
    return made


def own_guardrail(guardrail: TGuardrail, agent: Agent[Any]) -> TGuardrail:
    """A copy of the guardrail that is called with this agent, and is the user's own in its results."""
    inner: Callable[..., Awaitable[Any]] = guardrail.run

    async def run(*args: Any, **options: Any) -> Any:
        use_tools(agent)
        mapped = [agent if isinstance(one, Agent) else one for one in args]
        named = {name: agent if isinstance(one, Agent) else one for name, one in options.items()}
        return await inner(*mapped, **named)

    made = copy.copy(guardrail)
    made.run = run  # type: ignore[method-assign]
    return made


def with_own_agent(context: Any) -> Any:
    """A tool's context, with the user's agent in it."""
    if isinstance(getattr(context, "agent", None), Agent):
        context.agent = public_agent(context.agent)
    return context


def own_tool(tool: Tool) -> Tool:
    found: Tool = getattr(tool, "guarded_original", tool)
    return found
