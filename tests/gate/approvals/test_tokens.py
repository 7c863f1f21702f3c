"""Tokens: what is stored of one, and what its seal holds together."""

from dataclasses import replace

from openai_responses_mcp.gate.approvals.models import ApprovalRecord, HumanApprovalRequest
from openai_responses_mcp.gate.approvals.tokens import bad_token, seal, token_hash
from openai_responses_mcp.gate.json_values import sealed

REQUEST = HumanApprovalRequest("apr_1", "r1", "Approve", "May it?", "pending", tool_call_id="c1", tool_name="pay")
RECORD = ApprovalRecord(REQUEST, "pause_1", "arguments", "definition", "state")


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


def test_a_seal_is_of_what_a_human_made_of_the_call_too() -> None:
    said = [
        REQUEST,
        replace(REQUEST, tell_model=True),
        replace(REQUEST, changed_arguments={}),
        replace(REQUEST, changed_arguments={"amount": 5}),
        replace(REQUEST, changed_arguments={"amount": 6}),
        replace(REQUEST, tell_model=True, changed_arguments={"amount": 5}),
    ]
    seals = {seal("token", replace(RECORD, request=request), "approved", "later") for request in said}
    assert len(seals) == len(said)


def test_a_plain_decision_is_sealed_as_it_always_was() -> None:
    parts = ("r1", "c1", "pay", "pause_1", "arguments", "definition", "state", "approved", "later")
    assert seal("token", RECORD, "approved", "later") == sealed("token", *parts)


def test_what_is_stored_of_a_token_does_not_show_it() -> None:
    assert token_hash("token") == token_hash("token") != token_hash("another")
    assert "token" not in token_hash("token")


def test_what_is_stored_of_a_token_is_the_same_in_every_version() -> None:
    assert token_hash("token") == "0e2b6bb96a6bdf68c0b45ee10ecebbb7394cb485b7834994e58c3dbfcb0082d7"


def test_a_token_that_cannot_be_used_says_why() -> None:
    error = bad_token("used", "used", approval_id="apr_1")
    assert (error.code, error.details) == ("AGENTS-E-RESUME-TOKEN", {"reason": "used", "approval_id": "apr_1"})
