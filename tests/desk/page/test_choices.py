"""What comes from the page is read strictly."""

from typing import Any

import pytest

from openai_responses_mcp.desk.page.choices import MOST_CHOICES, Choice, choices_in, read_json, revocation_in
from openai_responses_mcp.gate.approvals.standing import StandingTerms
from openai_responses_mcp.gate.errors import AgentsError

FINE = {"approval_id": "apr_1", "decision": "approve"}


def test_choices_are_read() -> None:
    given = {"decisions": [FINE, {"approval_id": "apr_2", "decision": "deny", "comment": "no"}]}
    assert choices_in(given) == [Choice("apr_1", "approve"), Choice("apr_2", "deny", "no")]


def test_terms_are_read() -> None:
    given = {**FINE, "from_now_on": {"for_seconds": 3600, "same_arguments": True}}
    terms = StandingTerms(for_seconds=3600, same_arguments=True)
    assert choices_in({"decisions": [given]}) == [Choice("apr_1", "approve", None, terms)]


def test_other_arguments_and_a_word_to_the_model_are_read() -> None:
    changed = {**FINE, "arguments": '{"amount": 4}'}
    told = {"approval_id": "apr_2", "decision": "deny", "tell_model": True}
    expected = [Choice("apr_1", "approve", arguments={"amount": 4}), Choice("apr_2", "deny", tell_model=True)]
    assert choices_in({"decisions": [changed, told]}) == expected


def test_a_revocation_is_read() -> None:
    assert revocation_in({"standing_id": "sta_1"}) == "sta_1"
    for body in (None, {}, {"standing_id": ""}, {"standing_id": 1}, {"standing_id": "s", "more": 1}):
        with pytest.raises(AgentsError, match="AGENTS-E-APPROVAL-INVALID"):
            revocation_in(body)


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"decisions": []},
        {"decisions": [FINE], "more": 1},
        {"decisions": ["apr_1"]},
        {"decisions": [{**FINE, "more": 1}]},
        {"decisions": [{"decision": "approve"}]},
        {"decisions": [{"approval_id": "", "decision": "approve"}]},
        {"decisions": [{"approval_id": "a" * 129, "decision": "approve"}]},
        {"decisions": [{"approval_id": "apr_1", "decision": "allow"}]},
        {"decisions": [{**FINE, "comment": 1}]},
        {"decisions": [{**FINE, "tell_model": 1}]},
        {"decisions": [{**FINE, "arguments": {"amount": 4}}]},
        {"decisions": [{**FINE, "arguments": "[]"}]},
        {"decisions": [{**FINE, "arguments": "{}", "from_now_on": {"always": True}}]},
        {"decisions": [{**FINE, "from_now_on": {}}]},
        {"decisions": [{**FINE, "from_now_on": {"always": 1}}]},
        {"decisions": [{**FINE, "from_now_on": {"always": True, "for_session": True}}]},
        {"decisions": [{**FINE, "from_now_on": {"for_seconds": "3600"}}]},
        {"decisions": [{**FINE, "from_now_on": {"always": True, "self": 1}}]},
        {"decisions": [{**FINE, "decision": "deny", "from_now_on": {"always": True}}]},
        {"decisions": [FINE, FINE]},
        {"decisions": [{**FINE, "approval_id": f"apr_{number}"} for number in range(MOST_CHOICES + 1)]},
    ],
)
def test_anything_else_is_refused_as_a_whole(body: Any) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-APPROVAL-INVALID"):
        choices_in(body)


@pytest.mark.parametrize(
    "text",
    [
        "",
        b"\xff",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1e400}',
        "[" * 100_000,
    ],
)
def test_json_that_can_be_read_in_two_ways_or_in_none_is_refused(text: str | bytes) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-APPROVAL-INVALID"):
        read_json(text)


def test_json_is_read() -> None:
    assert read_json('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
