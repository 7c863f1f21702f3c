import re

import pytest

from openai_responses_mcp.domain.policy import SEARCH_TRIGGERS, SYSTEM_POLICY, join_policy

TRIGGERS_OF_THE_SPEC = (
    *("today", "now", "latest", "breaking", "price", "cost", "release", "version"),
    *("security", "vulnerability", "weather", "exchange", "news", "eol"),
)


def test_every_trigger_is_named_in_the_policy() -> None:
    line = next(line for line in SYSTEM_POLICY.splitlines() if "one of these words" in line)
    assert set(TRIGGERS_OF_THE_SPEC) <= set(SEARCH_TRIGGERS) <= set(re.split(r", |: |\.", line))


def test_the_triggers_are_there_in_english_and_in_japanese() -> None:
    japanese = [word for word in SEARCH_TRIGGERS if not word.isascii()]
    assert len(japanese) >= len(TRIGGERS_OF_THE_SPEC)
    assert {"今日", "最新", "価格", "天気", "為替", "ニュース", "脆弱性"} <= set(japanese)


@pytest.mark.parametrize(
    ("merge", "joined"),
    [("replace", "mine\n"), ("prepend", "mine\n\nbuilt in\n"), ("append", "built in\n\nmine\n")],
)
def test_a_policy_of_the_user_replaces_the_built_in_one_or_stands_beside_it(merge: str, joined: str) -> None:
    assert join_policy("built in\n", "\nmine\n\n", merge) == joined
