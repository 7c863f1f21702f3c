"""How fast an answer goes out: at once, event by event, byte by byte, or only half of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from openai_responses_mcp.rehearsal.wire import encode_event

DRIP_SECONDS = 0.2


async def paced(events: list[dict[str, Any]], pause_seconds: float) -> AsyncIterator[bytes]:
    if not pause_seconds:
        # One write for all, so that benchmarks measure the client and not this server.
        yield b"".join(map(encode_event, events))
        return
    for event in events:
        yield encode_event(event)
        await asyncio.sleep(pause_seconds)


async def first_half(body: bytes) -> AsyncIterator[bytes]:
    yield body[: len(body) // 2]


async def drip(body: bytes) -> AsyncIterator[bytes]:
    for position in range(len(body)):
        yield body[position : position + 1]
        await asyncio.sleep(DRIP_SECONDS)
