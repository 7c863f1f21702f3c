"""What time it is; the only place that asks the machine."""

import asyncio
import os
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from openai_responses_mcp.domain.ports import WallClock

# A fixed offset: Japan has no summer time, and not every system has a time zone database.
TOKYO = timezone(timedelta(hours=9), "Asia/Tokyo")


class TokyoClock(WallClock):
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


def system_zone(environ: Mapping[str, str]) -> tuple[tzinfo | None, str | None]:
    """The time zone of this machine, and its name where the system knows it."""
    name = environ.get("TZ", "").removeprefix(":")
    try:
        # A link, as on most systems: its end is the name.
        name = name or os.readlink("/etc/localtime").partition("zoneinfo/")[2]
        return ZoneInfo(name), name
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return datetime.now(UTC).astimezone().tzinfo, None
