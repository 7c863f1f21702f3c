"""The engine on the OpenAI Agents SDK. Vendor errors stop here: `_FAILURES` says what each becomes.

The SDK can pause only at tools that need approval. When a turn waits for a human every tool of it says so, the SDK
stops before any of them, and its own run state is saved. A turn of handoffs alone has no tool to stop at: there the
reply of the model is saved with the input it answered, and said once more on resume.
"""

import dataclasses
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from agents import (
    Agent,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    Model,
    ModelBehaviorError,
    ModelRefusalError,
    ModelResponse,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    RunContextWrapper,
    RunState,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    Usage,
    UserError,
)
from agents import RunResult as SdkResult
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter

from openai_responses_mcp.agents.adapters.models.standin_models import RepeatedModel, RequestedCallsModel, function_call
from openai_responses_mcp.agents.adapters.sdk.guard_hooks import GuardHooks
from openai_responses_mcp.agents.adapters.sdk.nested_runs import plain_runner
from openai_responses_mcp.agents.adapters.sdk.takeover import HandoffPause, Takeover, current, frames
from openai_responses_mcp.agents.adapters.sdk.tool_traits import describe_function, describe_handoff, field_of
from openai_responses_mcp.agents.calls import PlannedCall, ToolDescription
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.ports import TurnGuard
from openai_responses_mcp.agents.runs.models import RunEvent, UsageStats
from openai_responses_mcp.agents.runs.ports import AgentEngine, EngineEvent, EngineOptions, EngineOutcome, PausedRun
from openai_responses_mcp.agents.runs.results import RunResult

# Our result answers to everything that the SDK's does, so that `isinstance` may say so too.
SdkResult.register(RunResult)

_GUARDRAILS = (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)
_PLANNING = (UserError, ModelBehaviorError, ModelRefusalError, MaxTurnsExceeded)
_FAILURES: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    (_GUARDRAILS, "AGENTS-E-GUARDRAIL-DENIED"),
    (_PLANNING, "AGENTS-E-RUNNER"),
)
# What the SDK is given where a caller asked for calls and said nothing.
_NO_INPUT = "Make the calls."
_OUTPUT = TypeAdapter(list[ResponseOutputItem])


@dataclasses.dataclass(slots=True)
class _Session:
    """One run of the SDK under one guard."""

    takeover: Takeover
    start: Agent[Any]
    options: dict[str, Any]
    is_requested: bool = False
    usage_before: Usage = dataclasses.field(default_factory=Usage)


