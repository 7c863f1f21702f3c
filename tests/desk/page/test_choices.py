"""What comes from the page is read strictly."""

from typing import Any

import pytest

from openai_responses_mcp.desk.page.messages import MOST_CHOICES, Choice, choices_in, revocation_in
from openai_responses_mcp.gate.approvals.standing import StandingTerms
from openai_responses_mcp.gate.errors import AgentsError

FINE = {"approval_id": "apr_1", "decision": "approve"}


def test_a_revocation_is_read() -> None:
    assert revocation_in({"standing_id": "sta_1"}) == "sta_1"
    for body in (None, {}, {"standing_id": ""}, {"standing_id": 1}, {"standing_id": "s", "more": 1}):
        with pytest.raises(AgentsError, match="AGENTS-E-APPROVAL-INVALID"):
            revocation_in(body)


def test_choices_are_read() -> None:
    given = [
        {**FINE, "from_now_on": {"for_seconds": 3600, "same_arguments": True}},
        {"approval_id": "apr_2", "decision": "deny", "comment": "no", "tell_model": True},
        {"approval_id": "apr_3", "decision": "approve", "arguments": '{"amount": 4}'},
    ]
    assert choices_in({"decisions": given}) == [
        Choice("apr_1", "approve", None, StandingTerms(for_seconds=3600, same_arguments=True)),
        Choice("apr_2", "deny", "no", tell_model=True),
        Choice("apr_3", "approve", arguments={"amount": 4}),
    ]


def test_anything_else_is_refused_as_a_whole() -> None:
    cases: list[Any] = [
        {"more": 1},
        {"approval_id": ""},
        {"approval_id": "a" * 129},
        {"decision": "allow"},
        {"comment": 1},
        {"tell_model": 1},
        {"arguments": {"amount": 4}},
        {"arguments": "[]"},
        {"arguments": "{}", "from_now_on": {"always": True}},
        {"from_now_on": {}},
        {"from_now_on": {"always": 1}},
        {"from_now_on": {"for_seconds": "3600"}},
        {"from_now_on": {"always": True, "self": 1}},
        {"decision": "deny", "from_now_on": {"always": True}},
    ]
    for changed in cases:
        with pytest.raises(AgentsError, match="AGENTS-E-APPROVAL-INVALID"):
            choices_in({"decisions": [{"approval_id": "apr_2", "decision": "deny"}, FINE | changed]})


def test_each_request_is_decided_once_and_not_too_many() -> None:
    cases: list[Any] = [None, [], ["apr_1"], [FINE, FINE], [FINE] * (MOST_CHOICES + 1)]
    for given in cases:
        for body in ({"decisions": given}, given, {"decisions": [FINE], "more": 1}):
            with pytest.raises(AgentsError, match="AGENTS-E-APPROVAL-INVALID"):
                choices_in(body)
