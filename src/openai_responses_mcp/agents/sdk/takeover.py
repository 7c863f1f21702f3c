"""Taking agents over: for one run, every agent that can be reached is replaced by a guarded double.

A double is the user's agent with the same name, settings and model, whose tools ask the guard at the moment they are
called, whose handoffs lead to doubles, and whose turns are judged as a whole when the model's reply is there and before
anything of it runs. The user's own objects are never changed, so that runs do not see each other. A run that a tool
starts by itself is found at the SDK's own runner (`nested_runs`) and taken over by the same guard.
"""

import asyncio
import copy
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from agents import (
    Agent,
    CustomTool,
    FunctionTool,
    Handoff,
    HostedMCPTool,
    ModelResponse,
    RunContextWrapper,
    ShellCommandRequest,
    ShellTool,
    Tool,
    ToolApprovalItem,
    TResponseInputItem,
    handoff,
)
from agents.exceptions import AgentsException, ModelBehaviorError
from agents.sandbox import SandboxAgent
from agents.tool_context import ToolContext

from openai_responses_mcp.agents.runs.ports import TurnLedger
from openai_responses_mcp.agents.sdk.handoffs import GuardedHandoff, Speaker
from openai_responses_mcp.agents.sdk.internals import (
    agent_inside,
    handoff_target,
    is_agent_tool,
    namespace_of,
    public_agent,
    put_agent_inside,
    put_handoff_target,
    put_public_agent,
    shell_call_in,
    use_tools,
    watched,
)
from openai_responses_mcp.agents.sdk.notes import with_note
from openai_responses_mcp.agents.sdk.own_agents import own_guardrail, own_hooks, own_tool, with_own_agent
from openai_responses_mcp.agents.sdk.tool_traits import (
    check_is_tool,
    describe_custom,
    describe_function,
    describe_handoff,
    describe_hosted,
    describe_hosted_call,
    describe_shell,
    field_of,
    is_local,
    parsed,
    why_not_for_a_tool,
    with_sdk_approval,
)
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription, arguments_hash
from openai_responses_mcp.gate.errors import AgentsError

