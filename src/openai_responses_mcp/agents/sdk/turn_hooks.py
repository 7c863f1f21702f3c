"""The SDK's lifecycle hooks, where a turn is judged: the model has replied, and nothing of the reply has run.

Agents that take over or run inside a tool have rules of their own for what comes in and goes out; they are checked
here. The user's own hooks are called too, with the user's own agents instead of their doubles.
"""

import copy
from collections.abc import Awaitable
from typing import Any

from agents import Agent, AgentHookContext, ModelResponse, RunContextWrapper, RunHooks, Tool, TResponseInputItem

from openai_responses_mcp.agents.sdk.internals import watch_tools
from openai_responses_mcp.agents.sdk.outcomes import text_from
from openai_responses_mcp.agents.sdk.own_agents import own_tool, with_own_agent
from openai_responses_mcp.agents.sdk.request_settings import check_request
from openai_responses_mcp.agents.sdk.takeover import Takeover, running_calls
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.guardrails import guardrails_of
from openai_responses_mcp.gate.json_values import words_of


class TurnHooks(RunHooks[Any]):
    def __init__(self, takeover: Takeover, users: RunHooks[Any] | None, run_config: object = None) -> None:
        self.takeover = takeover
        self._run_config = run_config
        self._users: RunHooks[Any] = users or RunHooks()
        self._of = takeover.original_of
        self._first: Agent[Any] | None = None

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        if self.takeover.guard.refusal is not None:
            raise self.takeover.guard.refusal
        await check_request(agent, self._run_config, self.takeover.guard)
        if agent.handoffs:
            # Only a turn of handoffs is replayed after a pause. Copying a long conversation in every turn would be
            # slow.
            self.takeover.turn_inputs[id(agent)] = copy.deepcopy(input_items)
        await self._users.on_llm_start(context, self._of(agent), system_prompt, input_items)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        await self.takeover.guard.used_tokens(response.usage.total_tokens)
        await self.takeover.judge(agent, response, context)
        await self._users.on_llm_end(context, self._of(agent), response)

    async def on_agent_start(self, context: AgentHookContext[Any], agent: Agent[Any]) -> None:
        original = self._of(agent)
        self._first = self._first or original
        if running_calls.get() or original is not self._first:
            # What the user gave to the first agent was checked before the run began.
            await self._check(guardrails_of(original).check_input(words_of(context.turn_input)))
        with watch_tools(original):
            await self._users.on_agent_start(context, original)

    async def on_agent_end(self, context: AgentHookContext[Any], agent: Agent[Any], output: object) -> None:
        if running_calls.get():
            # What the whole run says at its end is checked when it is over.
            rules = guardrails_of(self._first)
            if self._of(agent) is not self._first:
                rules = rules.joined_by(guardrails_of(self._of(agent)))
            await self._check(rules.check_output(text_from(output)))
        await self._users.on_agent_end(context, self._of(agent), output)

    async def _check(self, rules: Awaitable[None]) -> None:
        """A refusal inside a tool must not become an answer for the model."""
        try:
            await rules
        except AgentsError as exc:
            raise self.takeover.guard.refuse(exc) from None

    async def on_handoff(self, context: RunContextWrapper[Any], from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        if not self.takeover.has_stayed:
            await self._users.on_handoff(context, self._of(from_agent), self._of(to_agent))

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:
        await self._users.on_tool_start(with_own_agent(context), self._of(agent), own_tool(tool))

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        await self._users.on_tool_end(with_own_agent(context), self._of(agent), own_tool(tool), result)
