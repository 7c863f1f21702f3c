"""Taking agents over: for one run, every agent that can be reached is replaced by a guarded double.

A double has the agent's name, settings and model. Its tools ask the ledger when they are called, its handoffs lead to
doubles, and its turns are judged as a whole (`turns`). The user's own objects are never changed, so that runs do not see
each other. A run that a tool starts by itself is found at the SDK's own runner (`nested_runs`), and belongs to the same
ledger.
"""

import copy
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from agents import (
    Agent,
    AgentHooks,
    CustomTool,
    FunctionTool,
    Handoff,
    HostedMCPTool,
    InputGuardrail,
    ModelResponse,
    OutputGuardrail,
    RunContextWrapper,
    ShellTool,
    Tool,
    TResponseInputItem,
    handoff,
)
from agents.sandbox import SandboxAgent

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.agents.sdk.guarded_calls import (
    CallIds,
    GuardedCustom,
    GuardedFunction,
    GuardedHandoff,
    GuardedShell,
    Handoffs,
    own_tool,
    with_own_agent,
)
from openai_responses_mcp.agents.sdk.internals import (
    agent_inside,
    handoff_target,
    is_agent_tool,
    public_agent,
    put_agent_inside,
    put_handoff_target,
    put_public_agent,
    use_tools,
    watch_tools,
)
from openai_responses_mcp.agents.sdk.tool_traits import Catalogue, check_is_tool, is_local
from openai_responses_mcp.gate.errors import AgentsError

TGuardrail = TypeVar("TGuardrail", InputGuardrail[Any], OutputGuardrail[Any])
McpTools = Callable[[Agent[Any], RunContextWrapper[Any]], Awaitable[list[Tool]]]

current_takeover: ContextVar["Takeover | None"] = ContextVar("guarded_takeover", default=None)


def is_guarded() -> bool:
    """Whether the code that runs right now belongs to a guarded run."""
    return current_takeover.get() is not None


def checked_agent(agent: object) -> Agent[Any]:
    if not isinstance(agent, Agent):
        kind = type(agent).__name__
        raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", f"A {kind} is not an agent that can be guarded")
    return agent


