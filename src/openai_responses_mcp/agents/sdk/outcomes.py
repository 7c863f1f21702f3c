"""From the SDK's results and events to ours."""

import copy
import dataclasses
from importlib.metadata import version
from typing import Any

from agents import Agent, RunResultStreaming, StreamEvent, Usage
from agents import RunResult as SdkResult

from openai_responses_mcp.agents.runs.models import RunEvent, RunResult, UsageStats
from openai_responses_mcp.agents.runs.ports import EngineOutcome
from openai_responses_mcp.agents.sdk.internals import call_id_of, public_agent, put_call_id, unfinished_result
from openai_responses_mcp.agents.sdk.takeover import HandoffPause, Takeover
from openai_responses_mcp.agents.sdk.tool_traits import field_of
from openai_responses_mcp.gate.json_values import JsonValue

# Our result has everything that the SDK's has, so code that checks with `isinstance` may go on using it.
SdkResult.register(RunResult)
RunResult.made_by_hand = SdkResult


def outcome_of(
    result: SdkResult | RunResultStreaming, takeover: Takeover, before: UsageStats, *, is_requested: bool
) -> EngineOutcome:
    """`before` is what the run had used up when it was saved."""
    saved = None
    if result.interruptions:
        for item in result.interruptions:
            put_call_id(item, takeover.id_of(item))
        saved = {
            "kind": "tools",
            "call_ids": [call_id_of(item) for item in result.interruptions],
            "first_uses": takeover.first_uses,
            "sdk": version("openai-agents"),
            "requested": is_requested,
            "state": _of_this_run(result.to_state().to_json(context_serializer=lambda context: {})),
        }
    else:
        result.new_items = [as_the_user_knows_it(item) for item in result.new_items]
    return EngineOutcome(
        result=result,
        output_text=text_from(result.final_output),
        messages=tuple(result.to_input_list()),
        usage=_usage_from(result.context_wrapper.usage, before),
        last_agent=takeover.original_of(result.last_agent),
        saved=saved,
    )


def handoff_outcome(pause: HandoffPause, takeover: Takeover, before: UsageStats) -> EngineOutcome:
    said = takeover.turn_inputs[id(pause.double)]
    usage = _usage_from(pause.context.usage, before)
    result = unfinished_result(said, pause.response, pause.context, pause.double)
    saved = {
        "kind": "handoff",
        "sdk": version("openai-agents"),
        "agent": pause.double.name,
        "input": said,
        "output": [item.model_dump(mode="json", exclude_unset=True) for item in pause.response.output],
        "response_id": pause.response.response_id,
        "usage": dataclasses.asdict(usage),
    }
    agent = takeover.original_of(pause.double)
    return EngineOutcome(result=result, messages=tuple(said), usage=usage, last_agent=agent, saved=saved)


def _of_this_run(state: dict[str, Any]) -> JsonValue:
    """The SDK reads a state back only if every call that is over is in it, and a context may know calls of other runs."""
    known = state["context"]["tool_invocations"]
    there = _values_of("call_id", {name: part for name, part in state.items() if name != "context"})
    state["context"]["tool_invocations"] = {call_id: one for call_id, one in known.items() if call_id in there}
    return _without_context(state)


def _values_of(key: str, value: object) -> set[object]:
    if isinstance(value, list):
        return set().union(*(_values_of(key, inner) for inner in value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*(_values_of(key, inner) for inner in value.values()))
    return found | {value[key]} if isinstance(value.get(key), str) else found


def _without_context(state: JsonValue) -> JsonValue:
    """The SDK's state without the caller's context, also in the states of nested runs. It is theirs, and not stored."""
    if isinstance(state, list):
        return [_without_context(inner) for inner in state]
    if not isinstance(state, dict):
        return state
    kept = {key: _without_context(inner) for key, inner in state.items()}
    return kept | {"context": None, "context_meta": None} if "context_meta" in state else kept


def text_from(final_output: object) -> str:
    if final_output is None or isinstance(final_output, str):
        return final_output or ""
    dump = getattr(final_output, "model_dump_json", None)
    return str(dump() if callable(dump) else final_output)


def _usage_from(usage: Usage, before: UsageStats) -> UsageStats:
    return UsageStats(
        usage.requests + before.requests,
        usage.input_tokens + before.input_tokens,
        usage.output_tokens + before.output_tokens,
        usage.total_tokens + before.total_tokens,
    )


def as_the_user_knows_it(item: Any) -> Any:
    """An item with the user's own agents in the place of their doubles."""
    shown = copy.copy(item)
    for name in ("agent", "source_agent", "target_agent"):
        agent = getattr(item, name, None)
        if isinstance(agent, Agent):
            setattr(shown, name, public_agent(agent))
    return shown


async def event_from(raw: StreamEvent, takeover: Takeover) -> RunEvent | None:
    if raw.type == "raw_response_event" and field_of(raw.data, "type") == "response.output_text.delta":
        return RunEvent("text_delta", delta=field_of(raw.data, "delta"))
    if raw.type == "run_item_stream_event" and raw.name == "tool_called":
        return await _call_event(raw.item.agent, raw.item.raw_item, takeover)
    if raw.type == "run_item_stream_event" and raw.name == "tool_output":
        return _output_event(raw.item, takeover)
    return None


async def _call_event(double: Agent[Any], item: object, takeover: Takeover) -> RunEvent | None:
    calls = await takeover.planned(double, [item])
    return RunEvent("tool_call", tool_call=takeover.guard.shown(calls[0])) if calls else None


def _output_event(item: object, takeover: Takeover) -> RunEvent | None:
    result = takeover.guard.result_of(takeover.call_id(str(field_of(item, "call_id"))))
    return None if result is None else RunEvent("tool_output", tool_call=result)
