"""Tokens: how long one lives, and what its seal holds together."""

from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest
from openai_responses_mcp.agents.approvals.ports import ApprovalRecord
from openai_responses_mcp.agents.approvals.tokens import bad_token, lifetime_seconds, seal, token_hash
from openai_responses_mcp.agents.errors import AgentsError

VARIABLE = "AGENTS_RESUME_TOKEN_TTL_SEC"
REQUEST = HumanApprovalRequest("apr_1", "r1", "Approve", "May it?", "pending", tool_call_id="c1", tool_name="pay")
RECORD = ApprovalRecord(REQUEST, "pause_1", "arguments", "definition", "state")


@pytest.mark.parametrize(
    ("given", "environ", "seconds"),
    [
        (None, {}, 900),
        (None, {VARIABLE: "60"}, 60),
        (None, {VARIABLE: " 60 "}, 60),
        (5, {VARIABLE: "60"}, 5),
        (1, {}, 1),
    ],
)
def test_a_token_lives_as_given_else_as_the_environment_says(
    given: int | None, environ: dict[str, str], seconds: int
) -> None:
    assert lifetime_seconds(given, environ) == seconds


@pytest.mark.parametrize("given", [0, -1, 1.5, True, "60"])
def test_a_lifetime_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG") as caught:
        lifetime_seconds(given, {})
    assert caught.value.message == f"resume_token_ttl_sec ({VARIABLE}) is a whole number of seconds from 1 up"


@pytest.mark.parametrize("written", ["", "0", "-5", "1.5", "soon", "６０"])
def test_a_lifetime_in_the_environment_that_is_none_is_refused(written: str) -> None:
    with pytest.raises(AgentsError, match=VARIABLE):
        lifetime_seconds(None, {VARIABLE: written})


def test_a_seal_is_of_one_token_and_of_everything_that_was_decided() -> None:
    others = replace(REQUEST, run_id="x"), replace(REQUEST, tool_call_id="x"), replace(REQUEST, tool_name="x")
    seals = [
        seal("token", RECORD, "approved", "later"),
        seal("another", RECORD, "approved", "later"),
        seal("token", RECORD, "denied", "later"),
        seal("token", RECORD, "approved", "much later"),
        seal("token", replace(RECORD, pause_id="pause_2"), "approved", "later"),
        seal("token", replace(RECORD, arguments_hash="x"), "approved", "later"),
        seal("token", replace(RECORD, definition_hash="x"), "approved", "later"),
        seal("token", replace(RECORD, state_hash="x"), "approved", "later"),
        *(seal("token", replace(RECORD, request=request), "approved", "later") for request in others),
    ]
    assert len(set(seals)) == len(seals)
    assert seal("token", RECORD, "approved", "later") == seals[0]


def test_what_is_stored_of_a_token_does_not_show_it() -> None:
    assert token_hash("token") == token_hash("token") != token_hash("another")
    assert "token" not in token_hash("token")


def test_what_is_stored_of_a_token_is_the_same_in_every_version() -> None:
    assert token_hash("token") == "0e2b6bb96a6bdf68c0b45ee10ecebbb7394cb485b7834994e58c3dbfcb0082d7"


def test_a_token_that_cannot_be_used_says_why() -> None:
    error = bad_token("used", "used", approval_id="apr_1")
    assert (error.code, error.details) == ("AGENTS-E-RESUME-TOKEN", {"reason": "used", "approval_id": "apr_1"})
