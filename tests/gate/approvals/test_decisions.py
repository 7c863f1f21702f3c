"""What a decision is made of: changed arguments, tokens, seals, pauses."""

import re
from dataclasses import asdict, replace
from typing import Any

import pytest

from openai_responses_mcp.gate.approvals.controller import ApprovalController, RecordedFirst
from openai_responses_mcp.gate.approvals.decisions import (
    LONGEST_LIFETIME_SECONDS,
    Pause,
    checked_changes,
    lifetime_seconds,
    seal,
    token_hash,
)
from openai_responses_mcp.gate.approvals.models import ApprovalRecord, HumanApprovalRequest, StandingApproval
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import sealed
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import Masking
from tests.agents.fake_stores import FakeApprovalStore, FakeExecutionLogStore
from tests.agents.fakes import FakeClock, code_of

MASKING = Masking({"MY_API_KEY": "hunter2hunter2"})
SCHEMAS = SchemaChecker()
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "n": {"type": "integer"}, "key": {"type": "string"}, "list": {}},
}
KEY = "‹MY_API_KEY›"
SHOWN = {"path": "a.txt", "n": 1, "key": KEY, "list": ["x", f"with {KEY}"]}
INVALID = "AGENTS-E-APPROVAL-INVALID"
NOW = "2026-11-16T09:00:00.000000+00:00"


def a_record(schema: Any = SCHEMA) -> ApprovalRecord:
    request = HumanApprovalRequest("a1", "r1", "Approve", "May it?", "pending", "c1", "t", "mcp", SHOWN, created_at=NOW)
    return ApprovalRecord(request, "p1", "args", "definition", "state", parameters=schema)


async def test_changes_are_kept_as_json() -> None:
    given = {**SHOWN, "n": 2, "list": ("x", f"with {KEY}", {"名": None})}
    changed = await checked_changes(a_record(), given, MASKING, SCHEMAS)
    assert changed == {**SHOWN, "n": 2, "list": ["x", f"with {KEY}", {"名": None}]}
    assert await checked_changes(a_record(), {}, MASKING, SCHEMAS) == {}
    assert await checked_changes(a_record(), dict(reversed(SHOWN.items())), MASKING, SCHEMAS) is None


async def test_changed_arguments_that_are_invalid_or_have_no_schema_are_refused() -> None:
    cases: list[tuple[Any, str]] = [
        ({**SHOWN, "key": f"x{KEY}"}, "key contains the label"),
        ({**SHOWN, "list": [f"with {KEY}"]}, "list[0] contains the label"),
        ({"list": ["x", {"a": KEY}]}, "list[1].a contains the label of a secret"),
        ({**SHOWN, KEY: 1}, f"{KEY} contains the label"),
        ({**SHOWN, "path": "hunter2hunter2"}, "New arguments are stored"),
        ({"n": "two"}, "The arguments do not fit the tool"),
        ({"list": [float("nan")]}, "arguments contains a value that JSON cannot"),
        ("n", "arguments must be an object"),
    ]
    for given, problem in cases:
        with pytest.raises(AgentsError) as caught:
            await checked_changes(a_record(), given, MASKING, SCHEMAS)
        assert str(caught.value).startswith(f"{INVALID}: {problem}")
        no_schema: list[Any] = [None, {}]
        for schema in no_schema:
            assert await code_of(checked_changes(a_record(schema), {**SHOWN, "n": 2}, MASKING, SCHEMAS)) == INVALID


async def test_arguments_are_measured_in_characters_as_json() -> None:
    longest = 1_000_000 - len('{"path": ""}')
    for letter in "xあ":
        assert await checked_changes(a_record(), {"path": letter * longest}, MASKING, SCHEMAS) is not None
    assert await code_of(checked_changes(a_record(), {"path": "x" * (longest + 1)}, MASKING, SCHEMAS)) == INVALID


async def test_a_pattern_that_is_invalid_keeps_no_argument_from_being_changed() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "path": {"pattern": "("}}}
    assert await checked_changes(a_record(schema), {"n": 2}, MASKING, SCHEMAS) == {"n": 2}


# ---------------------------------------------------------------------------------------------------------------------
# Sealed


class Room:
    def __init__(self) -> None:
        self.store, self.logs, clock = FakeApprovalStore(), FakeExecutionLogStore(), FakeClock()
        audit = AuditLog(self.logs, clock, MASKING)
        self.controller = ApprovalController(
            self.store, RecordedFirst(self.store, self.logs), audit, clock, MASKING, 900
        )

    async def put(self, **facts: Any) -> None:
        """Tamper with the stored request."""
        record = await self.controller.get("a1")
        self.store._put(replace(record, request=replace(record.request, **facts)))


