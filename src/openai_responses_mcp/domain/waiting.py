"""Waiting for whichever comes first: a while, or an event."""

import asyncio

from openai_responses_mcp.domain.ports import WallClock


async def has_happened_within(event: asyncio.Event, seconds: float, clock: WallClock) -> bool:
    """Whether the event is set; comes back as soon as it is, at the latest when the time has passed."""
    if event.is_set():
        return True
    happening = asyncio.ensure_future(event.wait())
    passing = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({happening, passing}, return_when=asyncio.FIRST_COMPLETED)
        return event.is_set()
    finally:
        happening.cancel()
        passing.cancel()
