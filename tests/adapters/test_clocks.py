import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from openai_responses_mcp.adapters.clocks import TokyoClock, clock_in
from tests.fakes import SLOW_SECONDS


@pytest.mark.parametrize(("name", "hours"), [("America/Phoenix", -7), ("UTC", 0)])
def test_the_time_is_that_of_the_zone(name: str, hours: float) -> None:
    clock = clock_in(name)
    assert clock.now().utcoffset() == timedelta(hours=hours)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=SLOW_SECONDS)
    assert clock.today() == clock.now().date()


def test_tokyo_needs_no_time_zone_database() -> None:
    clock = clock_in("Asia/Tokyo")
    assert type(clock) is TokyoClock
    assert str(clock.now().tzinfo) == "Asia/Tokyo"


def test_without_a_time_zone_database_the_one_of_the_package_is_used() -> None:
    program = (
        "import zoneinfo; zoneinfo.reset_tzpath(())\n"
        "from openai_responses_mcp.adapters.clocks import clock_in; print(clock_in('America/Phoenix').now().tzname())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SLOW_SECONDS)
    assert (done.stdout, done.stderr) == ("MST\n", "")