class OpenAIAgentsEngine(AgentEngine):
    async def describe(self, agent: Any, guard: TurnGuard) -> list[ToolDescription]:
        takeover = Takeover(guard)
        double = takeover.double_of(agent)
        await double.get_all_tools(RunContextWrapper(context=None))
        return takeover.catalogue_of(double).descriptions

    async def run(self, agent: Any, input: Any, guard: TurnGuard, options: EngineOptions) -> EngineOutcome:
        session = await self._session(agent, guard, options)
        return await self._run(session, input or _NO_INPUT)

    async def stream(
        self, agent: Any, input: Any, guard: TurnGuard, options: EngineOptions
    ) -> AsyncGenerator[EngineEvent, None]:
        session = await self._session(agent, guard, options)
        paused: HandoffPause | None = None
        result: Any = None
        while result is None or _lets_itself_through(result, guard):
            carry_on = (input or _NO_INPUT) if result is None else await _approved(result, guard, session.takeover)
            with _inside(session.takeover):
                result = plain_runner().run_streamed(session.start, carry_on, **session.options)
            try:
                with _translated(guard, "AGENTS-E-STREAM"):
                    async for raw in result.stream_events():
                        if raw.type == "agent_updated_stream_event":
                            raw.new_agent = session.takeover.original_of(raw.new_agent)
                        yield EngineEvent(raw=raw, event=await _event_from(raw, session.takeover))
            except HandoffPause as exc:
                paused = exc
                break
            finally:
                result.cancel()
        outcome = _handoff_outcome(session, paused) if paused else _outcome(session, result)
        yield EngineEvent(outcome=outcome)

    async def restore(
        self, agent: Any, saved: Mapping[str, Any], guard: TurnGuard, options: EngineOptions
    ) -> PausedRun:
        session = await self._session(agent, guard, options)
        if saved.get("requested"):
            session.start.model = RequestedCallsModel(())
        try:
            if saved["kind"] == "handoff":
                return await _PausedAtHandoff.read(self, session, saved)
            return await _PausedAtTools.read(self, session, saved)
        except AgentsError:
            raise
        except Exception as exc:  # the SDK hides what it fails with here, so that there is nothing to name
            raise AgentsError(
                "AGENTS-E-RUNNER",
                f"The saved run cannot be read by openai-agents {version('openai-agents')}",
                details={"reason": "state_unreadable", "saved_by": str(saved.get("sdk"))},
            ) from exc

    async def _session(self, agent: Any, guard: TurnGuard, options: EngineOptions) -> _Session:
        takeover = Takeover(guard)
        start = takeover.double_of(agent)
        given = dict(options.sdk)
        config: Any = given.get("run_config")
        if config is None:
            config = RunConfig(tracing_disabled=True)
        given["run_config"] = RunConfig(**config) if isinstance(config, dict) else config
        given["hooks"] = GuardHooks(takeover, given.get("hooks"))
        if options.max_turns is not None:
            given["max_turns"] = options.max_turns
        session = _Session(takeover, start, given, is_requested=bool(options.requested_calls))
        if options.requested_calls:
            await _make_requested_calls(session, options.requested_calls)
        return session

    async def _run(self, session: _Session, input: Any) -> EngineOutcome:
        guard, result = session.takeover.guard, None
        try:
            with _translated(guard, "AGENTS-E-RUNNER"):
                while result is None or _lets_itself_through(result, guard):
                    carry_on = input if result is None else await _approved(result, guard, session.takeover)
                    with _inside(session.takeover):
                        result = await plain_runner().run(session.start, carry_on, **session.options)
        except HandoffPause as pause:
            return _handoff_outcome(session, pause)
        return _outcome(session, result)


# ---------------------------------------------------------------------------------------------------------------------
# Running


@contextmanager
def _inside(takeover: Takeover) -> Iterator[None]:
    taken, outermost = current.set(takeover), frames.set(())
    try:
        yield
    finally:
        frames.reset(outermost)
        current.reset(taken)


@contextmanager
def _translated(guard: TurnGuard, otherwise: str) -> Iterator[None]:
    try:
        yield
        failure: Exception | None = None
    except (AgentsError, HandoffPause) as exc:
        failure = exc
    except Exception as exc:  # models and tools are foreign code and raise what they like
        failure = _ours_inside(exc)
        if failure is None:
            code = next((code for kinds, code in _FAILURES if isinstance(exc, kinds)), otherwise)
            failure = AgentsError(code, f"{type(exc).__name__}: {exc}")
            failure.__cause__ = exc
    # A refusal that somebody on the way made an answer of is still a refusal.
    if guard.refusal is not None:
        raise guard.refusal
    if failure is not None:
        raise failure


def _ours_inside(exc: BaseException | None) -> AgentsError | None:
    """An error of this library that a tool raised and the SDK wrapped."""
    while exc is not None and not isinstance(exc, AgentsError):
        exc = exc.__cause__
    return exc


def _lets_itself_through(result: Any, guard: TurnGuard) -> bool:
    """The SDK paused although nobody has to be asked: for a hosted call, or where it cannot tell by itself."""
    ids = [item.call_id for item in result.interruptions]
    return bool(ids) and not any(guard.is_waiting(call_id) for call_id in ids)


async def _approved(result: Any, guard: TurnGuard, takeover: Takeover) -> RunState[Any, Any]:
    state: RunState[Any, Any] = result.to_state()
    await _approve_all(state, guard, takeover)
    return state


async def _approve_all(state: RunState[Any, Any], guard: TurnGuard, takeover: Takeover) -> None:
    for item in state.get_interruptions():
        for call in await takeover.planned(item.agent, [item.raw_item], RunContextWrapper(context=None)):
            if field_of(item.raw_item, "type") == "mcp_approval_request":
                # The provider runs it; our leave is the last that is seen of it here.
                await guard.starting(call.call_id, call.tool, call.args)
                await guard.finished(call.call_id, "run by the provider")
        state.approve(item)


