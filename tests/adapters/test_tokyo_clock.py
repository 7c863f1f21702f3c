import time
from datetime import UTC, datetime

from openai_responses_mcp.adapters.clocks import TokyoClock


def test_now_is_this_very_moment() -> None:
    before = datetime.now(UTC)
    now = TokyoClock().now()
    assert before <= now <= datetime.now(UTC)


def test_now_names_its_time_zone() -> None:
    assert str(TokyoClock().now().tzinfo) == "Asia/Tokyo"


def test_monotonic_is_the_clock_of_the_machine() -> None:
    before = time.monotonic()
    assert before <= TokyoClock().monotonic() <= time.monotonic()
