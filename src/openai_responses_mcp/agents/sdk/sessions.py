"""One run of the SDK under one ledger: run it, and turn the SDK's results, events and errors into ours.

The SDK can pause only at tools that need approval. When a turn waits for a human every tool of it says so, the SDK
stops before any of them, and its own run state is saved. A turn of handoffs alone has no tool to stop at: there the
run ends with a `HandoffPause`, and the model's reply is saved.
"""

import copy
import dataclasses
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias

from agents import (
    Agent,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelRefusalError,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    RunContextWrapper,
    RunResultStreaming,
    RunState,
    StreamEvent,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    TResponseInputItem,
    Usage,
    UserError,
)
from agents import RunResult as SdkResult

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.agents.runs.models import RunEvent, RunResult, UsageStats
from openai_responses_mcp.agents.runs.ports import EngineEvent, EngineOutcome
from openai_responses_mcp.agents.sdk.guarded_calls import running_calls
from openai_responses_mcp.agents.sdk.internals import call_id_of, public_agent, put_call_id, unfinished_result
from openai_responses_mcp.agents.sdk.nested_runs import runner_of_the_sdk
from openai_responses_mcp.agents.sdk.request_settings import for_the_sdk
from openai_responses_mcp.agents.sdk.takeover import Takeover, current_takeover
from openai_responses_mcp.agents.sdk.tool_traits import field_of
from openai_responses_mcp.agents.sdk.turns import HandoffPause, planned, text_from
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonValue

# Our result has everything that the SDK's has, so checks with `isinstance` keep working.
SdkResult.register(RunResult)
RunResult.made_by_hand = SdkResult

NO_USAGE = UsageStats()

RunInput: TypeAlias = str | list[TResponseInputItem] | RunState[Any, Any]


@dataclass(slots=True)
class Session:
    """`start` is the double of the agent that speaks first, `options` are the SDK's own."""

    takeover: Takeover
    start: Agent[Any]
    options: dict[str, Any]
    is_requested: bool = False
    is_streamed: bool = False
    usage_before: UsageStats = NO_USAGE
    configured: RunConfig | dict[str, Any] | None = None

    @property
    def context(self) -> RunContextWrapper[Any]:
        """The caller's context, for listing tools before the SDK runs."""
        return context_for(self.options.get("context"))

    async def stream(self, input: RunInput) -> AsyncGenerator[EngineEvent, None]:
        """Every event of the SDK, and the outcome at the end. Without `is_streamed` there is only the outcome."""
        result: SdkResult | RunResultStreaming | None = None
        outcome: EngineOutcome | None = None
        options = {**self.options, "run_config": for_the_sdk(self.options["run_config"], self.configured)}
        while outcome is None and (result is None or self._needs_no_human(result)):
            try:
                with translated(self.takeover.ledger, "AGENTS-E-STREAM" if self.is_streamed else "AGENTS-E-RUNNER"):
                    carry_on = input
                    if result is not None:
                        carry_on = result.to_state()
                        await approve_all(carry_on, self.takeover)
                    if not self.is_streamed:
                        with _inside(self.takeover):
                            result = await runner_of_the_sdk().run(self.start, carry_on, **options)
                        continue
                    with _inside(self.takeover):
                        result = streamed = runner_of_the_sdk().run_streamed(self.start, carry_on, **options)
                    try:
                        yield EngineEvent(raw=streamed)  # for callers that want to look at it, or to cancel it
                        async for raw in streamed.stream_events():
                            event = await _event_from(raw, self.takeover)
                            if raw.type == "agent_updated_stream_event":
                                raw.new_agent = self.takeover.original_of(raw.new_agent)
                            elif raw.type == "run_item_stream_event":
                                raw = dataclasses.replace(raw, item=as_the_user_knows_it(raw.item))
                            yield EngineEvent(raw=raw, event=event)
                    finally:
                        streamed.cancel()
            except HandoffPause as pause:
                outcome = self._paused_at_handoff(pause)
        if outcome is None and result is not None:
            outcome = self._outcome(result)
        yield EngineEvent(outcome=outcome)

    def _needs_no_human(self, result: SdkResult | RunResultStreaming) -> bool:
        """True if the SDK paused but no call waits for a human, as with hosted MCP calls."""
        ids = [self.takeover.ids.of_waiting(item) for item in result.interruptions]
        return bool(ids) and not any(self.takeover.ledger.is_waiting(call_id) for call_id in ids)

    def _outcome(self, result: SdkResult | RunResultStreaming) -> EngineOutcome:
        saved = None
        if result.interruptions:
            for item in result.interruptions:
                put_call_id(item, self.takeover.ids.of_waiting(item))
            saved = {
                "kind": "tools",
                "call_ids": [call_id_of(item) for item in result.interruptions],
                "first_uses": self.takeover.ids.first_uses,
                "sdk": version("openai-agents"),
                "requested": self.is_requested,
                "state": _of_this_run(result.to_state().to_json(context_serializer=lambda context: {})),
            }
        else:
            result.new_items = [as_the_user_knows_it(item) for item in result.new_items]
        return EngineOutcome(
            result=result,
            output_text=text_from(result.final_output),
            messages=tuple(result.to_input_list()),
            usage=self._usage(result.context_wrapper.usage),
            last_agent=self.takeover.original_of(result.last_agent),
            saved=saved,
        )

    def _paused_at_handoff(self, pause: HandoffPause) -> EngineOutcome:
        said = self.takeover.turn_inputs[id(pause.double)]
        usage = self._usage(pause.context.usage)
        saved = {
            "kind": "handoff",
            "sdk": version("openai-agents"),
            "agent": pause.double.name,
            "input": said,
            "output": [item.model_dump(mode="json", exclude_unset=True) for item in pause.response.output],
            "response_id": pause.response.response_id,
            "usage": dataclasses.asdict(usage),
        }
        return EngineOutcome(
            result=unfinished_result(said, pause.response, pause.context, pause.double),
            messages=tuple(said),
            usage=usage,
            last_agent=self.takeover.original_of(pause.double),
            saved=saved,
        )

    def _usage(self, usage: Usage) -> UsageStats:
        """Including the usage before the run was saved."""
        before = self.usage_before
        return UsageStats(
            usage.requests + before.requests,
            usage.input_tokens + before.input_tokens,
            usage.output_tokens + before.output_tokens,
            usage.total_tokens + before.total_tokens,
        )


