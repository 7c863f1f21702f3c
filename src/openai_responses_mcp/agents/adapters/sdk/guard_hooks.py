"""The SDK's lifecycle hooks, where a turn is judged: the model's reply is there, and nothing of it has run.

The user's own hooks are called too, with the user's own agents instead of their doubles.
"""

import copy
from typing import Any

from agents import Agent, AgentHookContext, ModelResponse, RunContextWrapper, RunHooks, Tool

from openai_responses_mcp.agents.adapters.sdk.request_settings import check_request
from openai_responses_mcp.agents.adapters.sdk.takeover import Takeover


class GuardHooks(RunHooks[Any]):
    def __init__(self, takeover: Takeover, users: RunHooks[Any] | None, run_config: Any = None) -> None:
        self.takeover = takeover
        self._run_config = run_config
        self._users: RunHooks[Any] = users or RunHooks()
        self._of = takeover.original_of

    async def on_llm_start(
        self, context: RunContextWrapper[Any], agent: Agent[Any], system_prompt: str | None, input_items: list[Any]
    ) -> None:
        if self.takeover.guard.refusal is not None:
            raise self.takeover.guard.refusal
        await check_request(agent, self._run_config, self.takeover.guard)
        self.takeover.turn_inputs[id(agent)] = copy.deepcopy(input_items)
        await self._users.on_llm_start(context, self._of(agent), system_prompt, input_items)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        await self.takeover.judge(agent, response, context)
        await self._users.on_llm_end(context, self._of(agent), response)

    async def on_agent_start(self, context: AgentHookContext[Any], agent: Agent[Any]) -> None:
        await self._users.on_agent_start(context, self._of(agent))

    async def on_agent_end(self, context: AgentHookContext[Any], agent: Agent[Any], output: Any) -> None:
        await self._users.on_agent_end(context, self._of(agent), output)

    async def on_handoff(self, context: RunContextWrapper[Any], from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        await self._users.on_handoff(context, self._of(from_agent), self._of(to_agent))

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:
        await self._users.on_tool_start(context, self._of(agent), getattr(tool, "_guarded_original", tool))

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        await self._users.on_tool_end(context, self._of(agent), getattr(tool, "_guarded_original", tool), result)
