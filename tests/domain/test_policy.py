import re

import pytest

from openai_responses_mcp.domain.policy import SEARCH_TRIGGERS, SYSTEM_POLICY, SYSTEM_POLICY_REV, join_policy

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
    "point",
    [
        "Search when you are not sure",
        "One to three credible ones",
        "a date in ISO form (YYYY-MM-DD)",
        "Where a source has no URL, name it by its source id",
        "mean days in Asia/Tokyo. Write them as absolute dates",
        "Answer in the language of the question",
        "When sources disagree, say so",
    ],
)
def test_the_policy_covers_what_the_spec_asks_for(point: str) -> None:
    assert point in SYSTEM_POLICY


def test_the_policy_asks_for_the_answer_then_bullets_then_sources() -> None:
    order = [SYSTEM_POLICY.index(part) for part in ("Start with the answer", "bullet points", 'headed "Sources:"')]
    assert order == sorted(order)


def test_the_revision_is_a_date_and_a_version() -> None:
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2} v\d+\.\d+\.\d+", SYSTEM_POLICY_REV)


@pytest.mark.parametrize(
    ("merge", "joined"),
    [("replace", "mine\n"), ("prepend", "mine\n\nbuilt in\n"), ("append", "built in\n\nmine\n")],
)
def test_a_policy_of_the_user_replaces_the_built_in_one_or_stands_beside_it(merge: str, joined: str) -> None:
    assert join_policy("built in\n", "\nmine\n\n", merge) == joined