def _outcome(session: _Session, result: Any) -> EngineOutcome:
    saved = None
    if result.interruptions:
        saved = {
            "kind": "tools",
            "sdk": version("openai-agents"),
            "requested": session.is_requested,
            "state": result.to_state().to_json(),
        }
    else:
        for item in result.new_items:
            item.agent = session.takeover.original_of(item.agent)
    return EngineOutcome(
        result=result,
        output_text=_text_from(result.final_output),
        messages=tuple(result.to_input_list()),
        usage=_usage_from(result.context_wrapper.usage, session.usage_before),
        last_agent=session.takeover.original_of(result.last_agent),
        saved=saved,
    )


def _handoff_outcome(session: _Session, pause: HandoffPause) -> EngineOutcome:
    said = session.takeover.turn_inputs[id(pause.double)]
    usage = _usage_from(pause.context.usage, session.usage_before)
    result = SdkResult(
        input=said,
        new_items=[],
        raw_responses=[pause.response],
        final_output=None,
        input_guardrail_results=[],
        output_guardrail_results=[],
        tool_input_guardrail_results=[],
        tool_output_guardrail_results=[],
        context_wrapper=pause.context,
        _last_agent=pause.double,
    )
    saved = {
        "kind": "handoff",
        "sdk": version("openai-agents"),
        "agent": pause.double.name,
        "input": said,
        "output": [item.model_dump(mode="json", exclude_unset=True) for item in pause.response.output],
        "response_id": pause.response.response_id,
        "usage": dataclasses.asdict(usage),
    }
    agent = session.takeover.original_of(pause.double)
    return EngineOutcome(result=result, messages=tuple(said), usage=usage, last_agent=agent, saved=saved)


async def _make_requested_calls(session: _Session, calls: tuple[PlannedCall, ...]) -> None:
    """Give the starting agent a model that makes exactly these calls and then reports what came of them."""
    await session.start.get_all_tools(RunContextWrapper(context=None))
    names = _names_for_the_model(session)
    wanted = [function_call(call.call_id, names[call.tool.name], dict(call.args)) for call in calls]
    session.start.model = RequestedCallsModel(wanted)
    session.start.output_type = None
    session.start.tool_use_behavior = "run_llm_again"
    session.options["run_config"] = dataclasses.replace(session.options["run_config"], model=None)


def _names_for_the_model(session: _Session) -> dict[str, str]:
    catalogue = session.takeover.catalogue_of(session.start)
    names = {describe_handoff(one).name: name for name, one in catalogue.handoffs.items()}
    return names | {describe_function(tool).name: tool.name for tool in catalogue.tools.values()}


# ---------------------------------------------------------------------------------------------------------------------
# Reading paused runs back


class _PausedAtTools(PausedRun):
    def __init__(
        self, engine: OpenAIAgentsEngine, session: _Session, state: RunState[Any, Any], calls: list[PlannedCall]
    ) -> None:
        self._engine = engine
        self._session = session
        self._state = state
        self._calls = {call.call_id: call for call in calls}

    @classmethod
    async def read(cls, engine: OpenAIAgentsEngine, session: _Session, saved: Mapping[str, Any]) -> "_PausedAtTools":
        takeover, bare = session.takeover, RunContextWrapper[Any](context=None)
        # First by ourselves: what fails in here would come out of the SDK without its name.
        await session.start.get_all_tools(bare)
        context: Any = session.options.pop("context", None)
        override = None if context is None else RunContextWrapper(context=context)
        state = await RunState.from_json(session.start, dict(saved["state"]), context_override=override)
        calls: list[PlannedCall] = []
        for item in state.get_interruptions():
            await item.agent.get_all_tools(bare)
            calls += await takeover.planned(item.agent, [item.raw_item], bare)
        processed = state._last_processed_response
        handoffs = [run.tool_call for run in processed.handoffs] if processed else []
        if handoffs and state._current_agent is not None:
            transfers = await takeover.planned(state._current_agent, handoffs, bare)
            takeover.expect_handoffs(transfers)
            calls += transfers
        return cls(engine, session, state, calls)

    @property
    def calls(self) -> Mapping[str, PlannedCall]:
        return self._calls

    async def resume(self, human_response: str | None = None) -> EngineOutcome:
        guard = self._session.takeover.guard
        with _translated(guard, "AGENTS-E-RUNNER"):
            await _approve_all(self._state, guard, self._session.takeover)
        if human_response is not None:
            _tell(self._state, human_response)
        return await self._engine._run(self._session, self._state)


