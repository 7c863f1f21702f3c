"""Wrappers around the calls of tools and handoffs: ask the ledger, make the call, report the outcome.

The SDK has no denied handoff. If a human denies one, the current agent hands over to itself, with the denial in place of
the message about the new agent, and its history unchanged.
"""

import asyncio
import copy
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from agents import (
    Agent,
    AgentBase,
    CustomTool,
    FunctionTool,
    Handoff,
    HandoffInputData,
    HandoffInputFilter,
    RunContextWrapper,
    ShellCommandRequest,
    ShellTool,
    Tool,
    ToolApprovalItem,
)
from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.agents.sdk.internals import handoff_target, is_agent_tool, public_agent, use_tools, watched
from openai_responses_mcp.agents.sdk.tool_traits import (
    describe_custom,
    describe_function,
    describe_handoff,
    describe_shell,
    parsed,
    why_not_for_a_tool,
)
from openai_responses_mcp.gate.calls import PlannedCall, arguments_hash
from openai_responses_mcp.gate.json_values import JsonObject


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A tool call that is running right now; a run started inside it belongs to it."""

    call_id: str
    is_agent_tool: bool


running_calls: ContextVar[tuple[RunningCall, ...]] = ContextVar("guarded_calls", default=())
# Failures of the running call that became an answer for the model instead of an error.
_handed_to_model: ContextVar[list[str] | None] = ContextVar("guarded_failures", default=None)


def handed_over(failure: str | Exception) -> str:
    """An answer for the model instead of an error. The call is recorded as failed."""
    text, failures = failure if isinstance(failure, str) else _named(failure), _handed_to_model.get()
    if failures is not None:
        failures.append(text)
    return text


def _named(failure: BaseException) -> str:
    return f"{type(failure).__name__}: {failure}"


def with_own_agent(context: Any) -> Any:
    """A tool's context, with the user's agent in it."""
    if isinstance(getattr(context, "agent", None), Agent):
        context.agent = public_agent(context.agent)
    return context


def own_tool(tool: Tool) -> Tool:
    found: Tool = getattr(tool, "guarded_original", tool)
    return found


class CallIds:
    """The ledger's ids for calls. A run inside a call may reuse ids of the run around it."""

    def __init__(self) -> None:
        # For each call id, the calls around its first use.
        self.first_uses: dict[str, list[str]] = {}
        self._known: dict[int, tuple[object, str]] = {}

    def of(self, given: str) -> str:
        around = [call.call_id for call in running_calls.get()]
        return given if self.first_uses.setdefault(given, around) == around else "/".join([*around, given])

    def of_item(self, raw_item: object, given: str) -> str:
        """The same for an item of a model's reply, also while the nested run is not running."""
        if id(raw_item) not in self._known:
            self.put(raw_item, self.of(given))
        return self._known[id(raw_item)][1]

    def of_waiting(self, item: ToolApprovalItem) -> str:
        known = self._known.get(id(item.raw_item))
        return self.of(item.call_id or "") if known is None else known[1]

    def put(self, raw_item: object, call_id: str) -> None:
        self._known[id(raw_item)] = (raw_item, call_id)


# ---------------------------------------------------------------------------------------------------------------------
# Tools


class _GuardedCall:
    def __init__(self, ledger: RunLedger, ids: CallIds, tool: Any) -> None:
        self._ledger = ledger
        self._ids = ids
        self._tool = tool

    def __deepcopy__(self, memo: dict[int, object]) -> "_GuardedCall":
        return self  # as a function is

    async def _run(self, call: PlannedCall, work: Callable[[], Any], *, is_agent_tool: bool = False) -> Any:
        ledger, failures = self._ledger, list[str]()
        await ledger.starting(call.call_id, call.tool, call.args)
        inside = running_calls.set((*running_calls.get(), RunningCall(call.call_id, is_agent_tool)))
        watching = _handed_to_model.set(failures)
        try:
            output = work()
            output = await output if inspect.isawaitable(output) else output
        except (Exception, asyncio.CancelledError) as exc:
            await ledger.finished(call.call_id, None, error=_named(exc))
            raise
        finally:
            _handed_to_model.reset(watching)
            running_calls.reset(inside)
        if ledger.refusal is not None:
            # Something inside the tool was refused, and the SDK turned that into an answer for the model.
            await ledger.finished(call.call_id, None, error="refused inside")
            raise ledger.refusal
        recorded = str(output) if isinstance(self._tool, ShellTool) else output
        await ledger.finished(call.call_id, recorded, error=failures[-1] if failures else None)
        return output


class GuardedFunction(_GuardedCall):
    _tool: FunctionTool

    async def __call__(self, context: ToolContext[Any], arguments: str) -> object:
        call_id = self._ids.of(context.tool_call_id)
        with_own_agent(context)
        changed = self._ledger.changed(call_id)
        if changed is not None:
            arguments = json.dumps(changed.args, ensure_ascii=False)
            context = copy.copy(context)
            context.tool_arguments = arguments

        async def work() -> object:
            if (wrong := why_not_for_a_tool(arguments)) is not None:
                return handed_over(f"Invalid JSON input for tool {self._tool.name}: {wrong}")
            return await watched(self._tool, handed_over)(context, arguments)

        call = PlannedCall(call_id, describe_function(self._tool), parsed(arguments))
        output = await self._run(call, work, is_agent_tool=is_agent_tool(self._tool))
        return output if changed is None else with_note(output, changed.note, context.agent)


