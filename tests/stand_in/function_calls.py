"""Functions of the client that an answer calls, and what they gave when the client hands it back."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from openai_responses_mcp.rehearsal.answers import content_text
from openai_responses_mcp.rehearsal.server import tools_of
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


def function_call_events(index: int, item: Item) -> Iterator[Item]:
    """Between announcing and finishing a call, its arguments are written."""
    announced = item | {"status": "in_progress", "arguments": ""}
    yield {"type": "response.output_item.added", "output_index": index, "item": announced}
    where = {"item_id": item["id"], "output_index": index}
    for delta in deltas(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **where, "delta": delta}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **where, **done}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _of_type(kind: str, items: Any) -> list[dict[str, Any]]:
    if not isinstance(items, list):
        return []
    return [item for item in items if isinstance(item, dict) and item.get("type") == kind]
