"""Time: the clock that this half asks, and moments as texts."""

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """This moment, with its time zone."""
        ...


class SystemClock(Clock):
    def now(self) -> datetime:
        return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """Texts that sort as the moments do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def later(moment: str, seconds: float) -> str:
    return timestamp(datetime.fromisoformat(moment) + timedelta(seconds=seconds))