McpTools = Callable[[Agent[Any], RunContextWrapper[Any]], Awaitable[list[Tool]]]


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A tool call that is running right now; a run started inside it belongs to it."""

    call_id: str
    is_agent_tool: bool


current_takeover: ContextVar["Takeover | None"] = ContextVar("guarded_takeover", default=None)
running_calls: ContextVar[tuple[RunningCall, ...]] = ContextVar("guarded_calls", default=())
# Failures of the call that runs right now which became an answer for the model instead of an error.
handed_to_model: ContextVar[list[str] | None] = ContextVar("guarded_failures", default=None)
# Whether code has already decided what the tool's `needs_approval` would be asked about.
is_settled: ContextVar[Callable[[ToolApprovalItem], bool]] = ContextVar("settled_calls", default=lambda item: False)


def is_guarded() -> bool:
    """Whether the code that runs right now belongs to a guarded run."""
    return current_takeover.get() is not None


def handed_over(failure: str) -> str:
    """An answer for the model in the place of an error. The call has failed, and is recorded so."""
    failures = handed_to_model.get()
    if failures is not None:
        failures.append(failure)
    return failure


class HandoffPause(AgentsException):
    """A turn of handoffs alone waits for a human. The SDK can pause only at tools, so the run stops here."""

    def __init__(self, double: Agent[Any], response: ModelResponse, context: RunContextWrapper[Any]) -> None:
        super().__init__("a handoff waits for a human")
        self.double = double
        self.response = response
        self.context = context


@dataclass(slots=True)
class Catalogue:
    """What a double offered to its model in the turn at hand, by the names that the model uses."""

    tools: dict[tuple[str | None, str], FunctionTool] = field(default_factory=dict)
    handoffs: dict[str, Handoff[Any, Any]] = field(default_factory=dict)
    hosted: dict[str, HostedMCPTool] = field(default_factory=dict)
    custom: dict[str, CustomTool] = field(default_factory=dict)
    shell: ShellTool | None = None
    _described: dict[int, ToolDescription] = field(default_factory=dict)

    @property
    def descriptions(self) -> list[ToolDescription]:
        tools = [self.description_of(tool) for tool in self.tools.values()]
        tools += [describe_custom(tool) for tool in self.custom.values()]
        tools += [] if self.shell is None else [describe_shell(self.shell)]
        return tools + [describe_handoff(one) for one in self.handoffs.values()]

    def description_of(self, tool: FunctionTool) -> ToolDescription:
        """Made once for each turn: hashing a definition takes longer than all the rest."""
        if id(tool) not in self._described:
            self._described[id(tool)] = describe_function(tool)
        return self._described[id(tool)]


class Takeover:
    def __init__(self, guard: TurnLedger, mcp_tools: McpTools, *, watches_threads: bool = False) -> None:
        self.guard = guard
        self.watches_threads = watches_threads
        self.mcp_tools = mcp_tools
        self.turn_inputs: dict[int, list[TResponseInputItem]] = {}
        self._doubles: dict[int, Agent[Any]] = {}
        self._originals: dict[int, Agent[Any]] = {}
        self._catalogues: dict[int, Catalogue] = {}
        self._handoff_turns: list[list[PlannedCall]] = []
        self.has_stayed = False
        # For each id of a call the calls around the one that used it first.
        self.first_uses: dict[str, list[str]] = {}
        self._ids: dict[int, tuple[object, str]] = {}

    def __deepcopy__(self, memo: dict[int, object]) -> "Takeover":
        """What is copied with items and tools still belongs to this run."""
        return self

    # -----------------------------------------------------------------------------------------------------------------
    # Agents

    def double_of(self, agent: object) -> Agent[Any]:
        if id(agent) in self._originals:
            return cast(Agent[Any], agent)
        if not isinstance(agent, Agent):
            kind = type(agent).__name__
            raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", f"A {kind} is not an agent that can be guarded")
        if isinstance(agent, SandboxAgent):
            # The SDK gives it tools of its own while it runs, which the double does not see.
            message = f"{agent.name} is a SandboxAgent, whose shell and files cannot be guarded call by call"
            raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", message)
        for tool in agent.tools:
            check_is_tool(tool)
        if id(agent) not in self._doubles:
            double: Agent[Any] = object.__new__(_class_from(_GuardedAgent, type(agent)))
            double.__dict__.update(agent.__dict__, takeover=self)
            put_public_agent(double, agent)
            # Known before its handoffs are followed: agents may hand over in circles.
            self._doubles[id(agent)] = double
            self._originals[id(double)] = agent
            self.renew_tools(double)
            double.hooks = None if agent.hooks is None else own_hooks(agent, agent.hooks)
            double.input_guardrails = [own_guardrail(one, agent) for one in agent.input_guardrails]
            double.output_guardrails = [own_guardrail(one, agent) for one in agent.output_guardrails]
            double.handoffs = [self._handoff_to_double(double, one) for one in agent.handoffs]
        return self._doubles[id(agent)]

    def renew_tools(self, double: Agent[Any]) -> None:
        """The agent's tools as they are now. Hooks may add some while the run goes on."""
        tools = self.original_of(double).tools
        for tool in tools:
            check_is_tool(tool)
        # The copies stay the same objects: the SDK refuses an agent whose tools change while two runs use it.
        made = {id(own_tool(tool)): tool for tool in double.tools if own_tool(tool) is not tool}
        object.__setattr__(double, "tools", [self._guarded(tool, made.get(id(tool))) for tool in tools])

    def original_of(self, agent: Agent[Any]) -> Agent[Any]:
        return self._originals.get(id(agent), agent)

    def find(self, name: str) -> Agent[Any] | None:
        """A double by its agent's name, among all that can be reached."""
        return next((double for double in self._doubles.values() if double.name == name), None)

    def catalogue_of(self, double: Agent[Any]) -> Catalogue:
        return self._catalogues.get(id(double)) or Catalogue()

    async def tools_of(self, double: Agent[Any], tools: Sequence[Tool]) -> list[Tool]:
        """The tools of the turn to come, all guarded; what the provider runs must be in scope before the model sees it."""
        guarded = [self._guarded(tool) for tool in tools]
        catalogue = self._catalogues[id(double)] = Catalogue()
        for tool in guarded:
            if isinstance(tool, FunctionTool):
                catalogue.tools[namespace_of(tool), tool.name] = tool
                continue
            if isinstance(tool, CustomTool):
                catalogue.custom[tool.name] = tool
                continue
            if isinstance(tool, ShellTool) and is_local(tool):
                catalogue.shell = tool
                continue
            await self.guard.offer_hosted(double, describe_hosted(tool))
            if isinstance(tool, HostedMCPTool):
                catalogue.hosted[str(tool.tool_config.get("server_label"))] = tool
        for one in double.handoffs:
            made = one if isinstance(one, Handoff) else handoff(one)
            catalogue.handoffs[made.tool_name] = made
        return guarded

    # -----------------------------------------------------------------------------------------------------------------
    # Ids of calls

    def call_id(self, given: str) -> str:
        """The guard's id for a call. A run inside a call may use ids of the run around it for calls of its own."""
        around = [call.call_id for call in running_calls.get()]
        return given if self.first_uses.setdefault(given, around) == around else "/".join([*around, given])

    def id_of(self, item: ToolApprovalItem) -> str:
        """The same for an item that waits, also where the run inside is not going on right now."""
        known = self._ids.get(id(item.raw_item))
        return known[1] if known is not None else self.call_id(item.call_id or "")

    def put_id(self, raw_item: object, call_id: str) -> None:
        self._ids[id(raw_item)] = (raw_item, call_id)

    # -----------------------------------------------------------------------------------------------------------------
    # Turns

    async def judge(self, double: Agent[Any], response: ModelResponse, context: RunContextWrapper[Any]) -> None:
        """Decide the whole turn. Nothing of it has run yet."""
        catalogue = self.catalogue_of(double)
        calls = await self.planned(double, response.output, context)
        if not calls:
            return
        transfers = {describe_handoff(one).definition_hash for one in catalogue.handoffs.values()}
        handoffs = [call for call in calls if call.tool.definition_hash in transfers]
        self.expect_handoffs(handoffs)
        try:
            await self.guard.judge(self.original_of(double), calls, catalogue.descriptions)
        except AgentsError as exc:
            if exc.code == "AGENTS-E-RUNNER":  # the model's mistake, which has a name of its own in the SDK
                exc.__cause__ = ModelBehaviorError("Model reused a tool call ID for a different invocation.")
            raise
        if not any(self.guard.is_waiting(call.call_id) and self.guard.told(call.call_id) is None for call in calls):
            return
        await self._suspend_callers()
        if len(handoffs) == len(calls):
            if running_calls.get():
                raise self._cannot_pause("a handoff inside a tool call")
            raise HandoffPause(double, response, context)

    async def planned(
        self, double: Agent[Any], items: Sequence[object], context: RunContextWrapper[Any] | None = None
    ) -> list[PlannedCall]:
        """The calls among the items of a model's reply, as the gate sees them. Unknown tools are the SDK's to report.

        With the caller's `context` the tools are asked whether they demand an approval.
        """
        catalogue = self.catalogue_of(double)
        calls: list[PlannedCall] = []
        for item in items:
            kind = field_of(item, "type")
            if kind == "shell_call" and catalogue.shell is not None:
                calls.append(await self._planned_shell(catalogue.shell, item, context))
            if kind not in ("function_call", "mcp_approval_request", "custom_tool_call"):
                continue
            name = field_of(item, "name")
            args = (
                parsed(field_of(item, "arguments"))
                if kind != "custom_tool_call"
                else {"input": field_of(item, "input")}
            )
            if kind == "mcp_approval_request":
                if hosted := catalogue.hosted.get(field_of(item, "server_label")):
                    calls.append(
                        PlannedCall(self.call_id(field_of(item, "id")), describe_hosted_call(hosted, item), args)
                    )
                continue
            given = field_of(item, "call_id")
            call_id = self._ids[id(item)][1] if id(item) in self._ids else self.call_id(given)
            self.put_id(item, call_id)
            if kind == "custom_tool_call":
                if custom := catalogue.custom.get(name):
                    calls.append(PlannedCall(call_id, await self._described_custom(custom, item, context), args))
                continue
            namespace = field_of(item, "namespace")
            # A tool without a namespace that is loaded late is called as the only one of a namespace of its name.
            if tool := catalogue.tools.get((namespace, name)) or catalogue.tools.get(
                (None, name) if namespace == name else ("", "")
            ):
                original = cast(FunctionTool, own_tool(tool))
                description = catalogue.description_of(tool)
                if context is not None and is_settled.get()(
                    ToolApprovalItem(self.original_of(double), cast(Any, item))
                ):
                    description = replace(description, require_approval=True)
                elif context is not None:
                    written = field_of(item, "arguments") or ""
                    description = await with_sdk_approval(description, original, context, written, given)
                calls.append(PlannedCall(call_id, description, args))
            elif transfer := catalogue.handoffs.get(name):
                calls.append(PlannedCall(call_id, describe_handoff(transfer), args))
        return calls

    async def _planned_shell(
        self, tool: ShellTool, item: object, context: RunContextWrapper[Any] | None
    ) -> PlannedCall:
        given, described = shell_call_in(item), describe_shell(tool)
        known = self._ids.get(id(item))
        call_id = known[1] if known is not None else self.call_id(given.call_id)
        self.put_id(item, call_id)
        if context is not None:
            original = cast(ShellTool, own_tool(tool))
            described = await with_sdk_approval(described, original, context, given.action, given.call_id)
        return PlannedCall(call_id, described, asdict(given.action))

    async def _described_custom(
        self, tool: CustomTool, item: object, context: RunContextWrapper[Any] | None
    ) -> ToolDescription:
        described, original = describe_custom(tool), cast(CustomTool, own_tool(tool))
        if context is None:
            return described
        text, call_id = field_of(item, "input"), field_of(item, "call_id")
        return await with_sdk_approval(described, original, context, text, call_id)

    def expect_handoffs(self, calls: Sequence[PlannedCall]) -> None:
        """The handoffs of a turn. The SDK makes one of them, and leaves the others aside."""
        if calls:
            self._handoff_turns.append(list(calls))

    async def _suspend_callers(self) -> None:
        for call in running_calls.get():
            if not call.is_agent_tool:
                raise self._cannot_pause("a run that a function tool started by itself")
            await self.guard.suspend(call.call_id)

    def _cannot_pause(self, where: str) -> AgentsError:
        return self.guard.refuse(
            AgentsError(
                "AGENTS-E-AGENT-CAPABILITY-RESOLVE",
                f"A call needs a human in {where}, which cannot be paused; nothing of its turn ran",
            )
        )

    # -----------------------------------------------------------------------------------------------------------------
    # Tools and handoffs

    def _guarded(self, tool: Tool, made: Tool | None = None) -> Tool:
        """A copy of the tool that asks the guard. One that was `made` before is brought up to date."""
        if own_tool(tool) is not tool or not isinstance(tool, FunctionTool | CustomTool | ShellTool | HostedMCPTool):
            return tool
        if isinstance(tool, ShellTool) and not is_local(tool):
            return tool
        kind = _class_from(_GuardedTool, type(tool)) if isinstance(tool, FunctionTool) else type(tool)
        # A copy like `copy` makes, without checking and copying the schema again for every run.
        guarded: Any = made or object.__new__(kind)
        guarded.__dict__.update(tool.__dict__, guarded_original=tool)
        if isinstance(tool, FunctionTool):
            guarded.takeover, guarded.on_invoke_tool = self, _GuardedCall(self, tool)
            if is_agent_tool(tool):
                put_agent_inside(guarded, self.double_of(agent_inside(tool)))
        elif isinstance(tool, HostedMCPTool):
            guarded.on_approval_request = None  # the provider asks before the call; only the gate may answer
        else:
            guarded.on_approval = None
            guarded.needs_approval = lambda context, given, call_id: self.guard.is_waiting(self.call_id(call_id))
            if isinstance(tool, ShellTool):
                guarded.executor = _GuardedShell(self, tool)
            else:
                guarded.on_invoke_tool = _GuardedCustomCall(self, tool)
        return cast(Tool, guarded)

    def _handoff_to_double(self, double: Agent[Any], one: Agent[Any] | Handoff[Any, Any]) -> Handoff[Any, Any]:
        guarded = copy.copy(one) if isinstance(one, Handoff) else handoff(self.double_of(one))
        target = handoff_target(guarded)
        if isinstance(target, Agent):
            put_handoff_target(guarded, self.double_of(target))
        if callable(is_enabled := guarded.is_enabled):
            agent = self.original_of(double)

            def asked_with_own_agent(context: RunContextWrapper[Any], _: object) -> Any:
                use_tools(agent)
                return is_enabled(context, agent)

            guarded.is_enabled = asked_with_own_agent
        speaker = Speaker(double, self.guard, self._next_handoff, self.double_of, self._stay)
        guarded.on_invoke_handoff = GuardedHandoff(speaker, guarded)
        return guarded

    def _stay(self, has_stayed: bool) -> None:
        self.has_stayed = has_stayed

    def _next_handoff(self, guarded: Handoff[Any, Any], arguments: str) -> PlannedCall:
        """The call that is about to hand over. A call that was not judged has no id."""
        named = [(call, turn) for turn in self._handoff_turns for call in turn if call.tool.name == guarded.agent_name]
        wanted = arguments_hash(parsed(arguments))
        fitting = [(call, turn) for call, turn in named if arguments_hash(call.args) == wanted]
        if not named:
            return PlannedCall("", describe_handoff(guarded), {})
        # One with other arguments than were judged is refused by the guard, under its own id.
        call, turn = (fitting or named)[0]
        self._handoff_turns.remove(turn)
        return call


