"""An engine without the SDK: agents are plain objects, and what their models say is enqueued, one turn after another.

A turn is a text, a `FakeCall`, a list of both, or an exception to raise. The engine keeps the whole contract of the
port: turns are judged before anything of them runs, a pause can be saved as JSON and read back by another engine, and
an agent used as a tool pauses from inside.
"""

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.agents.runs.models import Extensions, RunEvent, UsageStats
from openai_responses_mcp.agents.runs.ports import (
    NOTHING_SAID,
    AgentEngine,
    EngineEvent,
    EngineOptions,
    EngineOutcome,
    PausedRun,
    Said,
)
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription, Turn
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.guardrails import AgentGuardrails
from openai_responses_mcp.gate.json_values import digest

MOST_TURNS = 10


@dataclass(eq=False)
class FakeAgent:
    name: str
    tools: list["FakeTool"] = field(default_factory=list)
    handoffs: list["FakeAgent"] = field(default_factory=list)
    guardrails: AgentGuardrails | None = None
    extensions: Extensions | None = None

    @property
    def catalogue(self) -> list[ToolDescription]:
        return [tool.described for tool in self.tools] + [_handoff_to(one) for one in self.handoffs]


@dataclass(frozen=True)
class FakeTool:
    """Does its `work` with the arguments of the call; one with an `agent` asks that agent instead."""

    name: str
    work: Callable[..., Any] = lambda **args: "done"
    description: str = ""
    risk_level: int | None = None
    agent: FakeAgent | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def described(self) -> ToolDescription:
        facts = (self.name, self.description, self.risk_level)
        return ToolDescription(
            self.name,
            "function",
            self.description,
            self.parameters,
            risk_level=self.risk_level,
            definition_hash=digest(*facts),
        )


@dataclass(frozen=True)
class FakeCall:
    """A call that the model makes: of a tool, or of the agent to hand over to."""

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = ""


@dataclass(frozen=True)
class EngineCall:
    """One request that reached the engine."""

    agent: Any
    input: Any
    options: EngineOptions


@dataclass(frozen=True)
class FakeResult:
    """Stands where the SDK's result would."""

    final_output: str | None


