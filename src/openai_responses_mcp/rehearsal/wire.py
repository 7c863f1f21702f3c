"""Responses, the events of their streams, and errors, in the API's real wire format."""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from openai_responses_mcp.domain.texts import without_surrogates

INVALID = "invalid_request_error"


class ApiError(Exception):
    """A request that the API would reject."""

    def __init__(
        self, status: int, message: str, *, type: str = INVALID, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


# How the API words a status: message, type, code.
_USUAL: dict[int, tuple[str, str, str | None]] = {
    400: ("The request is malformed.", INVALID, None),
    401: ("Incorrect API key provided.", INVALID, "invalid_api_key"),
    403: ("Your project does not have access to this resource.", "request_forbidden", None),
    404: ("The requested resource was not found.", INVALID, "not_found"),
    409: ("The resource is being changed by another request.", "conflict_error", None),
    413: ("The request is too large.", INVALID, None),
    422: ("The request cannot be processed.", INVALID, None),
    429: ("Rate limit reached for requests. Please try again later.", "requests", "rate_limit_exceeded"),
    500: ("The server had an error while processing your request.", "server_error", "server_error"),
    502: ("Bad gateway.", "server_error", None),
    503: ("The engine is currently overloaded, please try again later.", "server_error", "server_overloaded"),
    504: ("The request timed out.", "server_error", "timeout"),
}


def usual_error(status: int) -> ApiError:
    """The error that the API gives with this status."""
    unknown = ("The request failed.", INVALID if status < 500 else "server_error", None)
    message, kind, code = _USUAL.get(status, unknown)
    return ApiError(status, message, type=kind, code=code)


Item = dict[str, Any]


def new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(24)}"


def build_response(request: Mapping[str, Any], output: list[Item], asked: str) -> dict[str, Any]:
    """The finished response to a request; the text that was asked counts for its usage."""
    now = int(time.time())
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": now,
        "status": "completed",
        "background": request.get("background") or False,
        "completed_at": now,
        "conversation": None,
        "error": None,
        "incomplete_details": None,
        "instructions": request.get("instructions"),
        "max_output_tokens": request.get("max_output_tokens"),
        "max_tool_calls": request.get("max_tool_calls"),
        "model": request["model"],
        "output": output,
        "parallel_tool_calls": _given(request, "parallel_tool_calls", True),
        "previous_response_id": request.get("previous_response_id"),
        "prompt_cache_key": request.get("prompt_cache_key"),
        "reasoning": {"effort": None, "summary": None} | (request.get("reasoning") or {}),
        "safety_identifier": request.get("safety_identifier"),
        "service_tier": "default",
        "store": request.get("store") is not False,
        "temperature": _given(request, "temperature", 1.0),
        "text": {"format": {"type": "text"}, "verbosity": "medium"} | (request.get("text") or {}),
        "tool_choice": _given(request, "tool_choice", "auto"),
        "tools": request.get("tools") or [],
        "top_logprobs": _given(request, "top_logprobs", 0),
        "top_p": _given(request, "top_p", 1.0),
        "truncation": _given(request, "truncation", "disabled"),
        "usage": _usage(str(request.get("instructions") or "") + asked, output),
        "user": request.get("user"),
        "metadata": request.get("metadata") or {},
    }


def unfinished(response: Mapping[str, Any], status: str) -> dict[str, Any]:
    """The same response as the API shows it before it has any output."""
    nothing_yet = dict.fromkeys(("completed_at", "error", "incomplete_details", "usage"))
    return {**response, "status": status, **nothing_yet, "output": []}


def reasoning_item() -> Item:
    return {"id": new_id("rs"), "type": "reasoning", "summary": []}


def search_item(query: str, sources: Sequence[Mapping[str, Any]] | None) -> Item:
    """Without sources when they were not asked for."""
    action: Item = {"type": "search", "query": query, "queries": [query]}
    if sources is not None:
        action["sources"] = list(sources)
    return {"id": new_id("ws"), "type": "web_search_call", "status": "completed", "action": action}


def message_item(content: list[Item], status: str = "completed") -> Item:
    return {"id": new_id("msg"), "type": "message", "status": status, "role": "assistant", "content": content}


def text_part(text: str, annotations: Sequence[Item] = ()) -> Item:
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}


def url_citation(url: str, title: str, start: int, end: int) -> Item:
    return {"type": "url_citation", "start_index": start, "end_index": end, "url": url, "title": title}


def _given(request: Mapping[str, Any], name: str, default: Any) -> Any:
    value = request.get(name)
    return default if value is None else value


def _usage(asked: str, output: Sequence[Item]) -> dict[str, Any]:
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    written = sum(len(part.get("text", "")) for part in parts)
    input_tokens, output_tokens = len(asked) // 4 + 1, written // 4 + 65
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": input_tokens + output_tokens,
    }


STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}

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


# How an item looks when it is announced.
_UNFINISHED: dict[str, dict[str, Any]] = {
    "web_search_call": {"status": "in_progress", "action": {"type": "search"}},
    "message": {"status": "in_progress", "content": []},
}


def usual_item_events(index: int, item: Item) -> _Events:
    announced = item | _UNFINISHED.get(item["type"], {})
    yield {"type": "response.output_item.added", "output_index": index, "item": announced}
    where = {"item_id": item["id"], "output_index": index}
    if item["type"] == "web_search_call":
        for step in ("in_progress", "searching", "completed"):
            yield {"type": f"response.web_search_call.{step}"} | where
    for place, part in enumerate(item.get("content", ())):
        yield from part_events(
            part, {"text": "", "annotations": []}, _text_events(part), where | {"content_index": place}
        )
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def stream_events(response: dict[str, Any], item_events: Callable[[int, Item], _Events] = usual_item_events) -> _Events:
    """The whole sequence, still without numbers. A background response is queued first."""
    started = unfinished(response, "in_progress")
    if response["background"]:
        queued = unfinished(response, "queued")
        yield {"type": "response.created", "response": queued}
        yield {"type": "response.queued", "response": queued}
    else:
        yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    for index, item in enumerate(response["output"]):
        yield from item_events(index, item)
    yield {"type": f"response.{response['status']}", "response": response}


def part_events(part: Item, empty: Item, inner: _Events, where: Item) -> _Events:
    yield {"type": "response.content_part.added", "part": part | empty} | where
    for event in inner:
        yield event | where
    yield {"type": "response.content_part.done", "part": part} | where


def _text_events(part: Item) -> _Events:
    for delta in deltas(part["text"]):
        yield {"type": "response.output_text.delta", "delta": delta, "logprobs": []}
    for number, annotation in enumerate(part["annotations"]):
        event = "response.output_text.annotation.added"
        yield {"type": event, "annotation_index": number, "annotation": annotation}
    yield {"type": "response.output_text.done", "text": part["text"], "logprobs": []}


def deltas(text: str) -> Iterator[str]:
    """A text in pieces, as a model writes it."""
    step = min(len(text) // _DELTAS_PER_TEXT + 1, _MAX_DELTA_CHARACTERS)
    for start in range(0, len(text), step):
        yield text[start : start + step]
