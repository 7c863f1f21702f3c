"""Functions of the client that an answer calls, and what they gave when the client hands it back."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from openai_responses_mcp.rehearsal.answers import content_text
from openai_responses_mcp.rehearsal.api import tools_of
from openai_responses_mcp.rehearsal.wire import ApiError, Item, deltas, new_id
from tests.stand_in.markers import FunctionCall


def offered(request: Mapping[str, Any], calls: Iterable[FunctionCall]) -> list[FunctionCall]:
    """The calls of functions that the request offers."""
    functions = {tool.get("name") for tool in tools_of(request) if tool.get("type") == "function"}
    return [call for call in calls if call.name in functions]


def function_call_item(call: FunctionCall) -> Item:
    ids = {"id": new_id("fc"), "call_id": new_id("call")}
    return {**ids, "type": "function_call", "status": "completed", "name": call.name, "arguments": call.arguments}


def call_ids(items: Any) -> frozenset[str]:
    """The calls in the output of a response, or repeated in the `input` of a request."""
    return frozenset(str(item.get("call_id")) for item in _of_type("function_call", items))


def read_outputs(given: Any, called: Iterable[str]) -> list[str]:
    """What functions gave, in the `input` of a request; it may only answer calls that were made."""
    made = {*called, *call_ids(given)}
    outputs = {str(item.get("call_id")): item for item in _of_type("function_call_output", given)}
    for call_id in outputs:
        if call_id not in made:
            raise ApiError(400, f"No tool call found for function call output with call_id {call_id}.", param="input")
    return [content_text(item.get("output")) for item in outputs.values()]


def with_call_events(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events of a response, and between announcing and finishing a call those that write its arguments."""
    for event in events:
        item = event.get("item", {})
        if event["type"] != "response.output_item.added" or item.get("type") != "function_call":
            yield event
            continue
        yield event | {"item": item | {"status": "in_progress", "arguments": ""}}
        where = {"item_id": item["id"], "output_index": event["output_index"]}
        for delta in deltas(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **where, "delta": delta}
        done = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **where, **done}


def _of_type(kind: str, items: Any) -> list[dict[str, Any]]:
    if not isinstance(items, list):
        return []
    return [item for item in items if isinstance(item, dict) and item.get("type") == kind]