class FakeEngine(AgentEngine):
    def __init__(self, *turns: Any) -> None:
        self.calls: list[EngineCall] = []
        self.heard: list[list[Any]] = []
        """The input of the models, one list for each turn."""
        self.streams = 0
        """How often a run was asked for as a stream."""
        self._turns = deque(turns)
        self._made = 0

    def enqueue(self, *turns: Any) -> None:
        self._turns.extend(turns)

    @property
    def turns_left(self) -> list[Any]:
        return list(self._turns)

    async def describe(self, agent: Any, guard: RunLedger, context: Any = None) -> list[ToolDescription]:
        return _an_agent(agent).catalogue

    async def stream(
        self, agent: Any, input: Any, guard: RunLedger, options: EngineOptions
    ) -> AsyncGenerator[EngineEvent, None]:
        self.calls.append(EngineCall(agent, input, options))
        async with aclosing(self.steps_of(_started(agent, input, guard, options), options)) as steps:
            async for step in steps:
                yield step

    async def restore(
        self, agent: Any, saved: Mapping[str, Any], guard: RunLedger, options: EngineOptions
    ) -> PausedRun:
        self.calls.append(EngineCall(agent, None, options))
        try:
            return _FakePause(self, _read(_an_agent(agent), saved, guard, options), options)
        except (LookupError, TypeError) as exc:
            message = "The saved run cannot be read"
            raise AgentsError("AGENTS-E-RUNNER", message, details={"reason": "state_unreadable"}) from exc

    # -----------------------------------------------------------------------------------------------------------------

    def steps_of(self, talk: "_Talk", options: EngineOptions) -> AsyncGenerator[EngineEvent, None]:
        self.streams += options.is_streamed
        return self._steps(talk, "AGENTS-E-STREAM" if options.is_streamed else "AGENTS-E-RUNNER")

    async def _steps(self, talk: "_Talk", otherwise: str) -> AsyncGenerator[EngineEvent, None]:
        """Every step of the run, and its outcome last. Foreign errors become the code given."""
        failure: AgentsError | None = None
        try:
            async with aclosing(self._talk(talk)) as steps:
                async for step in steps:
                    yield step
        except AgentsError as exc:
            failure = exc
        except Exception as exc:  # tools and scripts raise what they like
            failure = AgentsError(otherwise, f"{type(exc).__name__}: {exc}")
            failure.__cause__ = exc
        if talk.guard.refusal is not None:
            raise talk.guard.refusal
        if failure is not None:
            raise failure

    async def _talk(self, talk: "_Talk") -> AsyncGenerator[EngineEvent, None]:
        while True:
            if not talk.turn:
                said = self._said_by(talk)
                if isinstance(said, str):
                    if not talk.is_requested:
                        yield EngineEvent(raw=said, event=RunEvent("text_delta", delta=said))
                    yield EngineEvent(outcome=talk.ended(said))
                    return
                talk.turn = said
                await talk.guard.used_tokens(talk.tokens)
                talk.tokens = 0
                await talk.guard.judge(talk.agent, [one.call for one in said], talk.agent.catalogue)
                for one in said:
                    shown = talk.guard.shown(one.call)
                    yield EngineEvent(raw=one, event=RunEvent("tool_call", tool_call=shown))
                if any(talk.guard.is_waiting(one.call.call_id) for one in talk.turn):
                    yield EngineEvent(outcome=talk.paused())
                    return
            for one in [call for call in talk.turn if not call.is_done]:
                await self._make(one, talk)
                if one.is_done and (result := talk.guard.result_of(one.call.call_id)):
                    yield EngineEvent(raw=one, event=RunEvent("tool_output", tool_call=result))
            if not all(one.is_done for one in talk.turn):
                yield EngineEvent(outcome=talk.paused())
                return
            talk.turn_is_over()

    def _said_by(self, talk: "_Talk") -> "str | list[_Call]":
        if talk.guard.refusal is not None:
            raise talk.guard.refusal
        if talk.requested:
            wanted, talk.requested = talk.requested, ()
            return [_Call(call) for call in wanted]
        if talk.is_requested:
            return "\n".join(str(item["output"]) for item in talk.messages if "output" in item)
        if talk.turns == talk.most_turns:
            raise AgentsError("AGENTS-E-RUNNER", f"{talk.turns} turns were not enough")
        self.heard.append(list(talk.messages))
        turn = self._turns.popleft()
        if isinstance(turn, BaseException):
            raise turn
        talk.turns += 1
        talk.meter.requests += 1
        talk.tokens += 2
        parts = turn if isinstance(turn, list) else [turn]
        texts = [part for part in parts if isinstance(part, str)]
        calls = [_Call(self._planned(part, talk.agent)) for part in parts if not isinstance(part, str)]
        return calls or "".join(texts)

    def _planned(self, part: Any, agent: FakeAgent) -> PlannedCall:
        self._made += 1
        tool = next((tool for tool in agent.catalogue if tool.name == part.name), None)
        if tool is None:
            raise AgentsError("AGENTS-E-RUNNER", f"The model called {part.name}, which is no tool")
        return PlannedCall(part.call_id or f"call-{id(self)}-{self._made}", tool, dict(part.args))

    async def _make(self, one: "_Call", talk: "_Talk") -> None:
        """Run one call, unless an agent inside it pauses."""
        call, guard = one.call, talk.guard
        if (told := guard.told(call.call_id)) is not None:
            one.done_with(told)
            return
        changed = guard.changed(call.call_id)
        if changed is not None:
            one.call = call = replace(call, args=changed.args)
        current = next(tool for tool in talk.agent.catalogue if tool.name == call.tool.name)
        await guard.starting(call.call_id, current, call.args)
        target = next((other for other in talk.agent.handoffs if other.name == call.tool.name), None)
        if target is not None:
            talk.next_agent = target
            one.done_with(target.name)
        else:
            tool = next(tool for tool in talk.agent.tools if tool.name == call.tool.name)
            try:
                await self._work(one, tool, talk)
            except Exception as exc:
                await guard.finished(call.call_id, None, error=f"{type(exc).__name__}: {exc}")
                raise
        if one.is_done:
            await guard.finished(call.call_id, one.output)
            if changed is not None:
                one.output = f"{changed.note}\n\n{one.output}"

    async def _work(self, one: "_Call", tool: FakeTool, talk: "_Talk") -> None:
        if tool.agent is None:
            one.done_with(tool.work(**one.call.args))
            return
        inner = one.inner or _started(tool.agent, str(one.call.args.get("input", "")), talk.guard, EngineOptions())
        inner.meter = talk.meter
        outcome = await outcome_of(self._steps(inner, "AGENTS-E-RUNNER"))
        if outcome.saved is None:
            one.done_with(outcome.output_text)
            return
        one.inner = inner
        await talk.guard.suspend(one.call.call_id)


@dataclass
class _Call:
    """A call of the turn at hand. `inner` is the paused run inside it."""

    call: PlannedCall
    output: Any = None
    is_done: bool = False
    inner: "_Talk | None" = None

    def done_with(self, output: Any) -> None:
        self.output, self.is_done, self.inner = output, True, None


@dataclass
class _Meter:
    """Counts the requests to models, also those of agents inside."""

    requests: int = 0