class Takeover:
    def __init__(self, ledger: RunLedger, mcp_tools: McpTools, *, watches_threads: bool = False) -> None:
        self.ledger = ledger
        self.watches_threads = watches_threads
        self.mcp_tools = mcp_tools
        self.ids = CallIds()
        self.handoffs = Handoffs(ledger, self.double_of)
        self.turn_inputs: dict[int, list[TResponseInputItem]] = {}
        self._doubles: dict[int, Agent[Any]] = {}
        self._originals: dict[int, Agent[Any]] = {}
        self._catalogues: dict[int, Catalogue] = {}

    def __deepcopy__(self, memo: dict[int, object]) -> "Takeover":
        """Copies of items and tools still belong to this run."""
        return self

    def double_of(self, agent: object) -> Agent[Any]:
        if id(agent) in self._originals:
            return cast(Agent[Any], agent)
        agent = checked_agent(agent)
        if isinstance(agent, SandboxAgent):
            # The SDK adds tools while it runs, which the double does not see.
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
            double.hooks = None if agent.hooks is None else _own_hooks(agent, agent.hooks)
            double.input_guardrails = [_own_guardrail(one, agent) for one in agent.input_guardrails]
            double.output_guardrails = [_own_guardrail(one, agent) for one in agent.output_guardrails]
            double.handoffs = [self._handoff_to_double(double, one) for one in agent.handoffs]
        return self._doubles[id(agent)]

    def original_of(self, agent: Agent[Any]) -> Agent[Any]:
        return self._originals.get(id(agent), agent)

    def double_named(self, name: str) -> Agent[Any] | None:
        """A double by its agent's name, among all that can be reached."""
        return next((double for double in self._doubles.values() if double.name == name), None)

    def catalogue_of(self, double: Agent[Any]) -> Catalogue:
        return self._catalogues.get(id(double)) or Catalogue()

    def renew_tools(self, double: Agent[Any]) -> None:
        """Follow the agent's current tools. Hooks may add some during the run."""
        tools = self.original_of(double).tools
        for tool in tools:
            check_is_tool(tool)
        # The copies stay the same objects: the SDK refuses an agent whose tools change while two runs use it.
        made = {id(own_tool(tool)): tool for tool in double.tools if own_tool(tool) is not tool}
        object.__setattr__(double, "tools", [self._guarded(tool, made.get(id(tool))) for tool in tools])

    async def tools_of(self, double: Agent[Any], tools: Sequence[Tool]) -> list[Tool]:
        """The tools of the next turn, guarded. Tools that the provider runs must be in scope before the model sees them."""
        guarded = [self._guarded(tool) for tool in tools]
        catalogue = self._catalogues[id(double)] = Catalogue()
        for tool in guarded:
            if (hosted := catalogue.offer(tool)) is not None:
                await self.ledger.offer_hosted(double, hosted)
        for one in double.handoffs:
            made = one if isinstance(one, Handoff) else handoff(one)
            catalogue.handoffs[made.tool_name] = made
        return guarded

    def _guarded(self, tool: Tool, made: Tool | None = None) -> Tool:
        """A copy of the tool that asks the ledger. One that was `made` before is brought up to date."""
        if own_tool(tool) is not tool or not isinstance(tool, FunctionTool | CustomTool | ShellTool | HostedMCPTool):
            return tool
        if isinstance(tool, ShellTool) and not is_local(tool):
            return tool
        kind = _class_from(_GuardedTool, type(tool)) if isinstance(tool, FunctionTool) else type(tool)
        # A copy like `copy` makes, without checking and copying the schema again for every run.
        guarded: Any = made or object.__new__(kind)
        guarded.__dict__.update(tool.__dict__, guarded_original=tool)
        if isinstance(tool, FunctionTool):
            guarded.takeover, guarded.on_invoke_tool = self, GuardedFunction(self.ledger, self.ids, tool)
            if is_agent_tool(tool):
                put_agent_inside(guarded, self.double_of(agent_inside(tool)))
        elif isinstance(tool, HostedMCPTool):
            guarded.on_approval_request = None  # the provider asks before the call; only the gate may answer
        else:
            guarded.on_approval = None
            guarded.needs_approval = lambda context, given, call_id: self.ledger.is_waiting(self.ids.of(call_id))
            if isinstance(tool, ShellTool):
                guarded.executor = GuardedShell(self.ledger, self.ids, tool)
            else:
                guarded.on_invoke_tool = GuardedCustom(self.ledger, self.ids, tool)
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
        guarded.on_invoke_handoff = GuardedHandoff(self.handoffs, double, guarded)
        return guarded


class _GuardedTool:
    """Mixed into the class of a tool's copy, in front of the SDK's. A copy equals the tool that it was made from."""

    takeover: Takeover
    guarded_original: FunctionTool

    def __eq__(self, other: object) -> bool:
        return self.guarded_original == own_tool(other)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]

    @property
    def needs_approval(self) -> bool | Callable[[object, object, str], Awaitable[bool]]:
        """A function only while something waits: with one, the SDK pauses at once for arguments that cannot be parsed."""
        return self._is_waiting if self.takeover.ledger.is_asking else False

    @needs_approval.setter
    def needs_approval(self, value: object) -> None:
        """Ignored: the tool's own setting was asked when its turn was judged."""

    async def _is_waiting(self, _context: object, _args: object, call_id: str) -> bool:
        return self.takeover.ledger.is_waiting(self.takeover.ids.of(call_id))


class _GuardedAgent:
    """Mixed into a double's class, in front of the SDK's. A double equals the agent that it was made from."""

    takeover: Takeover

    def __eq__(self, other: object) -> bool:
        return public_agent(self) == (public_agent(other) if isinstance(other, Agent) else other)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(public_agent(self))  # type: ignore[arg-type]

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


# ---------------------------------------------------------------------------------------------------------------------
# The user's code sees the user's own agents


class _OwnAgentHooks(AgentHooks[Any]):
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


def _own_hooks(agent: Agent[Any], hooks: AgentHooks[Any]) -> _OwnAgentHooks:
    """The SDK distinguishes agents of one name by the class of their hooks: its name, and whether it is a dataclass."""
    users = type(hooks)
    names: dict[str, Any] = {"__module__": users.__module__, "__qualname__": users.__qualname__}
    if hasattr(users, "__dataclass_fields__"):
        names["__dataclass_fields__"] = {}
    made: _OwnAgentHooks = type(users.__name__, (_OwnAgentHooks,), names)(agent, hooks)
    return made


def _own_guardrail(guardrail: TGuardrail, agent: Agent[Any]) -> TGuardrail:
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
