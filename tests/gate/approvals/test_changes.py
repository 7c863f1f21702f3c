"""What a human may put in the place of a call's arguments, and that the seal covers it."""

from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.gate.approvals.changes import checked_changes
from openai_responses_mcp.gate.approvals.controller import ApprovalController, RecordedFirst
from openai_responses_mcp.gate.approvals.models import ApprovalRecord, HumanApprovalRequest
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.errors import AgentsError
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


async def test_the_same_is_no_change() -> None:
    assert await checked_changes(a_record(), dict(reversed(SHOWN.items())), MASKING, SCHEMAS) is None


async def test_less_is_a_change() -> None:
    assert await checked_changes(a_record(), {}, MASKING, SCHEMAS) == {}


@pytest.mark.parametrize(
    "given",
    [
        {**SHOWN, "path": KEY},
        {**SHOWN, "key": f"x{KEY}"},
        {**SHOWN, "list": [f"with {KEY}"]},
        {**SHOWN, KEY: 1},
        {**SHOWN, "path": "hunter2hunter2"},
        {**SHOWN, "hunter2hunter2": 1},
        {"n": "two"},
        {"n": float("inf")},
        {"n": {1, 2}},
        {"path": "x" * 1_000_001},
        "n",
        None,
    ],
)
async def test_what_cannot_be_kept_or_does_not_fit_is_refused(given: Any) -> None:
    assert await code_of(checked_changes(a_record(), given, MASKING, SCHEMAS)) == INVALID


async def test_what_json_has_no_word_for_is_refused_wherever_it_stands() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-APPROVAL-INVALID: arguments holds something that JSON has no word"):
        await checked_changes(a_record(), {"list": [float("nan")]}, MASKING, SCHEMAS)


async def test_the_mark_of_a_secret_in_another_place_is_named_by_its_place() -> None:
    with pytest.raises(AgentsError, match=r"AGENTS-E-APPROVAL-INVALID: list\[1\]\.a holds the mark of a secret"):
        await checked_changes(a_record(), {"list": ["x", {"a": KEY}]}, MASKING, SCHEMAS)


async def test_arguments_are_measured_in_characters_as_json() -> None:
    longest = 1_000_000 - len('{"path": ""}')
    for letter in "xあ":
        assert await checked_changes(a_record(), {"path": letter * longest}, MASKING, SCHEMAS) is not None
    assert await code_of(checked_changes(a_record(), {"path": "x" * (longest + 1)}, MASKING, SCHEMAS)) == INVALID


async def test_a_pattern_that_nobody_can_read_keeps_no_argument_from_being_changed() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "path": {"pattern": "("}}}
    assert await checked_changes(a_record(schema), {"n": 2}, MASKING, SCHEMAS) == {"n": 2}


@pytest.mark.parametrize("schema", [None, {}])
async def test_without_a_schema_nothing_is_changed(schema: Any) -> None:
    assert await code_of(checked_changes(a_record(schema), {**SHOWN, "n": 2}, MASKING, SCHEMAS)) == INVALID


# ---------------------------------------------------------------------------------------------------------------------
# Sealed


class Room:
    def __init__(self) -> None:
        self.store, logs, clock = FakeApprovalStore(), FakeExecutionLogStore(), FakeClock()
        audit = AuditLog(logs, clock, MASKING)
        self.controller = ApprovalController(self.store, RecordedFirst(self.store, logs), audit, clock, MASKING, 900)

    async def put(self, **facts: Any) -> None:
        """Somebody writes to the store by hand."""
        record = await self.controller.get("a1")
        self.store._put(replace(record, request=replace(record.request, **facts)))


@pytest.mark.parametrize(
    ("decision", "said", "written"),
    [
        ("approve", {}, {"changed_arguments": {"n": 9}}),
        ("approve", {}, {"tell_model": True}),
        ("approve", {"arguments": {"n": 2}}, {"changed_arguments": {"n": 3}}),
        ("approve", {"arguments": {"n": 2}}, {"changed_arguments": None}),
        ("approve", {"arguments": {}}, {"changed_arguments": None}),
        ("deny", {}, {"tell_model": True}),
        ("deny", {"tell_model": True}, {"tell_model": False}),
    ],
)
async def test_who_changes_what_was_decided_cannot_seal_it(decision: Any, said: Any, written: Any) -> None:
    room = Room()
    await room.store.create([a_record()])
    token = await room.controller.submit_decision("a1", decision, **said)
    assert (await room.controller.check_token(token.token)).request.approval_id == "a1"
    await room.put(**written)
    assert await code_of(room.controller.check_token(token.token)) == "AGENTS-E-RESUME-TOKEN"


async def test_what_expired_is_asked_again_as_the_model_made_it() -> None:
    room = Room()
    await room.store.create([a_record()])
    await room.controller.submit_decision("a1", "approve", arguments={"n": 2})
    room.controller._clock.move(900)  # type: ignore[attr-defined]
    (renewed,) = await room.controller.pending()
    assert (renewed.arguments, renewed.changed_arguments, renewed.tell_model) == (SHOWN, None, False)
    assert (await room.controller.get(renewed.approval_id)).parameters == SCHEMA