@dataclass
class _Talk:
    """A run on its way: who speaks, what was said, and the turn that is being made."""

    agent: FakeAgent
    guard: RunLedger
    messages: list[Any]
    most_turns: int = MOST_TURNS
    requested: tuple[PlannedCall, ...] = ()
    is_requested: bool = False
    turns: int = 0
    tokens: int = 0
    meter: _Meter = field(default_factory=_Meter)
    turn: list[_Call] = field(default_factory=list)
    next_agent: FakeAgent | None = None

    def turn_is_over(self) -> None:
        for one in self.turn:
            self.messages.append({"call_id": one.call.call_id, "output": one.output})
        self.turn = []
        if self.next_agent is not None:
            self.agent, self.next_agent, self.is_requested = self.next_agent, None, False

    def ended(self, text: str) -> EngineOutcome:
        self.messages.append({"role": "assistant", "content": text})
        return replace(self._outcome(FakeResult(text)), output_text=text)

    def paused(self) -> EngineOutcome:
        return replace(self._outcome(FakeResult(None)), saved=json.loads(json.dumps(self.saved())))

    def _outcome(self, result: FakeResult) -> EngineOutcome:
        asked = self.meter.requests
        usage = UsageStats(asked, asked, asked, 2 * asked)
        return EngineOutcome(result, messages=tuple(self.messages), usage=usage, last_agent=self.agent)

    def saved(self) -> dict[str, Any]:
        return {
            "agent": self.agent.name,
            "messages": self.messages,
            "is_requested": self.is_requested,
            "turns": self.turns,
            "requests": self.meter.requests,
            "turn": [
                {
                    "call_id": one.call.call_id,
                    "name": one.call.tool.name,
                    "args": dict(one.call.args),
                    "output": one.output,
                    "is_done": one.is_done,
                    "inner": one.inner.saved() if one.inner else None,
                }
                for one in self.turn
            ],
        }

    @property
    def waiting(self) -> list[Turn]:
        own = tuple(one.call for one in self.turn if one.inner is None and not one.is_done)
        inside = [turn for one in self.turn if one.inner is not None for turn in one.inner.waiting]
        return [Turn(self.agent, own, tuple(self.agent.catalogue)), *inside]


class _FakePause(PausedRun):
    def __init__(self, engine: FakeEngine, talk: _Talk, options: EngineOptions) -> None:
        self._engine = engine
        self._talk = talk
        self._options = options

    @property
    def turns(self) -> Sequence[Turn]:
        return self._talk.waiting

    def stream(self, said: Said = NOTHING_SAID) -> AsyncGenerator[EngineEvent, None]:
        if said.text is not None:
            self._talk.messages.append({"role": "user", "content": said.text})
        self._talk.messages.extend(said.input)
        return self._engine.steps_of(self._talk, self._options)


def _started(agent: Any, input: Any, guard: RunLedger, options: EngineOptions) -> _Talk:
    said = [{"role": "user", "content": input}] if isinstance(input, str) else list(input or ())
    talk = _Talk(_an_agent(agent), guard, said, requested=options.requested_calls)
    talk.is_requested = bool(options.requested_calls)
    talk.most_turns = options.max_turns or MOST_TURNS
    return talk


def _read(agent: FakeAgent, saved: Mapping[str, Any], guard: RunLedger, options: EngineOptions) -> _Talk:
    speaker = _reachable(agent)[saved["agent"]]
    talk = _Talk(speaker, guard, list(saved["messages"]), is_requested=saved["is_requested"])
    talk.most_turns = options.max_turns or MOST_TURNS
    talk.turns, talk.meter.requests = saved["turns"], saved["requests"]
    catalogue, inside = {tool.name: tool for tool in speaker.catalogue}, {tool.name: tool for tool in speaker.tools}
    for one in saved["turn"]:
        made = _Call(PlannedCall(one["call_id"], catalogue[one["name"]], one["args"]), one["output"], one["is_done"])
        asked = inside[one["name"]].agent if one["inner"] else None
        if asked is not None:
            made.inner = _read(asked, one["inner"], guard, EngineOptions())
        talk.turn.append(made)
    return talk


def _reachable(agent: FakeAgent) -> dict[str, FakeAgent]:
    found, to_follow = {agent.name: agent}, [agent]
    while to_follow:
        for other in to_follow.pop().handoffs:
            if other.name not in found:
                found[other.name] = other
                to_follow.append(other)
    return found


def _handoff_to(agent: FakeAgent) -> ToolDescription:
    return ToolDescription(agent.name, "function", definition_hash=digest("handoff", agent.name))


def _an_agent(agent: Any) -> FakeAgent:
    if not isinstance(agent, FakeAgent):
        message = f"A {type(agent).__name__} is not an agent that can be guarded"
        raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", message)
    return agent


async def outcome_of(steps: AsyncGenerator[EngineEvent, None]) -> EngineOutcome:
    seen: Sequence[EngineEvent] = [step async for step in steps]
    outcome = seen[-1].outcome
    assert outcome is not None
    return outcome
