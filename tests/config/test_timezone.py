"""`search.timezone`: where today is today."""

from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.domain.policy import SYSTEM_POLICY

Load = Callable[..., Configuration]
Problems = Callable[..., list[str]]


def test_it_is_tokyo_unless_somebody_says_otherwise(configured: Load) -> None:
    configuration = configured("search: {}")
    assert configuration.settings.search.timezone == "Asia/Tokyo"
    assert configuration.system_policy == SYSTEM_POLICY


def test_the_instructions_speak_of_the_days_there(configured: Load) -> None:
    policy = configured("search: {timezone: Europe/Berlin}").system_policy
    assert "mean days in Europe/Berlin." in policy
    assert "Asia/Tokyo" not in policy


def test_instructions_of_ones_own_join_those(configured: Load, tmp_path: Path) -> None:
    own = tmp_path / "policy.md"
    own.write_text("In Asia/Tokyo it is always tea time.")
    policy = configured(
        f"search: {{timezone: Europe/Berlin}}\npolicy: {{system: {{source: file, path: {own}, merge: append}}}}"
    ).system_policy
    assert "mean days in Europe/Berlin." in policy
    assert "In Asia/Tokyo it is always tea time." in policy


@pytest.mark.parametrize("name", ["Tokyo", "Europe", "../etc/passwd", "/etc/localtime", "", "Asia/東京", "a\\0b"])
def test_an_unknown_zone_is_refused(problems: Problems, name: str) -> None:
    [problem] = problems(f'search: {{timezone: "{name}"}}')
    assert problem.startswith(
        "config.yaml:1: search.timezone must be text that names a time zone, such as Europe/Berlin (found "
    )
