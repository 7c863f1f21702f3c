"""Turns: the calls in a model's reply, and the SDK's hooks, where a turn is judged before anything of it runs.

The guardrails of agents that take over, or that run inside a tool, are checked here too. The user's hooks are called
with the user's own agents instead of their doubles.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from agents import (
    Agent,
    AgentHookContext,
    CustomTool,
    FunctionTool,
    ModelResponse,
    RunContextWrapper,
    RunHooks,
    ShellTool,
    Tool,
    ToolApprovalItem,
    TResponseInputItem,
)
from agents.exceptions import AgentsException, ModelBehaviorError

from openai_responses_mcp.agents.sdk.guarded_calls import own_tool, running_calls, with_own_agent
from openai_responses_mcp.agents.sdk.internals import asks_a_human, shell_call_in, watch_tools
from openai_responses_mcp.agents.sdk.request_settings import check_request
from openai_responses_mcp.agents.sdk.takeover import Takeover
from openai_responses_mcp.agents.sdk.tool_traits import (
    Catalogue,
    describe_custom,
    describe_handoff,
    describe_hosted_call,
    describe_shell,
    field_of,
    parsed,
)
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.guardrails import guardrails_of
from openai_responses_mcp.gate.json_values import JsonObject, words_of

# True for a call that code has decided already: its tool's `needs_approval` is not asked.
is_settled: ContextVar[Callable[[ToolApprovalItem], bool]] = ContextVar("settled_calls", default=lambda item: False)


class HandoffPause(AgentsException):
    """A turn of handoffs alone waits for a human. The SDK can pause only at tools, so the run stops here."""

    def __init__(self, double: Agent[Any], response: ModelResponse, context: RunContextWrapper[Any]) -> None:
        super().__init__("a handoff waits for a human")
        self.double = double
        self.response = response
        self.context = context


# ---------------------------------------------------------------------------------------------------------------------
# Planning


@dataclass(frozen=True, slots=True)
class _FoundCall:
    """A call in a model's reply. `asked_with` is what `needs_approval` of the `asked` tool gets to see."""

    given_id: str
    description: ToolDescription
    args: JsonObject
    asked: FunctionTool | CustomTool | ShellTool | None = None
    asked_with: Any = None


async def planned(
    takeover: Takeover, double: Agent[Any], items: Sequence[object], context: RunContextWrapper[Any] | None = None
) -> list[PlannedCall]:
    """The calls among the items of a model's reply, as the gate sees them. The SDK reports unknown tools.

    With the caller's `context` the tools are asked whether they demand an approval, all at once as in the SDK.
    """
    catalogue = takeover.catalogue_of(double)
    pairs = [(item, found) for item in items if (found := _found_in(catalogue, item)) is not None]
    ids = [takeover.ids.of_item(item, found.given_id) for item, found in pairs]
    described = [found.description for _, found in pairs]
    if context is not None:
        agent = takeover.original_of(double)
        asking = [asyncio.ensure_future(_with_demand(agent, item, found, context)) for item, found in pairs]
        try:
            described = await asyncio.gather(*asking)
        finally:
            for each in asking:  # if one fails, the turn fails
                each.cancel()
    return [
        PlannedCall(call_id, tool, found.args) for call_id, tool, (_, found) in zip(ids, described, pairs, strict=True)
    ]


def _found_in(catalogue: Catalogue, item: object) -> _FoundCall | None:
    kind, name = field_of(item, "type"), field_of(item, "name")
    if kind == "shell_call" and catalogue.shell is not None:
        data = shell_call_in(item)
        shell = catalogue.shell
        return _FoundCall(data.call_id, describe_shell(shell), asdict(data.action), shell, data.action)
    written = field_of(item, "arguments") or ""
    if kind == "mcp_approval_request" and (hosted := catalogue.hosted.get(field_of(item, "server_label"))):
        return _FoundCall(field_of(item, "id"), describe_hosted_call(hosted, item), parsed(written))
    given_id = field_of(item, "call_id")
    if kind == "custom_tool_call" and (custom := catalogue.custom.get(name)):
        text = field_of(item, "input")
        return _FoundCall(given_id, describe_custom(custom), {"input": text}, custom, text)
    if kind != "function_call":
        return None
    if tool := catalogue.function(field_of(item, "namespace"), name):
        return _FoundCall(given_id, catalogue.description_of(tool), parsed(written), tool, written)
    if transfer := catalogue.handoffs.get(name):
        return _FoundCall(given_id, describe_handoff(transfer), parsed(written))
    return None