class _GuardedTool:
    """Mixed into the class of a tool's copy, in front of the SDK's. A copy equals the tool that it was made from."""

    takeover: Takeover
    guarded_original: FunctionTool

    def __eq__(self, other: object) -> bool:
        return self.guarded_original == own_tool(other)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]

    @property
    def needs_approval(self) -> bool | Callable[[object, object, str], Awaitable[bool]]:
        """Asked by call only while something waits. Of a function the SDK asks nothing where arguments cannot be parsed:
        it pauses at once."""
        return self._is_waiting if self.takeover.guard.is_asking else False

    @needs_approval.setter
    def needs_approval(self, value: object) -> None:
        """The tool's own demand was heard when its turn was judged."""

    async def _is_waiting(self, _context: object, _args: object, call_id: str) -> bool:
        return self.takeover.guard.is_waiting(self.takeover.call_id(call_id))


class _GuardedCall:
    """Takes the place of a tool: asks the guard, runs the tool, and tells the guard what came of it."""

    def __init__(self, takeover: Takeover, tool: FunctionTool) -> None:
        self._takeover = takeover
        self._tool = tool

    async def __call__(self, context: ToolContext[Any], arguments: str) -> object:
        guard, call_id = self._takeover.guard, self._takeover.call_id(context.tool_call_id)
        with_own_agent(context)
        changed = guard.changed(call_id)
        if changed is not None:
            arguments = json.dumps(changed.args, ensure_ascii=False)
            context = copy.copy(context)
            context.tool_arguments = arguments
        await guard.starting(call_id, describe_function(self._tool), parsed(arguments))
        inside = running_calls.set((*running_calls.get(), RunningCall(call_id, is_agent_tool(self._tool))))
        failures: list[str] = []
        output: object
        watching = handed_to_model.set(failures)
        try:
            if (wrong := why_not_for_a_tool(arguments)) is not None:
                output = handed_over(f"Invalid JSON input for tool {self._tool.name}: {wrong}")
            else:
                output = await watched(self._tool, lambda exc: failures.append(_told(exc)))(context, arguments)
        except (Exception, asyncio.CancelledError) as exc:
            await guard.finished(call_id, None, error=_told(exc))
            raise
        finally:
            handed_to_model.reset(watching)
            running_calls.reset(inside)
        if guard.refusal is not None:
            # Something inside the tool was refused, and the SDK turned that into an answer for the model.
            await guard.finished(call_id, None, error="refused inside")
            raise guard.refusal
        await guard.finished(call_id, output, error=failures[-1] if failures else None)
        return output if changed is None else with_note(output, changed.note, context.agent)