class GuardedCustom(_GuardedCall):
    """For a tool that is called with a text."""

    _tool: CustomTool

    async def __call__(self, context: ToolContext[Any], text: str) -> object:
        call_id = self._ids.of(context.tool_call_id)
        with_own_agent(context)
        changed = self._ledger.changed(call_id)
        text = text if changed is None else str(changed.args["input"])
        call = PlannedCall(call_id, describe_custom(self._tool), {"input": text})
        output = await self._run(call, lambda: self._tool.on_invoke_tool(context, text))
        return output if changed is None else with_note(output, changed.note, context.agent)


class GuardedShell(_GuardedCall):
    _tool: ShellTool

    async def __call__(self, request: ShellCommandRequest) -> Any:
        call_id, action = self._ids.of(request.data.call_id), request.data.action
        args: JsonObject = asdict(action)
        if (changed := self._ledger.changed(call_id)) is not None:
            args = changed.args
            action = replace(action, commands=[str(one) for one in cast("list[object]", args["commands"])])
            request = replace(request, data=replace(request.data, action=action))
        executor = self._tool.executor
        assert executor is not None  # noqa: S101 - a local shell has one
        call = PlannedCall(call_id, describe_shell(self._tool), dict(args))
        return await self._run(call, lambda: executor(request))


_PARTS = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
_KINDS = ("text", "image", "file")


def with_note(output: object, note: str, agent: object) -> object:
    """A note for the model in front of the output. If the run ends with the output, no model reads a note, so there is none."""
    if isinstance(agent, Agent) and agent.tool_use_behavior != "run_llm_again":
        return output
    if _is_part(output):
        return [ToolOutputText(text=note), output]
    if isinstance(output, list) and output and all(map(_is_part, output)):
        return [ToolOutputText(text=note), *output]
    return f"{note}\n\n{output}"


def _is_part(output: object) -> bool:
    """One of the forms that the SDK sends as more than a text."""
    return isinstance(output, _PARTS) or (isinstance(output, Mapping) and output.get("type") in _KINDS)


# ---------------------------------------------------------------------------------------------------------------------
# Handoffs


class Handoffs:
    """The handoffs that a run's turns may make. `has_stayed`: the last one was denied."""

    def __init__(self, ledger: RunLedger, double_of: Callable[[object], Agent[Any]]) -> None:
        self.ledger = ledger
        self.double_of = double_of
        self.has_stayed = False
        self._turns: list[list[PlannedCall]] = []

    def expect(self, calls: Sequence[PlannedCall]) -> None:
        """The handoffs of a turn. The SDK makes one of them and ignores the others."""
        if calls:
            self._turns.append(list(calls))

    def next_call(self, handoff: Handoff[Any, Any], arguments: str) -> PlannedCall:
        """The call that is about to hand over. A call that was not judged has no id."""
        named = [(call, turn) for turn in self._turns for call in turn if call.tool.name == handoff.agent_name]
        if not named:
            return PlannedCall("", describe_handoff(handoff), {})
        wanted = arguments_hash(parsed(arguments))
        fitting = [(call, turn) for call, turn in named if arguments_hash(call.args) == wanted]
        # If the arguments are not those that were judged, the ledger refuses the call by its id.
        call, turn = (fitting or named)[0]
        self._turns.remove(turn)
        return call


class GuardedHandoff:
    def __init__(self, handoffs: Handoffs, double: Agent[Any], handoff: Handoff[Any, Any]) -> None:
        self._handoffs = handoffs
        self._double = double
        self._handoff = handoff
        self._invoke = handoff.on_invoke_handoff
        self._own = (handoff.input_filter, handoff.nest_handoff_history)
        self._message = handoff.get_transfer_message

    def __deepcopy__(self, memo: dict[int, object]) -> "GuardedHandoff":
        return self  # as a function is

    async def __call__(self, context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
        ledger, call_id = self._handoffs.ledger, self._handoffs.next_call(self._handoff, arguments).call_id
        denial = ledger.denial_for_model(call_id)
        self._handoffs.has_stayed = denial is not None
        if denial is not None:
            self._say(lambda agent: denial, (_unchanged, False))
            return self._double
        changed = ledger.changed(call_id)
        if changed is None:
            self._say(self._message, self._own)
        else:
            arguments = json.dumps(changed.args, ensure_ascii=False)
            self._say(lambda agent: f"{changed.note}\n\n{self._message(agent)}", self._own)
        await ledger.starting(call_id, describe_handoff(self._handoff), parsed(arguments))
        if isinstance(target := handoff_target(self._handoff), Agent):
            use_tools(public_agent(target))
        new_agent = self._handoffs.double_of(await self._invoke(context, arguments))
        use_tools(public_agent(new_agent))
        await ledger.finished(call_id, new_agent.name)
        return new_agent

    def _say(
        self, message: Callable[[AgentBase[Any]], str], history: tuple[HandoffInputFilter | None, bool | None]
    ) -> None:
        """The SDK asks the handoff for these once it has been called."""
        self._handoff.get_transfer_message = message  # type: ignore[method-assign, assignment]
        self._handoff.input_filter, self._handoff.nest_handoff_history = history


def _unchanged(data: HandoffInputData) -> HandoffInputData:
    return data
