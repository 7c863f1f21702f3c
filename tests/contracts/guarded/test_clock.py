"""What every clock must do, asked of the fake and of the machine's."""

import pytest

from openai_responses_mcp.gate.clock import Clock, SystemClock, timestamp
from tests.agents.fakes import FakeClock


@pytest.fixture(params=[pytest.param(FakeClock, id="fake"), pytest.param(SystemClock, id="system")])
def any_clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


def test_a_moment_has_its_time_zone(any_clock: Clock) -> None:
    assert any_clock.now().tzinfo is not None


def test_moments_as_texts_sort_as_they_came(any_clock: Clock) -> None:
    moments = [timestamp(any_clock.now()) for _ in range(3)]
    assert moments == sorted(moments)
    assert all(moment.endswith("+00:00") for moment in moments)
