"""How good answers are spoiled on request: bodies and streams that no client should trip over.

Every fault takes the good answer and gives what is sent in its place; `markers.py` lists their names.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from typing import Any

from openai_responses_mcp.rehearsal.http_wire import Ending, Reply
from openai_responses_mcp.rehearsal.stream_events import encode_event, encode_json

JSON_HEADERS = {"content-type": "application/json"}
STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}

HUGE_BYTES = 100 * 1024 * 1024
DRIP_SECONDS = 0.2

_CHUNK = b"x" * (256 * 1024)
_PLACE_FOR_TEXT = "rehearsal-text-goes-here"

Events = list[dict[str, Any]]


def json_reply(value: Any) -> Reply:
    return Reply(headers=JSON_HEADERS, body=encode_json(value))


def spoiled_body(fault: str, response: dict[str, Any]) -> Reply:
    return _BODIES[fault](response)


def spoiled_stream(fault: str, events: Events) -> AsyncIterator[bytes]:
    return _STREAMS[fault](events)


async def paced(events: Events, pause_seconds: float) -> AsyncIterator[bytes]:
    if not pause_seconds:
        # One write for all: nobody waits in between, and benchmarks measure the client, not this server.
        yield b"".join(map(encode_event, events))
        return
    for event in events:
        yield encode_event(event)
        await asyncio.sleep(pause_seconds)


async def first_half(body: bytes) -> AsyncIterator[bytes]:
    yield body[: len(body) // 2]


async def _drip(body: bytes) -> AsyncIterator[bytes]:
    for position in range(len(body)):
        yield body[position : position + 1]
        await asyncio.sleep(DRIP_SECONDS)


def _truncated(response: dict[str, Any]) -> Reply:
    body = encode_json(response)
    return Reply(headers=JSON_HEADERS, body=body[: len(body) // 2], declared_length=len(body), ending=Ending.CUT)


def _huge(response: dict[str, Any]) -> Reply:
    return Reply(headers=JSON_HEADERS, body=_huge_body(response))


async def _huge_body(response: dict[str, Any]) -> AsyncIterator[bytes]:
    before, _, after = encode_json(_with_text(response, _PLACE_FOR_TEXT)).partition(_PLACE_FOR_TEXT.encode())
    yield before
    for _ in range(HUGE_BYTES // len(_CHUNK)):
        yield _CHUNK
    yield after


def _html(response: dict[str, Any]) -> Reply:
    page = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>rehearsal</body></html>"
    return Reply(headers={"content-type": "text/html"}, body=page)


def _bad_utf8(response: dict[str, Any]) -> Reply:
    body = encode_json(_with_text(response, _PLACE_FOR_TEXT)).replace(_PLACE_FOR_TEXT.encode(), b"\xff\xfe\xc3(")
    return Reply(headers=JSON_HEADERS, body=body)


def _verbatim(body: bytes) -> Callable[[dict[str, Any]], Reply]:
    return lambda response: Reply(headers=JSON_HEADERS, body=body)


def _reshaped(**fields: Any) -> Callable[[dict[str, Any]], Reply]:
    return lambda response: json_reply(response | fields)


def _with_field_of(kind: str, name: str, value: Any) -> Callable[[dict[str, Any]], Reply]:
    """Set a field in every part of the output that is of this type, at any depth."""

    def change(node: Any) -> Any:
        if isinstance(node, list):
            return [change(child) for child in node]
        if not isinstance(node, dict):
            return node
        changed = {key: change(child) for key, child in node.items()}
        return changed | {name: value} if node.get("type") == kind else changed

    return lambda response: json_reply(response | {"output": change(response["output"])})


def _with_text(response: dict[str, Any], text: str) -> dict[str, Any]:
    spoiled = copy.deepcopy(response)
    spoiled["output"] = [item for item in spoiled["output"] if item["type"] != "message"]
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": "msg_rehearsal", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    spoiled["output"].append(message)
    return spoiled


_BODIES: dict[str, Callable[[dict[str, Any]], Reply]] = {
    "truncated": _truncated,
    "empty": _verbatim(b""),
    "null": _verbatim(b"null"),
    "list": _verbatim(b"[]"),
    "string": _verbatim(b'"rehearsal"'),
    "html": _html,
    "bad-utf8": _bad_utf8,
    "huge": _huge,
    "drip": lambda response: Reply(headers=JSON_HEADERS, body=_drip(encode_json(response))),
    "not-json": _verbatim(b"{rehearsal: this is not JSON"),
    "wrong-shape": lambda response: json_reply({"rehearsal": {"output": None}}),
    "wrong-output": _reshaped(output="rehearsal"),
    "wrong-item": lambda response: json_reply(response | {"output": [None, 7, "rehearsal", [], *response["output"]]}),
    "wrong-content": _with_field_of("message", "content", {"text": "rehearsal"}),
    "wrong-text": _with_field_of("output_text", "text", 7),
    "wrong-annotations": _with_field_of("output_text", "annotations", [None, 7, {"type": "url_citation", "url": 7}]),
    "wrong-usage": _reshaped(usage="rehearsal"),
    "wrong-id": _reshaped(id=7),
    "wrong-model": _reshaped(model=["rehearsal"]),
    "wrong-status": _reshaped(status={"rehearsal": True}),
    "wrong-sources": _with_field_of("search", "sources", [None, 7, {"type": "url"}, {"type": "api", "name": 7}]),
}


async def _cut(events: Events) -> AsyncIterator[bytes]:
    for event in events[: len(events) // 2]:
        yield encode_event(event)


async def _cut_in_event(events: Events) -> AsyncIterator[bytes]:
    async for data in _cut(events):
        yield data
    last = encode_event(events[len(events) // 2])
    yield last[: len(last) // 2]


def _with_inserted(*extra: bytes) -> Callable[[Events], AsyncIterator[bytes]]:
    """Put the bytes in the middle of the good events."""

    async def stream(events: Events) -> AsyncIterator[bytes]:
        middle = len(events) // 2
        for event in events[:middle]:
            yield encode_event(event)
        for data in extra:
            yield data
        for event in events[middle:]:
            yield encode_event(event)

    return stream


async def _never(events: Events) -> AsyncIterator[bytes]:
    for event in events[:2]:
        yield encode_event(event)
    await asyncio.get_running_loop().create_future()


async def _twice(events: Events) -> AsyncIterator[bytes]:
    for event in [*events, events[-1]]:
        yield encode_event(event)


async def _error_event(events: Events) -> AsyncIterator[bytes]:
    async for data in _cut(events):
        yield data
    message = "The server had an error, as this rehearsal asked for."
    error = {"type": "error", "code": "server_error", "message": message, "param": None}
    yield encode_event(error | {"sequence_number": len(events) // 2})


async def _done_without_completed(events: Events) -> AsyncIterator[bytes]:
    for event in events[:-1]:
        yield encode_event(event)
    yield b"data: [DONE]\n\n"


_DELTA = b"event: response.output_text.delta\ndata: "
_STREAMS: dict[str, Callable[[Events], AsyncIterator[bytes]]] = {
    "cut": _cut,
    "cut-in-event": _cut_in_event,
    "bad-json": _with_inserted(_DELTA + b'{"type":"response.output_text.delta",\n\n'),
    "bad-utf8": _with_inserted(_DELTA + b'{"type":"response.output_text.delta","delta":"\xff\xfe\xc3("}\n\n'),
    "never": _never,
    "twice": _twice,
    "error-event": _error_event,
    "drip": lambda events: _drip(b"".join(map(encode_event, events))),
    "garbage-event": _with_inserted(
        b": a comment\n\n",
        b'event: response.rehearsal.unknown\ndata: {"type":"response.rehearsal.unknown","item":[null]}\n\n',
    ),
    "non-object": _with_inserted(_DELTA + b"[7]\n\n"),
    "done-without-completed": _done_without_completed,
    "empty": lambda events: paced([], 1.0),
}
