"""The machine's clock."""

from datetime import UTC, datetime

from openai_responses_mcp.agents.clock import Clock


class SystemClock(Clock):
    def now(self) -> datetime:
        return datetime.now(UTC)
