"""The time where the user lives, for those who do not live in Tokyo."""

from datetime import datetime
from zoneinfo import ZoneInfo

from openai_responses_mcp.adapters.tokyo_clock import TOKYO, TokyoClock


class ZonedClock(TokyoClock):
    """By the system's time zone database, else by that of the package `tzdata`."""

    def __init__(self, timezone: str) -> None:
        self._zone = ZoneInfo(timezone)

    def now(self) -> datetime:
        return datetime.now(self._zone)


def clock_in(timezone: str) -> TokyoClock:
    """For Tokyo no database is asked: it may be missing, and the answer is known."""
    return TokyoClock() if timezone == str(TOKYO) else ZonedClock(timezone)
