"""What time it is; the only place that asks the machine."""

import asyncio
import time
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from openai_responses_mcp.domain.ports import Clock

# A fixed offset: Japan has no summer time, and not every system has a time zone database.
TOKYO = timezone(timedelta(hours=9), "Asia/Tokyo")


class TokyoClock(Clock):
    def now(self) -> datetime:
        return datetime.now(TOKYO)

    def today(self) -> date:
        return self.now().date()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


class ZonedClock(TokyoClock):
    """By the system's time zone database, else by that of the package `tzdata`."""

    def __init__(self, timezone: str) -> None:
        self._zone = ZoneInfo(timezone)

    def now(self) -> datetime:
        return datetime.now(self._zone)


def clock_in(timezone: str) -> TokyoClock:
    """For Tokyo no database is asked: it may be missing, and the answer is known."""
    return TokyoClock() if timezone == str(TOKYO) else ZonedClock(timezone)