@pytest.mark.parametrize(
    ("decision", "said", "written"),
    [
        ("approve", {}, {"changed_arguments": {"n": 9}}),
        ("approve", {"arguments": {"n": 2}}, {"changed_arguments": {"n": 3}}),
        ("approve", {"arguments": {}}, {"changed_arguments": None}),
        ("deny", {"tell_model": True}, {"tell_model": False}),
    ],
)
async def test_a_decision_that_was_changed_in_the_store_breaks_its_seal(decision: Any, said: Any, written: Any) -> None:
    room = Room()
    await room.store.create([a_record()])
    token = await room.controller.submit_decision("a1", decision, **said)
    assert (await room.controller.check_token(token.token)).request.approval_id == "a1"
    await room.put(**written)
    assert await code_of(room.controller.check_token(token.token)) == "AGENTS-E-RESUME-TOKEN"


async def test_changed_arguments_are_recorded_with_the_difference() -> None:
    room = Room()
    await room.store.create([replace(a_record(), request=replace(a_record().request, reason="ask somebody"))])
    await room.controller.submit_decision("a1", "approve", arguments={"path": "b.txt"})
    (log,) = await room.logs.query()
    assert log.reason.startswith('a human changed the arguments:\n"path": "a.txt" is now "b.txt"\n"n": 1 is gone')
    assert log.arguments == {"path": "b.txt"}


async def test_an_expired_approval_is_asked_again_with_the_arguments_of_the_model() -> None:
    room = Room()
    await room.store.create([a_record()])
    await room.controller.submit_decision("a1", "approve", arguments={"n": 2})
    room.controller._clock.move(900)  # type: ignore[attr-defined]
    (renewed,) = await room.controller.pending()
    assert (renewed.arguments, renewed.changed_arguments, renewed.tell_model) == (SHOWN, None, False)
    assert (await room.controller.get(renewed.approval_id)).parameters == SCHEMA


REQUEST = HumanApprovalRequest("apr_1", "r1", "Approve", "May it?", "pending", tool_call_id="c1", tool_name="pay")
RECORD = ApprovalRecord(REQUEST, "pause_1", "arguments", "definition", "state")


def test_a_seal_covers_the_whole_call_and_its_decision_and_stays_the_same_in_every_version() -> None:
    parts = ("r1", "c1", "pay", "pause_1", "arguments", "definition", "state", "approved", "later")
    assert seal("token", RECORD, "approved", "later") == sealed("token", *parts)


def test_the_stored_hash_of_a_token_is_the_same_in_every_version() -> None:
    assert token_hash("token") == "0e2b6bb96a6bdf68c0b45ee10ecebbb7394cb485b7834994e58c3dbfcb0082d7"


VARIABLE = "AGENTS_RESUME_TOKEN_TTL_SEC"


def test_the_lifetime_is_given_or_in_the_environment() -> None:
    cases: list[tuple[int | None, dict[str, str], int]] = [
        (None, {}, 900),
        (None, {VARIABLE: "000000000060"}, 60),
        (1, {VARIABLE: "60"}, 1),
        (315_360_000, {}, LONGEST_LIFETIME_SECONDS),
    ]
    for given, environ, seconds in cases:
        assert lifetime_seconds(given, environ) == seconds


def test_a_lifetime_that_makes_no_sense_is_refused() -> None:
    cases: list[tuple[Any, dict[str, str]]] = [
        (0, {}),
        (True, {}),
        (LONGEST_LIFETIME_SECONDS + 1, {}),
        (None, {VARIABLE: "0000000000060"}),
        (None, {VARIABLE: "９００"}),
        (None, {VARIABLE: "9" * 5000}),
    ]
    for given, environ in cases:
        with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG") as caught:
            lifetime_seconds(given, environ)
        assert caught.value.message == (
            f"resume_token_ttl_sec ({VARIABLE}) is a whole number of seconds from 1 to {LONGEST_LIFETIME_SECONDS}"
        )


def test_requests_and_standing_approvals_have_empty_defaults() -> None:
    facts = asdict(HumanApprovalRequest("a1", "r1", "Approve", "May it?", "pending"))
    said = {name: value for name, value in facts.items() if value}
    asked = {"approval_id": "a1", "run_id": "r1", "required_action": "Approve", "prompt": "May it?"}
    assert said == {**asked, "status": "pending", "tool_kind": "function", "risk_level": 1}
    standing = asdict(StandingApproval("s1", "mcp", "t", "d", "2026", "a1", "r1"))
    assert len([value for value in standing.values() if value]) == 7


def test_each_pause_has_an_id_of_its_own_and_begins_empty() -> None:
    first, second = Pause(), Pause()
    assert first.pause_id != second.pause_id
    assert re.fullmatch("pause_[0-9a-f]{32}", first.pause_id)
    assert (first.state_hash, first.records) == ("", [])