async def _with_demand(
    agent: Agent[Any], item: object, found: _FoundCall, context: RunContextWrapper[Any]
) -> ToolDescription:
    """The SDK's own `needs_approval`, as one more demand for a human."""
    if found.asked is None:
        return found.description
    asked = cast("FunctionTool | CustomTool | ShellTool", own_tool(found.asked))
    is_decided = isinstance(asked, FunctionTool) and is_settled.get()(ToolApprovalItem(agent, cast(Any, item)))
    if is_decided or await asks_a_human(asked, context, found.asked_with, found.given_id):
        return replace(found.description, require_approval=True)
    return found.description


# ---------------------------------------------------------------------------------------------------------------------
# Judging


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
        if self.takeover.ledger.refusal is not None:
            raise self.takeover.ledger.refusal
        await check_request(agent, self._run_config, self.takeover.ledger)
        if agent.handoffs:
            # Only a turn of handoffs is replayed after a pause, and copying a long conversation is slow.
            self.takeover.turn_inputs[id(agent)] = copy.deepcopy(input_items)
        await self._users.on_llm_start(context, self._of(agent), system_prompt, input_items)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        await self.takeover.ledger.used_tokens(response.usage.total_tokens)
        await self._judge(agent, response, context)
        await self._users.on_llm_end(context, self._of(agent), response)

    async def _judge(self, double: Agent[Any], response: ModelResponse, context: RunContextWrapper[Any]) -> None:
        """Decide the whole turn. Nothing of it has run yet."""
        takeover, ledger = self.takeover, self.takeover.ledger
        calls = await planned(takeover, double, response.output, context)
        if not calls:
            return
        catalogue = takeover.catalogue_of(double)
        transfers = {describe_handoff(one).definition_hash for one in catalogue.handoffs.values()}
        handoffs = [call for call in calls if call.tool.definition_hash in transfers]
        takeover.handoffs.expect(handoffs)
        try:
            await ledger.judge(self._of(double), calls, catalogue.descriptions)
        except AgentsError as exc:
            if exc.code == "AGENTS-E-RUNNER":  # the model's mistake, for which the SDK has its own error
                exc.__cause__ = ModelBehaviorError("Model reused a tool call ID for a different invocation.")
            raise
        if not any(ledger.is_waiting(call.call_id) and ledger.denial_for_model(call.call_id) is None for call in calls):
            return
        for around in running_calls.get():
            if not around.is_agent_tool:
                raise self._cannot_pause("a run that a function tool started by itself")
            await ledger.suspend(around.call_id)
        if len(handoffs) == len(calls):
            if running_calls.get():
                raise self._cannot_pause("a handoff inside a tool call")
            raise HandoffPause(double, response, context)

    def _cannot_pause(self, where: str) -> AgentsError:
        message = f"A call needs a human in {where}, which cannot be paused; nothing of its turn ran"
        return self.takeover.ledger.refuse(AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", message))

    async def on_agent_start(self, context: AgentHookContext[Any], agent: Agent[Any]) -> None:
        original = self._of(agent)
        self._first = self._first or original
        if running_calls.get() or original is not self._first:
            # The input of the first agent was checked before the run began.
            await self._check(guardrails_of(original).check_input(words_of(context.turn_input)))
        with watch_tools(original):
            await self._users.on_agent_start(context, original)

    async def on_agent_end(self, context: AgentHookContext[Any], agent: Agent[Any], output: object) -> None:
        if running_calls.get():
            # The output of the whole run is checked at its end.
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
            raise self.takeover.ledger.refuse(exc) from None

    async def on_handoff(self, context: RunContextWrapper[Any], from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        if not self.takeover.handoffs.has_stayed:
            await self._users.on_handoff(context, self._of(from_agent), self._of(to_agent))

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:
        await self._users.on_tool_start(with_own_agent(context), self._of(agent), own_tool(tool))

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        await self._users.on_tool_end(with_own_agent(context), self._of(agent), own_tool(tool), result)


def text_from(final_output: object) -> str:
    if final_output is None or isinstance(final_output, str):
        return final_output or ""
    dump = getattr(final_output, "model_dump_json", None)
    return str(dump() if callable(dump) else final_output)
