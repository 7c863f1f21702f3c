"""Standing approvals: what they allow, for how long, and what the log says about them."""

import re
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.gate.approvals.controller import ApprovalController, RecordedFirst
from openai_responses_mcp.gate.approvals.decisions import LONGEST_LIFETIME_SECONDS
from openai_responses_mcp.gate.approvals.models import ApprovalRecord, HumanApprovalRequest
from openai_responses_mcp.gate.approvals.standing import StandingApprovals, StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription, arguments_hash
from openai_responses_mcp.gate.clock import Presence
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.reasons import Reason, reason_in_record
from openai_responses_mcp.gate.secrets.masking import Masking
from tests.agents.fake_stores import FakeApprovalStore, FakeExecutionLogStore, FakePresenceStore, FakeStandingStore
from tests.agents.fakes import BreakableLogStore, FakeClock, code_of

MASKING = Masking({"MY_API_KEY": "hunter2hunter2"})
TOOL = ToolDescription("files/write", "mcp", definition_hash="d1")
ARGS = {"path": "a.txt"}
CALL = PlannedCall("c9", TOOL, ARGS)
OTHER_ARGUMENTS = PlannedCall("c8", TOOL, {"path": "b.txt"})
INVALID = "AGENTS-E-APPROVAL-INVALID"


def a_record(approval_id: str = "a1", run: str = "r1") -> ApprovalRecord:
    request = HumanApprovalRequest(
        approval_id, run, "Approve", "May it?", "pending", "c1", "files/write", "mcp", ARGS, created_at="2026-11-16"
    )
    return ApprovalRecord(request, f"pause_{approval_id}", arguments_hash(ARGS), "d1", "state")


