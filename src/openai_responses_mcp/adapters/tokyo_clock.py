"""The time in Asia/Tokyo; the only place that asks the machine what time it is."""

import asyncio
import time
from datetime import date, datetime, timedelta, timezone

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
