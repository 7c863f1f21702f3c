"""Replies that an API could flood the server with: each name with its status, kind and body."""

import json
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.stand_in.http_wire import RecordedRequest, Reply

MIB = 1024 * 1024
JSON = "application/json"
EVENTS = "text/event-stream"


class Flood(NamedTuple):
    status: int
    kind: str
    body: Callable[[], bytes]


def _lists() -> bytes:
    return b"[" + b"[]," * (31 * MIB // 3) + b"[]]"


def _answer(text: str, annotations: object = ()) -> dict[str, object]:
    part = {"type": "output_text", "text": text, "annotations": annotations}
    search = {"type": "web_search_call", "action": {"type": "search", "query": "why " * 1000}}
    return {"status": "completed", "output": [search, {"type": "message", "content": [part]}]}


def _event(response: object) -> bytes:
    return b"data: %b\n\n" % json.dumps({"type": "response.completed", "response": response}).encode()


def _sources(bytes_in_all: int) -> str:
    return "Because.\n\nSources:\n" + "- x\n" * (bytes_in_all // 4)


def _citations(count: int) -> list[object]:
    return [{"type": "url_citation", "url": f"https://x.example/{n}", "date": "2026-01-01"} for n in range(count)]


FLOODS = {
    "an error of nested lists": Flood(404, JSON, _lists),
    "an answer of nested lists": Flood(200, JSON, _lists),
    "an event of nested lists": Flood(200, EVENTS, lambda: b"data: " + _lists() + b"\n\n"),
    "nested lists as long as an object may be": Flood(200, JSON, lambda: b"[" + b"[]," * (600 * 1024) + b"[]]"),
    "an error with a huge message": Flood(
        500, JSON, lambda: json.dumps({"error": {"message": "key=abcd " * (3 * MIB)}}).encode()
    ),
    "a failure with a long message": Flood(
        200, EVENTS, lambda: _event({"status": "failed", "error": {"message": "key=abcd " * (200 * 1024)}})
    ),
    "too many sources": Flood(200, EVENTS, lambda: _event(_answer(_sources(26 * MIB)))),
    "as many sources as fit": Flood(200, EVENTS, lambda: _event(_answer(_sources(MIB)))),
    "as many lines as fit": Flood(200, EVENTS, lambda: _event(_answer("\n" * (900 * 1024)))),
    "as many citations as fit": Flood(200, EVENTS, lambda: _event(_answer("Because.", _citations(20_000)))),
    "events without end": Flood(200, EVENTS, lambda: b'data: {"type":"response.in_progress"}\n\n' * (MIB // 2)),
}


def player(flood: Flood) -> Callable[[RecordedRequest], Awaitable[Reply]]:
    reply = Reply(flood.status, {"content-type": flood.kind, "retry-after": "0"}, flood.body())

    async def answer(request: RecordedRequest) -> Reply:
        return reply

    return answer
