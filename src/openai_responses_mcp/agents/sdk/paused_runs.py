"""Paused runs of the SDK, read back and carried on.

A run that paused at tools is the SDK's own run state. A run that paused at handoffs alone is the model's reply with the
input that it answered: on resume the reply is replayed.
"""

import dataclasses
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    RunState,
    TResponseInputItem,
    Usage,
    UserError,
)
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter

from openai_responses_mcp.agents.providers.replayed_models import RepeatedModel
from openai_responses_mcp.agents.runs.models import UsageStats
from openai_responses_mcp.agents.runs.ports import NOTHING_SAID, EngineEvent, PausedRun, Said
from openai_responses_mcp.agents.sdk.failures import translated
from openai_responses_mcp.agents.sdk.internals import (
    calls_in,
    context_in,
    has_run,
    keep_outputs,
    pending_handoffs,
    put_calls,
    without_decisions,
)
from openai_responses_mcp.agents.sdk.sessions import Session, approve_all, context_for
from openai_responses_mcp.agents.sdk.takeover import Takeover
from openai_responses_mcp.gate.calls import PlannedCall, Turn
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import OwnJson

_OUTPUT = TypeAdapter(list[ResponseOutputItem])


class PausedAtTools(PausedRun):
    def __init__(self, session: Session, state: RunState[Any, Any], turns: Sequence[Turn]) -> None:
        self._session = session
        self._state = state
        self._turns = turns

    @classmethod
    async def read(cls, session: Session, saved: OwnJson) -> "PausedAtTools":
        takeover, context = session.takeover, session.context
        # Called here first: inside the SDK a failure would lose its name.
        await session.start.get_all_tools(context)
        given = session.options.pop("context", None)
        override = None if given is None else context_for(given)
        calls_before = {} if override is None else calls_in(override)
        state = await RunState.from_json(session.start, dict(saved["state"]), context_override=override)
        put_calls(state, calls_before)
        turns: list[Turn] = []
        takeover.first_uses = dict(saved["first_uses"])
        waiting = state.get_interruptions()
        if len(waiting) < len(saved["call_ids"]):
            message = "An agent used as a tool that waits for a human is gone, or is another one now"
            raise AgentsError("AGENTS-E-RESUME-TOKEN", message, details={"reason": "changed"})
        for item, call_id in zip(waiting, saved["call_ids"], strict=True):
            takeover.put_id(item.raw_item, call_id)
            await item.agent.get_all_tools(context)
            turns.append(_turn(takeover, item.agent, await takeover.planned(item.agent, [item.raw_item])))
        speaker, handoffs = pending_handoffs(state)
        if handoffs and speaker is not None:
            transfers = await takeover.planned(speaker, handoffs)
            takeover.expect_handoffs(transfers)
            turns.append(_turn(takeover, speaker, transfers))
        return cls(session, state, turns)

    @property
    def turns(self) -> Sequence[Turn]:
        return self._turns

    async def stream(self, said: Said = NOTHING_SAID) -> AsyncGenerator[EngineEvent, None]:
        takeover = self._session.takeover
        with translated(takeover.guard, "AGENTS-E-RUNNER"):
            await approve_all(self._state, takeover, said.rejections)
        for input in filter(None, (said.text, list(said.input))):
            _tell(self._state, cast("str | list[TResponseInputItem]", input))
        yield EngineEvent(raw=self._state)  # for callers that want to know how far the run has come when it fails
        async with aclosing(self._session.stream(self._state)) as steps:
            async for step in steps:
                yield step


class PausedAtHandoff(PausedRun):
    def __init__(self, session: Session, input: list[TResponseInputItem], turn: Turn) -> None:
        self._session = session
        self._input = input
        self._turn = turn

    @classmethod
    async def read(cls, session: Session, saved: OwnJson) -> "PausedAtHandoff":
        double = session.takeover.find(saved["agent"])
        if double is None:
            raise LookupError("the agent that was speaking cannot be reached from the agent given")
        await double.get_all_tools(session.context)
        output = _OUTPUT.validate_python(saved["output"])
        calls = await session.takeover.planned(double, output)
        session.start = double
        session.usage_before = UsageStats(**saved["usage"])
        reply = ModelResponse(output=output, usage=Usage(), response_id=saved["response_id"])
        _repeat(session, reply)
        return cls(session, list(saved["input"]), _turn(session.takeover, double, calls))

    @property
    def turns(self) -> Sequence[Turn]:
        return [self._turn]

    def stream(self, said: Said = NOTHING_SAID) -> AsyncGenerator[EngineEvent, None]:
        return self._session.stream(self._told(said))

    def _told(self, said: Said) -> list[TResponseInputItem]:
        told: list[TResponseInputItem] = [] if said.text is None else [{"role": "user", "content": said.text}]
        told += cast("list[TResponseInputItem]", said.input)
        # A session has the input already, and says it before whatever it is given.
        return told if self._session.options.get("session") is not None else [*self._input, *told]


async def decided_state(session: Session, state: object) -> RunState[Any, Any]:
    """A state that no pause of this library left. Its calls are decided as if the model had just made them."""
    assert isinstance(state, RunState)  # noqa: S101 - nothing else is given as a state
    takeover, guard = session.takeover, session.takeover.guard
    with translated(guard, "AGENTS-E-RUNNER"):
        saved = state.to_json(context_serializer=lambda context: {})
        saved["context"]["approvals"] = {}  # the text may come from elsewhere, and these with it
        given = session.options.get("context")
        context = context_for(given) if given is not None else context_in(state) or context_for(None)
        context = without_decisions(context)
        restored = await RunState.from_json(session.start, saved, context_override=context)
        keep_outputs(state, restored)
        # A call that has run does not run again: the SDK goes on with what came of it.
        over = [item for item in restored.get_interruptions() if has_run(restored, item)]
        waiting = [item for item in restored.get_interruptions() if item not in over]
        for speaker in {id(item.agent): item.agent for item in waiting}.values():
            await speaker.get_all_tools(context)
            raw = [item.raw_item for item in waiting if item.agent is speaker]
            calls = await takeover.planned(speaker, raw, context)
            await guard.judge(takeover.original_of(speaker), calls, takeover.catalogue_of(speaker).descriptions)
        if not any(guard.is_waiting(takeover.id_of(item)) for item in waiting):
            await approve_all(restored, takeover)
        for item in over:
            restored.approve(item)
    return restored


def _turn(takeover: Takeover, double: Agent[Any], calls: Sequence[PlannedCall]) -> Turn:
    return Turn(takeover.original_of(double), tuple(calls), tuple(takeover.catalogue_of(double).descriptions))


def _repeat(session: Session, reply: ModelResponse) -> None:
    config: RunConfig = session.options["run_config"]
    rest = config.model or session.start.model

    def real_model() -> Model:
        return rest if isinstance(rest, Model) else config.model_provider.get_model(rest)

    repeated = RepeatedModel(reply, real_model)
    if config.model is None:
        session.start.model = repeated
    else:
        session.options["run_config"] = dataclasses.replace(config, model=repeated)


def _tell(state: RunState[Any, Any], input: str | list[TResponseInputItem]) -> None:
    try:
        state.add_input(input)
    except UserError:
        # The run ends with this tool's result, so the model is not asked again and gets no input.
        return