async def approve_all(
    state: RunState[Any, Any], takeover: Takeover, rejections: Mapping[str, str | None] | None = None
) -> None:
    """Approve every waiting call, except those that a human denied with a text for the model."""
    ledger, rejected = takeover.ledger, rejections or {}
    for item in state.get_interruptions():
        call_id = takeover.ids.of_waiting(item)
        denial = ledger.denial_for_model(call_id)
        if denial is not None or call_id in rejected:  # the ledger does not know calls of a tool that is gone
            state.reject(item, rejection_message=rejected.get(call_id, denial))
            continue
        if field_of(item.raw_item, "type") == "mcp_approval_request":
            for call in await planned(takeover, item.agent, [item.raw_item]):
                # The provider runs it. Nothing more of it is seen here.
                await ledger.starting(call.call_id, call.tool, call.args)
                await ledger.finished(call.call_id, "run by the provider")
        state.approve(item)


def as_the_user_knows_it(item: Any) -> Any:
    """An item with the user's own agents in the place of their doubles."""
    shown = copy.copy(item)
    for name in ("agent", "source_agent", "target_agent"):
        agent = getattr(item, name, None)
        if isinstance(agent, Agent):
            setattr(shown, name, public_agent(agent))
    return shown


def context_for(context: object) -> RunContextWrapper[Any]:
    return context if isinstance(context, RunContextWrapper) else RunContextWrapper(context=context)


@contextmanager
def _inside(takeover: Takeover) -> Iterator[None]:
    taken, outermost = current_takeover.set(takeover), running_calls.set(())
    try:
        yield
    finally:
        running_calls.reset(outermost)
        current_takeover.reset(taken)


def _of_this_run(state: dict[str, Any]) -> JsonValue:
    """Without calls of other runs that the context knows: the SDK reads a state only if every finished call is in it."""
    known = state["context"]["tool_invocations"]
    there = _call_ids_in({name: part for name, part in state.items() if name != "context"})
    state["context"]["tool_invocations"] = {call_id: one for call_id, one in known.items() if call_id in there}
    return _without_context(state)


def _call_ids_in(value: object) -> set[object]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = set().union(*(_call_ids_in(inner) for inner in parts))
    own = value.get("call_id") if isinstance(value, dict) else None
    return found | {own} if isinstance(own, str) else found


def _without_context(state: JsonValue) -> JsonValue:
    """The state without the caller's context, which is never stored; also in nested runs."""
    if isinstance(state, list):
        return [_without_context(inner) for inner in state]
    if not isinstance(state, dict):
        return state
    kept = {key: _without_context(inner) for key, inner in state.items()}
    return kept | {"context": None, "context_meta": None} if "context_meta" in state else kept


async def _event_from(raw: StreamEvent, takeover: Takeover) -> RunEvent | None:
    if raw.type == "raw_response_event" and field_of(raw.data, "type") == "response.output_text.delta":
        return RunEvent("text_delta", delta=field_of(raw.data, "delta"))
    if raw.type == "run_item_stream_event" and raw.name == "tool_called":
        calls = await planned(takeover, raw.item.agent, [raw.item.raw_item])
        return RunEvent("tool_call", tool_call=takeover.ledger.shown(calls[0])) if calls else None
    if raw.type == "run_item_stream_event" and raw.name == "tool_output":
        result = takeover.ledger.result_of(takeover.ids.of(str(field_of(raw.item, "call_id"))))
        return None if result is None else RunEvent("tool_output", tool_call=result)
    return None


# ---------------------------------------------------------------------------------------------------------------------
# Errors

_GUARDRAILS = (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)
_PLANNING = (UserError, ModelBehaviorError, ModelRefusalError, MaxTurnsExceeded)


@contextmanager
def translated(ledger: RunLedger, otherwise: str) -> Iterator[None]:
    """The SDK's errors come out as `AgentsError`, with the SDK's as cause."""
    try:
        yield
        failure: Exception | None = None
    except (AgentsError, HandoffPause) as exc:
        failure = exc
    except Exception as exc:  # models and tools are foreign code and raise what they like
        ours: BaseException | None = exc
        while ours is not None and not isinstance(ours, AgentsError):
            ours = ours.__cause__  # a tool may have raised an error of this library, which the SDK wrapped
        failure = ours
        if failure is None:
            code = "AGENTS-E-RUNNER" if isinstance(exc, _PLANNING) else otherwise
            code = "AGENTS-E-GUARDRAIL-DENIED" if isinstance(exc, _GUARDRAILS) else code
            failure = AgentsError(code, f"{type(exc).__name__}: {exc}")
            failure.__cause__ = exc
    # A refusal that was turned into an answer for the model is still a refusal.
    if ledger.refusal is not None:
        raise ledger.refusal
    if failure is not None:
        raise failure