class Room:
    """Standing approvals on fakes, and everything around them."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.log = BreakableLogStore(FakeExecutionLogStore())
        self.audit = AuditLog(self.log, self.clock, MASKING)
        self.store = FakeStandingStore()
        self.approvals = FakeApprovalStore()
        self.standing = StandingApprovals(self.store, self.approvals, self.audit, self.clock, MASKING)
        book = RecordedFirst(self.approvals, self.log)
        self.presence = FakePresenceStore()
        self.controller = ApprovalController(
            self.approvals, book, self.audit, self.clock, MASKING, 900, presence=self.presence
        )

    async def events(self, run_id: str | None = None) -> list[tuple[str, str, str]]:
        logs = await self.audit.query(run_id)
        return [(log.event, log.tool_call_id, log.decision) for log in logs]


@pytest.fixture
def room() -> Room:
    return Room()


# ---------------------------------------------------------------------------------------------------------------------
# What it allows


async def test_a_permanent_approval_counts_in_every_session_with_any_arguments(room: Room) -> None:
    made = await room.standing.allow(a_record(), StandingTerms(always=True), "日々の作業")
    assert (made.made_from, made.made_in, made.comment) == ("a1", "r1", "日々の作業")
    for session in ("r1", "r2"):
        assert await room.standing.find(OTHER_ARGUMENTS, session) == made
    room.clock.move(10**9)
    assert await room.standing.find(replace(CALL, call_id="c7"), "r3") == made
    assert await room.standing.list() == [made]


async def test_other_arguments_sessions_and_tools_are_not_allowed(room: Room) -> None:
    made = await room.standing.allow(a_record(), StandingTerms(for_session=True, same_arguments=True))
    for tool in (replace(TOOL, name="files/read"), replace(TOOL, kind="function")):
        assert await room.standing.find(PlannedCall("c1", tool, ARGS), "r1") is None
    assert await room.standing.find(OTHER_ARGUMENTS, "r1") is None
    assert await room.standing.find(CALL, "r2") is None
    assert await room.standing.find(CALL, "r1") == made


async def test_its_reason_says_how_long_it_holds_and_for_what(room: Room) -> None:
    made = await room.standing.allow(a_record(), StandingTerms(for_seconds=3600, same_arguments=True))
    assert reason_in_record([made.reason], "allow") == (
        f"a standing approval allows it until 2026-11-16T10:00:00Z, with the same arguments ({made.standing_id})"
    )
    here = await room.standing.allow(a_record(), StandingTerms(for_session=True))
    said = reason_in_record([here.reason], "allow")
    assert said == f"a standing approval allows it for its session, with any arguments ({here.standing_id})"


# ---------------------------------------------------------------------------------------------------------------------
# How it ends


async def test_time_ends_it_and_a_clock_that_is_set_back_does_not_revive_it(room: Room) -> None:
    assert await room.standing.find(CALL, "r0") is None
    made = await room.standing.allow(a_record(), StandingTerms(for_seconds=60))
    newer = await room.standing.allow(a_record("a2", "r9"), StandingTerms(for_seconds=65))
    room.clock.move(59)
    assert await room.standing.find(CALL, "r1") == made
    room.clock.move(1)
    assert await room.standing.find(CALL, "r9") == newer
    room.clock.move(5)
    assert await room.standing.list() == []
    assert await room.standing.find(CALL, "r2") is None
    room.clock.move(-30)
    assert await room.standing.find(CALL, "r3") is None
    assert await room.standing.list() == []
    assert await room.events("r1") == [
        ("standing_made", made.standing_id, "allow"),
        ("standing_used", "c9", "allow"),
        ("standing_ended", made.standing_id, "expired"),
    ]


async def test_only_what_was_allowed_for_another_definition_ends_with_a_change(room: Room) -> None:
    old = await room.standing.allow(a_record(), StandingTerms(always=True))
    await room.standing.end_others(TOOL, "r1")
    assert await room.standing.find(CALL, "r1") == old
    here = await room.standing.allow(a_record("a2"), StandingTerms(for_session=True))
    changed = PlannedCall("c5", replace(TOOL, definition_hash="d2"), ARGS)
    assert await room.standing.find(changed, "r2") is None
    assert await room.standing.list() == [here]
    assert (await room.events())[-1] == ("standing_ended", old.standing_id, "definition changed")
    await room.standing.end_others(changed.tool, "r1")
    assert await room.standing.list() == []


async def test_it_is_revoked_once(room: Room) -> None:
    made = await room.standing.allow(a_record(), StandingTerms(always=True), "fine")
    assert await room.standing.revoke(made.standing_id, "もう要らない") == made
    assert await room.standing.find(CALL, "r1") is None
    assert await code_of(room.standing.revoke(made.standing_id)) == INVALID
    wrong: list[Any] = ["nobody", "", "x" * 129, None, 7]
    for one in wrong:
        assert await code_of(room.standing.revoke(one)) == "AGENTS-E-APPROVAL-NOT-FOUND"
    log = (await room.audit.query())[-1]
    assert (log.event, log.decision, log.comment, log.who) == ("standing_ended", "revoked", "もう要らない", "")
    known = await room.store.get(made.standing_id)
    assert known is not None
    assert known.ended_because == "revoked"


async def test_one_without_a_comment_has_none_and_a_comment_is_short(room: Room) -> None:
    made = await room.standing.allow(a_record(), StandingTerms(always=True))
    assert (made.comment, made.ended_because) == ("", "")
    assert re.fullmatch("sta_[0-9a-f]{32}", made.standing_id)
    assert await code_of(room.standing.revoke(made.standing_id, "x" * 2001)) == INVALID
    assert await room.standing.list() == [made]
    await room.standing.revoke(made.standing_id)
    assert [log.comment for log in await room.audit.query() if log.event == "standing_ended"] == [""]


async def test_the_end_of_a_session_ends_what_was_allowed_for_it(room: Room) -> None:
    made = await room.standing.allow(a_record(), StandingTerms(for_session=True))
    others = [
        await room.standing.allow(a_record("a2", "r2"), StandingTerms(for_session=True)),
        await room.standing.allow(a_record("a3"), StandingTerms(always=True)),
    ]
    await room.standing.end_session("r1")
    assert await room.standing.list() == others
    assert (await room.events())[-1] == ("standing_ended", made.standing_id, "session over")


# ---------------------------------------------------------------------------------------------------------------------
# Making one


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"always": True, "for_session": True},
        {"for_seconds": 0},
        {"for_seconds": True},
        {"for_seconds": 1.5},
    ],
)
async def test_terms_that_make_no_sense_are_refused_before_anything_is_decided(room: Room, terms: Any) -> None:
    await room.approvals.create([a_record()])

    async def decide() -> None:
        await approve_from_now_on(room.controller, room.standing, "a1", terms=StandingTerms(**terms))

    assert await code_of(decide()) == INVALID
    assert await room.events() == []
    assert len(await room.controller.pending()) == 1


def test_a_time_is_from_a_second_to_ten_years() -> None:
    for seconds in (1, LONGEST_LIFETIME_SECONDS):
        terms = StandingTerms(for_seconds=seconds)
        assert (terms.for_seconds, terms.same_arguments) == (seconds, False)
    with pytest.raises(AgentsError, match=INVALID):
        StandingTerms(for_seconds=LONGEST_LIFETIME_SECONDS + 1)
    with pytest.raises(AgentsError, match="Say one: the same arguments, or every tool that reads"):
        StandingTerms(always=True, reads=True, same_arguments=True)


async def test_one_that_cannot_be_recorded_is_not_made(room: Room) -> None:
    room.log.is_broken = True
    with pytest.raises(StoreUnavailable):
        await room.standing.allow(a_record(), StandingTerms(always=True))
    assert await room.standing.list() == []


async def test_a_secret_in_a_comment_is_not_kept(room: Room) -> None:
    made = await room.standing.allow(a_record(), StandingTerms(always=True), "with hunter2hunter2")
    await room.standing.find(PlannedCall("c2", TOOL, {"path": "hunter2hunter2"}), "r1")
    assert "hunter2" not in str((made.comment, await room.audit.query()))


async def test_the_log_says_which_approval_it_comes_from_and_what_used_it(room: Room) -> None:
    made = await room.standing.allow(a_record(), StandingTerms(for_session=True), "go on")
    await room.standing.find(CALL, "r1")
    await room.standing.find(CALL, "r1", attempt=2)
    logs = await room.audit.query("r1")
    assert [log.event for log in logs] == ["standing_made", "standing_used", "standing_used:2"]
    assert logs[0].arguments == {"approval_id": "a1", "session_id": "r1"}
    assert [(log.tool_kind, log.tool_name, log.reason, log.comment) for log in logs] == [
        ("mcp", "files/write", reason_in_record([made.reason], "allow"), "go on")
    ] * 3
    assert (logs[1].tool_call_id, logs[1].arguments) == ("c9", ARGS)


# ---------------------------------------------------------------------------------------------------------------------
# Approving with it


async def test_approving_from_now_on_decides_the_request_too(room: Room) -> None:
    await room.approvals.create([a_record()])
    terms = StandingTerms(for_session=True, same_arguments=True)
    token, made, _ = await approve_from_now_on(room.controller, room.standing, "a1", terms=terms, comment="fine")
    assert token.run_id == "r1"
    assert [(one.session_id, one.arguments_hash, one.comment) for one in made] == [("r1", arguments_hash(ARGS), "fine")]
    decided = await room.controller.get("a1")
    assert (decided.request.status, decided.request.comment) == ("approved", "fine")
    assert [(log.event, log.who) for log in await room.audit.query()] == [("approval", ""), ("standing_made", "")]


async def test_a_store_that_fails_afterwards_releases_nothing_and_the_decision_stands(room: Room) -> None:
    await room.approvals.create([a_record()])

    async def gone(run_id: str | None = None) -> list[ApprovalRecord]:
        raise StoreUnavailable("gone")

    room.approvals.list_pending = gone  # type: ignore[method-assign]
    _, made, released = await approve_from_now_on(
        room.controller, room.standing, "a1", terms=StandingTerms(always=True)
    )
    assert (len(made), released) == (1, 0)


async def test_every_tool_that_read_when_it_was_asked_is_allowed_with_it(room: Room) -> None:
    reading = {"files/write": "d1", "files/list": "d2"}
    await room.approvals.create([replace(a_record(), reading=reading)])
    terms = StandingTerms(for_seconds=60, reads=True)
    _, made, _ = await approve_from_now_on(room.controller, room.standing, "a1", terms=terms)
    assert {one.tool_name: one.definition_hash for one in made} == reading
    assert len({one.expires_at for one in made}) == 1


async def test_a_tool_that_did_not_read_is_not_allowed_with_others(room: Room) -> None:
    await room.approvals.create([a_record()])
    with pytest.raises(AgentsError, match="does not claim to read only"):
        await approve_from_now_on(room.controller, room.standing, "a1", terms=StandingTerms(always=True, reads=True))
    assert (await room.controller.get("a1")).request.status == "pending"


async def test_a_request_that_is_decided_already_allows_nothing(room: Room) -> None:
    await room.approvals.create([a_record()])
    await room.controller.submit_decision("a1", "deny")
    with pytest.raises(AgentsError, match="decided already"):
        await approve_from_now_on(room.controller, room.standing, "a1", terms=StandingTerms(always=True))
    assert await room.standing.list() == []


# ---------------------------------------------------------------------------------------------------------------------
# Several people


def of_caller(room: Room, caller: str) -> StandingApprovals:
    return StandingApprovals(room.store, room.approvals, room.audit, room.clock, MASKING, caller)


async def test_a_caller_approves_only_for_itself_and_the_desk_for_all_callers(room: Room) -> None:
    alice, bob = of_caller(room, "alice"), of_caller(room, "bob")
    made = await alice.allow(a_record(), StandingTerms(always=True))
    assert await alice.find(CALL, "r1") == made
    assert await bob.find(replace(CALL, call_id="c7"), "r2") is None
    assert await room.standing.find(replace(CALL, call_id="c9"), "r3") is None
    await room.audit.settle("r1")
    assert [(log.event, log.who) for log in await room.audit.query("r1")][-1] == ("standing_used", "alice")
    for_all = await room.standing.allow(a_record("a2"), StandingTerms(always=True))
    assert for_all.caller is None
    assert await bob.find(CALL, "r5") == for_all


async def test_it_releases_requests_at_guards_that_it_covers(room: Room) -> None:
    waiting = {
        "a1": ("guard_1", "alice", "rule"),
        "a2": ("guard_2", "alice", "profile"),
        "a3": ("guard_2", "alice", "rule"),
        "a4": ("guard_2", "alice", "tool"),
        "of one that is gone": ("guard_gone", "alice", "rule"),
        "of bob": ("guard_3", "bob", "profile"),
        "over budget": ("guard_2", "alice", "budget"),
        "of a run": ("run_1", "alice", "profile"),
    }
    for approval_id, (run_id, caller, voice) in waiting.items():
        record, asks = a_record(approval_id, run_id), (Reason(voice, "needs_human", {}),)  # type: ignore[arg-type]
        request = replace(record.request, tool_call_id=approval_id, caller=caller, reasons=asks)
        await room.approvals.create([replace(record, request=request)])
    await room.presence.renew(Presence("guard_gone", "guard", "files", "2026-11-15", "2026-11-15"))
    terms = StandingTerms(always=True)
    *_, released = await approve_from_now_on(room.controller, of_caller(room, "alice"), "a1", terms=terms, who="alice")
    assert released == 3
    assert (await room.controller.get("of one that is gone")).request.status == "kept"
    left = [request.approval_id for request in await room.controller.pending()]
    assert left == ["of bob", "over budget", "of a run"]
    decided = [(log.tool_call_id, log.who) for log in await room.audit.query() if log.event == "approval"]
    assert decided == [("a1", "alice"), ("a2", ""), ("a3", ""), ("a4", ""), ("of one that is gone", "")]
