"""The events a streamed answer consists of, made from the finished response, and their form on the wire."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from openai_responses_mcp.domain.texts import without_surrogates
from openai_responses_mcp.rehearsal.response_objects import unfinished

STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}

_FINAL_EVENTS = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "failed": "response.failed",
}
_DELTAS_PER_TEXT = 8
_MAX_DELTA_CHARACTERS = 16 * 1024

_Events = Iterator[dict[str, Any]]


def encode_json(value: Any) -> bytes:
    """Plain UTF-8, as the API sends it."""
    return without_surrogates(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


def encode_event(event: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encode_json(event))


def numbered(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": event["type"], "sequence_number": number} | event for number, event in enumerate(events)]


def stream_events(response: dict[str, Any]) -> _Events:
    """The whole sequence, still without numbers; what is done in the background waits in the queue first."""
    started = unfinished(response, "in_progress")
    if response["background"]:
        queued = unfinished(response, "queued")
        yield {"type": "response.created", "response": queued}
        yield {"type": "response.queued", "response": queued}
    else:
        yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    for index, item in enumerate(response["output"]):
        yield from _item_events(index, item)
    yield {"type": _FINAL_EVENTS[response["status"]], "response": response}


def _item_events(index: int, item: dict[str, Any]) -> _Events:
    yield {
        "type": "response.output_item.added",
        "output_index": index,
        "item": item | _UNFINISHED.get(item["type"], {}),
    }
    where = {"item_id": item["id"], "output_index": index}
    for event in _INNER_EVENTS.get(item["type"], _no_events)(item):
        yield where | event
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


# How an item looks when it is announced.
_UNFINISHED: dict[str, dict[str, Any]] = {
    "web_search_call": {"status": "in_progress", "action": {"type": "search"}},
    "message": {"status": "in_progress", "content": []},
}


def _no_events(item: dict[str, Any]) -> _Events:
    yield from ()


def _search_events(item: dict[str, Any]) -> _Events:
    for step in ("in_progress", "searching", "completed"):
        yield {"type": f"response.web_search_call.{step}"}


def _message_events(item: dict[str, Any]) -> _Events:
    for index, part in enumerate(item["content"]):
        empty, inner = _PART_EVENTS[part["type"]]
        where = {"content_index": index}
        yield {"type": "response.content_part.added", "part": part | empty} | where
        for event in inner(part):
            yield event | where
        yield {"type": "response.content_part.done", "part": part} | where


def _text_events(part: dict[str, Any]) -> _Events:
    for delta in deltas(part["text"]):
        yield {"type": "response.output_text.delta", "delta": delta, "logprobs": []}
    for number, annotation in enumerate(part["annotations"]):
        event = "response.output_text.annotation.added"
        yield {"type": event, "annotation_index": number, "annotation": annotation}
    yield {"type": "response.output_text.done", "text": part["text"], "logprobs": []}


def _refusal_events(part: dict[str, Any]) -> _Events:
    for delta in deltas(part["refusal"]):
        yield {"type": "response.refusal.delta", "delta": delta}
    yield {"type": "response.refusal.done", "refusal": part["refusal"]}


_INNER_EVENTS: dict[str, Callable[[dict[str, Any]], _Events]] = {
    "web_search_call": _search_events,
    "message": _message_events,
}
# Each kind of content with how it looks while empty, and its events.
_PART_EVENTS: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], _Events]]] = {
    "output_text": ({"text": "", "annotations": []}, _text_events),
    "refusal": ({"refusal": ""}, _refusal_events),
}


def deltas(text: str) -> Iterator[str]:
    """A text in pieces, as a model writes it."""
    step = min(len(text) // _DELTAS_PER_TEXT + 1, _MAX_DELTA_CHARACTERS)
    for start in range(0, len(text), step):
        yield text[start : start + step]
