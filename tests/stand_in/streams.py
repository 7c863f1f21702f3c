"""How a stream is spoiled: events that are missing, broken, late or too many.

Every fault takes the good events and gives the bytes that are sent in their place.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from openai_responses_mcp.rehearsal.wire import encode_event
from tests.stand_in.pace import drip, paced

Events = list[dict[str, Any]]


def spoiled_stream(fault: str, events: Events) -> AsyncIterator[bytes]:
    return SPOILED_STREAMS[fault](events)


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
SPOILED_STREAMS: dict[str, Callable[[Events], AsyncIterator[bytes]]] = {
    "cut": _cut,
    "cut-in-event": _cut_in_event,
    "bad-json": _with_inserted(_DELTA + b'{"type":"response.output_text.delta",\n\n'),
    "bad-utf8": _with_inserted(_DELTA + b'{"type":"response.output_text.delta","delta":"\xff\xfe\xc3("}\n\n'),
    "never": _never,
    "twice": _twice,
    "error-event": _error_event,
    "drip": lambda events: drip(b"".join(map(encode_event, events))),
    "garbage-event": _with_inserted(
        b": a comment\n\n",
        b'event: response.rehearsal.unknown\ndata: {"type":"response.rehearsal.unknown","item":[null]}\n\n',
    ),
    "non-object": _with_inserted(_DELTA + b"[7]\n\n"),
    "done-without-completed": _done_without_completed,
    "empty": lambda events: paced([], 1.0),
}