class _GuardedCustomCall:
    """The same for a tool that is called with a text."""

    def __init__(self, takeover: Takeover, tool: CustomTool) -> None:
        self._takeover = takeover
        self._tool = tool

    async def __call__(self, context: ToolContext[Any], text: str) -> object:
        guard, call_id = self._takeover.guard, self._takeover.call_id(context.tool_call_id)
        with_own_agent(context)
        changed = guard.changed(call_id)
        text = text if changed is None else str(changed.args["input"])
        await guard.starting(call_id, describe_custom(self._tool), {"input": text})
        inside = running_calls.set((*running_calls.get(), RunningCall(call_id, is_agent_tool=False)))
        try:
            output = self._tool.on_invoke_tool(context, text)
            output = await output if inspect.isawaitable(output) else output
        except (Exception, asyncio.CancelledError) as exc:
            await guard.finished(call_id, None, error=_told(exc))
            raise
        finally:
            running_calls.reset(inside)
        await guard.finished(call_id, output)
        if guard.refusal is not None:
            raise guard.refusal
        return output if changed is None else with_note(output, changed.note, context.agent)


class _GuardedShell:
    """The same for commands."""

    def __init__(self, takeover: Takeover, tool: ShellTool) -> None:
        self._takeover = takeover
        self._tool = tool

    async def __call__(self, request: ShellCommandRequest) -> Any:
        guard, call_id = self._takeover.guard, self._takeover.call_id(request.data.call_id)
        action = request.data.action
        if (changed := guard.changed(call_id)) is not None:
            action = replace(action, commands=[str(one) for one in cast("list[object]", changed.args["commands"])])
            request = replace(request, data=replace(request.data, action=action))
        args = asdict(action) if changed is None else dict(changed.args)
        await guard.starting(call_id, describe_shell(self._tool), args)
        assert self._tool.executor is not None  # noqa: S101 - a local shell has one
        try:
            output = self._tool.executor(request)
            output = await output if inspect.isawaitable(output) else output
        except (Exception, asyncio.CancelledError) as exc:
            await guard.finished(call_id, None, error=_told(exc))
            raise
        await guard.finished(call_id, str(output))
        return output


def _told(failure: BaseException) -> str:
    return f"{type(failure).__name__}: {failure}"


class _GuardedAgent:
    """Mixed into a double's class, in front of the SDK's."""

    takeover: Takeover

    def __deepcopy__(self, memo: dict[int, object]) -> Agent[Any]:
        """Handoff filters copy items. The agent in a copied item is the user's own."""
        return public_agent(self)  # type: ignore[arg-type]

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        return await public_agent(self).get_system_prompt(run_context)  # type: ignore[arg-type]

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        return await self.takeover.mcp_tools(self, run_context)  # type: ignore[arg-type]

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        self.takeover.renew_tools(self)  # type: ignore[arg-type]
        tools: list[Tool] = await super().get_all_tools(run_context)  # type: ignore[misc]
        return await self.takeover.tools_of(self, tools)  # type: ignore[arg-type]


_classes: dict[type, type] = {}


def _class_from(mixed_in: type, users: type) -> type:
    if users not in _classes:
        _classes[users] = type(f"Guarded{users.__name__}", (mixed_in, users), {})
    return _classes[users]