class _PausedAtHandoff(PausedRun):
    def __init__(
        self, engine: OpenAIAgentsEngine, session: _Session, input: list[Any], calls: list[PlannedCall]
    ) -> None:
        self._engine = engine
        self._session = session
        self._input = input
        self._calls = {call.call_id: call for call in calls}

    @classmethod
    async def read(cls, engine: OpenAIAgentsEngine, session: _Session, saved: Mapping[str, Any]) -> "_PausedAtHandoff":
        double = session.takeover.find(saved["agent"])
        if double is None:
            raise LookupError("the agent that was speaking cannot be reached from the agent given")
        bare = RunContextWrapper[Any](context=None)
        await double.get_all_tools(bare)
        output = _OUTPUT.validate_python(saved["output"])
        calls = await session.takeover.planned(double, output, bare)
        session.start = double
        session.usage_before = Usage(**saved["usage"])
        reply = ModelResponse(output=output, usage=Usage(), response_id=saved["response_id"])
        _repeat(session, reply)
        return cls(engine, session, list(saved["input"]), calls)

    @property
    def calls(self) -> Mapping[str, PlannedCall]:
        return self._calls

    async def resume(self, human_response: str | None = None) -> EngineOutcome:
        told = [] if human_response is None else [{"role": "user", "content": human_response}]
        return await self._engine._run(self._session, [*self._input, *told])


def _repeat(session: _Session, reply: ModelResponse) -> None:
    config: RunConfig = session.options["run_config"]
    rest = config.model or session.start.model

    def real_model() -> Model:
        return rest if isinstance(rest, Model) else config.model_provider.get_model(rest)

    repeated = RepeatedModel(reply, real_model)
    if config.model is None:
        session.start.model = repeated
    else:
        session.options["run_config"] = dataclasses.replace(config, model=repeated)


def _tell(state: RunState[Any, Any], human_response: str) -> None:
    try:
        state.add_input(human_response)
    except UserError:
        # The run ends with this tool's result, so that there is no model left to tell.
        return


# ---------------------------------------------------------------------------------------------------------------------
# Mapping


def _text_from(final_output: Any) -> str:
    if final_output is None or isinstance(final_output, str):
        return final_output or ""
    dump = getattr(final_output, "model_dump_json", None)
    return str(dump() if callable(dump) else final_output)


def _usage_from(usage: Usage, before: Usage) -> UsageStats:
    return UsageStats(
        usage.requests + before.requests,
        usage.input_tokens + before.input_tokens,
        usage.output_tokens + before.output_tokens,
        usage.total_tokens + before.total_tokens,
    )


async def _event_from(raw: Any, takeover: Takeover) -> RunEvent | None:
    if raw.type == "raw_response_event" and raw.data.type == "response.output_text.delta":
        return RunEvent("text_delta", delta=raw.data.delta)
    if raw.type == "run_item_stream_event" and raw.name == "tool_called":
        return await _call_event(raw.item.agent, raw.item.raw_item, takeover)
    if raw.type == "run_item_stream_event" and raw.name == "tool_output":
        return _output_event(raw.item, takeover)
    return None


async def _call_event(double: Agent[Any], item: Any, takeover: Takeover) -> RunEvent | None:
    calls = await takeover.planned(double, [item], RunContextWrapper(context=None))
    return RunEvent("tool_call", tool_call=takeover.guard.shown(calls[0])) if calls else None


def _output_event(item: Any, takeover: Takeover) -> RunEvent | None:
    result = takeover.guard.result_of(item.call_id)
    return None if result is None else RunEvent("tool_output", tool_call=result)
