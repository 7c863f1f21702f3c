"""Approvals on their own: asking, deciding once, tokens."""

import asyncio
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from openai_responses_mcp.gate.approvals.controller import ApprovalController, OnRequested
from openai_responses_mcp.gate.approvals.decisions import Pause
from openai_responses_mcp.gate.approvals.models import (
    ApprovalChoice,
    DecisionBook,
    HumanApprovalRequest,
    HumanDecision,
    Undecided,
)
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.calls import GateDecision, PlannedCall, ToolDescription
from openai_responses_mcp.gate.clock import LEASE_SECONDS, Presence, timestamp
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.sql_approvals import SqlApprovalStore, SqlDecisionBook
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from openai_responses_mcp.gate.sql.sql_stores import SqlPresenceStore
from tests.agents.fakes import ASK, FakeClock, code_of

SCHEMA = {"properties": {"amount": {"type": "integer"}, "api_key": {"type": "string"}}}
PAY = ToolDescription("pay", "function", "Pay somebody.", SCHEMA, definition_hash="d1")
CALL = PlannedCall("c1", PAY, {"amount": 5, "api_key": "abc"})


class Desk:
    """A controller on a database in memory."""

    def __init__(self, clock: FakeClock, url: str = "sqlite://") -> None:
        self.database = SqlDatabase(url)
        self.store = SqlApprovalStore(self.database)
        self.logs = SqlExecutionLogStore(self.database)
        self.presence = SqlPresenceStore(self.database)
        self.clock = clock
        self.noticed: list[HumanApprovalRequest] = []
        self.controller = self.another()

    def another(self, *on_requested: OnRequested | None, book: DecisionBook | None = None) -> ApprovalController:
        masking, decisions = Masking({}), book or SqlDecisionBook(self.database, self.logs)
        audit = AuditLog(self.logs, self.clock, masking)
        return ApprovalController(
            self.store,
            decisions,
            audit,
            self.clock,
            masking,
            900,
            on_requested[0] if on_requested else self.noticed.append,
            presence=self.presence,
        )

    async def ask(self, *call_ids: str) -> list[HumanApprovalRequest]:
        pause = Pause(state_hash="s1")
        for call_id in call_ids or ("c1",):
            call = replace(CALL, call_id=call_id)
            await self.controller.create_approval_request("r1", ASK, call=call, pause=pause)
        return await self.controller.open_pause(pause)

    async def decided(self, decision: HumanDecision = "approve") -> tuple[HumanApprovalRequest, str]:
        """A request, and the token of its decision."""
        (request,) = await self.ask()
        return request, (await self.controller.submit_decision(request.approval_id, decision)).token

    async def token_refusal(self, token: str, run_id: str = "r1") -> dict[str, object]:
        with pytest.raises(AgentsError, match="AGENTS-E-RESUME-TOKEN") as caught:
            await self.controller.check_token(token, run_id)
        return dict(caught.value.details)


@pytest.fixture
def desk(clock: FakeClock) -> Desk:
    return Desk(clock)


async def test_a_request_says_what_is_asked_without_secrets(desk: Desk) -> None:
    (request,) = await desk.ask()
    assert request.status == "pending"
    assert re.fullmatch("apr_[0-9a-f]{32}", request.approval_id)
    assert (request.tool_call_id, request.tool_name, request.tool_kind) == ("c1", "pay", "function")
    assert request.created_at == timestamp(desk.clock.now())
    assert request.required_action == "Approve or deny function pay"
    assert request.prompt == "May function pay run? ask somebody"
    assert request.arguments == {"amount": 5, "api_key": "‹api_key, 3 characters›"}
    assert (request.reason, request.tool_description) == ("ask somebody", "Pay somebody.")
    assert await desk.controller.pending() == [request]
    assert await desk.controller.pending("r1") == [request]
    assert await desk.controller.pending("r2") == []


async def test_a_reason_is_cut_to_what_a_prompt_may_hold(desk: Desk) -> None:
    begin = "May function pay run? "
    fits = "x" * (2000 - len(begin))
    for number, (reason, prompt) in enumerate([(fits, begin + fits), (f"{fits}x", f"{begin}{fits[:-1]}…")]):
        call = replace(CALL, call_id=str(number))
        request = await desk.controller.create_approval_request("r1", GateDecision("needs_human", 3, reason), call=call)
        assert (request.prompt, request.reason) == (prompt, reason)


async def test_each_request_is_announced_once(desk: Desk, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "openai_responses_mcp.agents")
    first, second = await desk.ask("c1", "c2")
    assert desk.noticed == [first, second]
    await desk.controller.submit_decision(first.approval_id, "approve")
    clock.move(900)
    assert desk.noticed == [first, second]
    pending = await desk.controller.pending()
    assert desk.noticed == [first, second, *(request for request in pending if request.tool_call_id == "c1")]
    said = [f"approval {one.approval_id} is waited for, run r1" for one in desk.noticed]
    assert [line for line in caplog.messages if "is waited for" in line] == said


async def test_an_announcement_is_awaited_and_may_fail(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    async def note_and_fail(request: HumanApprovalRequest) -> None:
        desk.noticed.append(request)
        raise RuntimeError("no mail today")

    desk.controller = desk.another(note_and_fail)
    (request,) = await desk.ask()
    assert desk.noticed == [request]
    said = f"on_approval_requested failed with RuntimeError for {request.approval_id}"
    assert ("openai_responses_mcp.agents", logging.WARNING, said) in caplog.record_tuples
    desk.controller = desk.another(None)
    await desk.ask("c2")


@pytest.mark.parametrize(
    ("run_id", "decision", "prompt"),
    [
        ("r1", GateDecision("allow", 1, ""), "May it?"),
        ("", ASK, "May it?"),
        ("r" * 129, ASK, "May it?"),
        ("r1", ASK, ""),
        ("r1", ASK, "x" * 2001),
    ],
)
async def test_a_request_out_of_range_is_refused(desk: Desk, run_id: str, decision: GateDecision, prompt: str) -> None:
    work = desk.controller.create_approval_request(run_id, decision, prompt, call=CALL)
    assert await code_of(work) == "AGENTS-E-APPROVAL-INVALID"


async def test_a_request_is_stored_with_all_that_the_caller_says_and_without_secrets(desk: Desk) -> None:
    changed = replace(PAY, parameters=SCHEMA, definition_change='description: "a" is now "sk-0123456789abcdef"')
    call, reading = replace(CALL, tool=changed), {"files/read": "d1"}
    own_words = "Pay five with sk-0123456789?"
    request = await desk.controller.create_approval_request("r1", ASK, own_words, call=call, reading=reading)
    assert request.prompt == "Pay five with ‹sk-…, 13 characters›?"
    assert request.definition_change == 'description: "a" is now "‹sk-…, 19 characters›"'
    record = await desk.controller.get(request.approval_id)
    assert (record.request, record.parameters, record.reading) == (request, SCHEMA, reading)
    without = replace(CALL, call_id="c2", tool=replace(PAY, parameters={}))
    for number, (run_id, prompt) in enumerate([("r", "?"), ("r" * 128, "x" * 2000)]):
        one = replace(without, call_id=f"c{number}")
        request = await desk.controller.create_approval_request(run_id, ASK, prompt, call=one)
        assert (request.run_id, request.prompt) == (run_id, prompt)
        record = await desk.controller.get(request.approval_id)
        assert (record.request, record.parameters, record.reading) == (request, None, {})


async def test_nothing_of_a_pause_is_stored_before_it_is_opened(desk: Desk) -> None:
    pause = Pause(state_hash="s1")
    await desk.controller.create_approval_request("r1", ASK, call=CALL, pause=pause)
    assert await desk.controller.pending() == []
    requests = await desk.controller.open_pause(pause)
    assert await desk.controller.pending() == requests


async def test_a_decision_gives_a_token_that_is_not_stored(clock: FakeClock, sqlite_url: str, tmp_path: Path) -> None:
    desk = Desk(clock, sqlite_url)
    (request,) = await desk.ask()
    token = await desk.controller.submit_decision(request.approval_id, "approve", "fine, sk-0123456789")
    assert (token.run_id, token.status) == ("r1", "active")
    assert token.expires_at == "2026-11-16T09:15:00.000000+00:00"
    assert len(token.token) == 43
    assert token.token not in repr(token)
    assert token.token.encode() not in (tmp_path / "agents.db").read_bytes()
    record = await desk.controller.get(request.approval_id)
    assert (record.request.status, record.request.comment) == ("approved", "fine, ‹sk-…, 13 characters›")
    assert await code_of(desk.controller.submit_decision(request.approval_id, "deny")) == "AGENTS-E-APPROVAL-INVALID"
    assert (await desk.controller.get(request.approval_id)).request.status == "approved"


async def test_an_unknown_approval_or_run_is_not_found(desk: Desk) -> None:
    wrong: list[Any] = ["", "nobody", "x" * 129, None]
    for one in wrong:
        assert await code_of(desk.controller.submit_decision(one, "approve")) == "AGENTS-E-APPROVAL-NOT-FOUND"
        assert await code_of(desk.controller.check_decisions(one)) == "AGENTS-E-APPROVAL-NOT-FOUND"


async def test_a_decision_is_approve_or_deny_with_a_short_comment(desk: Desk) -> None:
    (request,) = await desk.ask()
    wrong = desk.controller.submit_decision(request.approval_id, "maybe")  # type: ignore[arg-type]
    assert await code_of(wrong) == "AGENTS-E-APPROVAL-INVALID"
    long = desk.controller.submit_decision(request.approval_id, "approve", "x" * 2001)
    assert await code_of(long) == "AGENTS-E-APPROVAL-INVALID"
    number = desk.controller.submit_decision(request.approval_id, "approve", 5)  # type: ignore[arg-type]
    assert await code_of(number) == "AGENTS-E-APPROVAL-INVALID"
    await desk.controller.submit_decision(request.approval_id, "approve", "x" * 2000)


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ("deny", {"tell_model": 1}),
        ("deny", {"tell_model": None}),
        ("approve", {"tell_model": True}),
        ("deny", {"arguments": {"amount": 4}}),
    ],
)
async def test_only_a_denial_is_for_the_model_and_only_an_approval_changes(
    desk: Desk, decision: Any, said: Any
) -> None:
    (request,) = await desk.ask()
    work = desk.controller.submit_decision(request.approval_id, decision, **said)
    assert await code_of(work) == "AGENTS-E-APPROVAL-INVALID"
    assert await desk.controller.pending() == [request]


async def test_a_decision_is_recorded_with_what_was_said(desk: Desk) -> None:
    first, second = await desk.ask("c1", "c2")
    await desk.controller.submit_decision(first.approval_id, "approve", "checked")
    await desk.controller.submit_decision(second.approval_id, "deny", tell_model=True)
    logs = [(log.tool_call_id, log.event, log.decision, log.comment + log.who) for log in await desk.logs.query()]
    assert logs == [
        ("c1", "approval_requested", "pending", ""),
        ("c2", "approval_requested", "pending", ""),
        ("c1", "approval", "approved", "checked"),
        ("c2", "approval", "denied", ""),
    ]
    records = await desk.controller.of_newest_pause("r1")
    assert records == await desk.controller.of_pause(records[0].pause_id)
    assert [(record.request.comment, record.request.tell_model) for record in records] == [
        ("checked", False),
        ("", True),
    ]


@pytest.mark.parametrize("status", ["expired", "withdrawn"])
async def test_a_request_that_needs_no_decision_any_more_stays_visible(desk: Desk, status: Undecided) -> None:
    (request,) = await desk.ask()
    assert await desk.controller.close_undecided(request.approval_id, status, "gone with sk-0123456789")
    closed = (await desk.controller.get(request.approval_id)).request
    assert (closed.status, closed.comment) == (status, "gone with ‹sk-…, 13 characters›")
    assert await desk.controller.pending() == []
    log = (await desk.logs.query())[-1]
    assert (log.event, log.decision, log.comment, log.who) == ("approval", status, closed.comment, "")
    assert await code_of(desk.controller.submit_decision(request.approval_id, "approve")) == "AGENTS-E-APPROVAL-INVALID"


async def test_a_good_token_works_once(desk: Desk) -> None:
    _, token = await desk.decided()
    record = await desk.controller.check_token(token, "r1")
    await desk.controller.consume(token, record)
    assert (await desk.token_refusal(token))["reason"] == "used"
    with pytest.raises(AgentsError, match="AGENTS-E-RESUME-TOKEN") as caught:
        await desk.controller.consume(token, record)
    assert caught.value.details == {"reason": "used"}


async def test_a_wrong_token_and_that_of_another_run_are_refused(desk: Desk) -> None:
    _, token = await desk.decided()
    wrong: list[Any] = ["wrong", "", None, 5]
    for one in wrong:
        assert await desk.token_refusal(one, "r1") == {"reason": "unknown"}
    assert await desk.token_refusal(token, "r2") == {"reason": "unknown"}
    assert (await desk.controller.check_token(token)).request.run_id == "r1"


@pytest.mark.parametrize(("seconds", "is_valid"), [(899, True), (900, False), (901, False)])
async def test_a_token_lives_as_long_as_its_time(desk: Desk, clock: FakeClock, seconds: float, is_valid: bool) -> None:
    _, token = await desk.decided()
    clock.move(seconds)
    assert (await code_of(desk.controller.check_token(token, "r1")) == "") is is_valid


async def test_an_expired_token_opens_a_new_request_for_the_same_call(desk: Desk, clock: FakeClock) -> None:
    request, token = await desk.decided()
    clock.move(900)
    refusal = await desk.token_refusal(token)
    (renewed,) = await desk.controller.pending("r1")
    assert refusal == {"reason": "expired", "approval_id": renewed.approval_id}
    assert renewed.approval_id != request.approval_id
    assert re.fullmatch("apr_[0-9a-f]{32}", renewed.approval_id)
    assert (renewed.tool_call_id, renewed.arguments) == (request.tool_call_id, request.arguments)
    assert (renewed.comment, renewed.decided_at, renewed.created_at) == (None, None, timestamp(clock.now()))
    fresh = (await desk.controller.submit_decision(renewed.approval_id, "approve")).token
    record = await desk.controller.check_token(fresh, "r1")
    await desk.controller.consume(fresh, record)
    assert await code_of(desk.controller.submit_decision(request.approval_id, "deny")) == "AGENTS-E-APPROVAL-INVALID"
    events = [log.event for log in await desk.logs.query()]
    assert events == ["approval_requested", "approval", "approval_requested:2", "approval:2"]
    again = (await desk.logs.query())[2]
    assert (again.decision, again.comment) == ("pending", "the token expired")
    assert await desk.token_refusal(token) == refusal


async def test_requests_of_a_killed_guard_are_not_asked_again_and_do_not_wait_for_ever(
    desk: Desk, clock: FakeClock
) -> None:
    requests = [
        await desk.controller.create_approval_request("r1", ASK, call=replace(CALL, call_id=one), wait_seconds=300)
        for one in ("c1", "c2")
    ]
    await desk.controller.submit_decision(requests[0].approval_id, "approve")
    clock.move(299)
    assert [one.approval_id for one in await desk.controller.pending()] == [requests[1].approval_id]
    clock.move(901)
    assert await desk.controller.pending() == []
    approved, expired = [(await desk.controller.get(one.approval_id)).request for one in requests]
    assert (approved.status, expired.status) == ("approved", "expired")
    assert expired.comment == "nobody decided in time"


async def test_an_expired_denial_is_not_asked_about_again(desk: Desk, clock: FakeClock) -> None:
    first, second = await desk.ask("c1", "c2")
    token = (await desk.controller.submit_decision(first.approval_id, "deny")).token
    clock.move(900)
    assert await desk.token_refusal(token) == {"reason": "expired", "approval_id": None}
    assert await desk.controller.pending("r1") == [second]
    fresh = (await desk.controller.submit_decision(second.approval_id, "approve")).token
    await desk.controller.consume(fresh, await desk.controller.check_token(fresh, "r1"))


async def test_a_decision_can_be_used_without_its_token_once(desk: Desk) -> None:
    first, second = await desk.ask("c1", "c2")
    token = (await desk.controller.submit_decision(first.approval_id, "approve")).token
    with pytest.raises(AgentsError, match="AGENTS-E-APPROVAL-INVALID") as caught:
        await desk.controller.check_decisions("r1")
    assert caught.value.details["approval_ids"] == [second.approval_id]
    await desk.controller.submit_decision(second.approval_id, "approve")
    record = await desk.controller.check_decisions("r1")
    await desk.controller.consume(None, record)
    with pytest.raises(AgentsError, match="AGENTS-E-RESUME-TOKEN") as used:
        await desk.controller.check_decisions("r1")
    assert used.value.details["reason"] == "used"
    assert await code_of(desk.controller.check_token(token, "r1")) == "AGENTS-E-RESUME-TOKEN"
    assert await code_of(desk.controller.consume(None, record)) == "AGENTS-E-RESUME-TOKEN"


async def test_an_expired_decision_is_asked_about_again_without_its_token_too(desk: Desk, clock: FakeClock) -> None:
    await desk.decided()
    clock.move(900)
    with pytest.raises(AgentsError, match="AGENTS-E-RESUME-TOKEN") as caught:
        await desk.controller.check_decisions("r1")
    (renewed,) = await desk.controller.pending("r1")
    assert caught.value.details == {"reason": "expired", "approval_id": renewed.approval_id}


async def test_a_denial_is_used_without_its_token_however_old_it_is(desk: Desk, clock: FakeClock) -> None:
    await desk.decided("deny")
    clock.move(9000)
    record = await desk.controller.check_decisions("r1")
    assert record.request.status == "denied"
    await desk.controller.consume(None, record)


async def test_an_expired_token_stays_expired_when_the_clock_is_set_back(desk: Desk, clock: FakeClock) -> None:
    _, token = await desk.decided()
    clock.move(1000)
    await desk.controller.pending_of_pause("another pause")
    clock.move(-1000)
    for controller in (desk.another(), desk.controller):
        assert await code_of(controller.check_token(token, "r1")) == "AGENTS-E-RESUME-TOKEN"
    assert await code_of(desk.another().check_decisions("r1")) == "AGENTS-E-APPROVAL-INVALID"


async def test_an_expired_sibling_is_asked_about_again(desk: Desk, clock: FakeClock) -> None:
    first, second = await desk.ask("c1", "c2")
    await desk.controller.submit_decision(first.approval_id, "approve")
    clock.move(600)
    token = (await desk.controller.submit_decision(second.approval_id, "approve")).token
    clock.move(600)
    assert await code_of(desk.controller.check_token(token, "r1")) == "AGENTS-E-APPROVAL-INVALID"
    (renewed,) = await desk.controller.pending("r1")
    assert renewed.tool_call_id == "c1"


@pytest.mark.parametrize(
    "change",
    [
        "arguments_hash = 'x'",
        "status = 'approved'",
        "expires_at = '2999-01-01T00:00:00.000000+00:00'",
    ],
)
async def test_a_change_in_the_store_after_the_decision_breaks_the_seal(desk: Desk, change: str) -> None:
    _, token = await desk.decided("deny")
    desk.database.work_now(lambda connection: connection.execute(text(f"UPDATE agents_approvals SET {change}")))
    assert (await desk.token_refusal(token))["reason"] == "changed"


async def test_two_who_find_a_token_expired_open_one_request(desk: Desk, clock: FakeClock) -> None:
    request, _ = await desk.decided()
    record = await desk.controller.get(request.approval_id)
    clock.move(900)
    now = timestamp(clock.now())
    assert await desk.controller._reopen(record, now) is not None
    assert await desk.another()._reopen(record, now) is None
    assert len(await desk.controller.pending("r1")) == 1


async def test_the_response_of_a_human_is_stored_without_secrets(desk: Desk) -> None:
    (request,) = await desk.ask()
    await desk.controller.respond(await desk.controller.get(request.approval_id), "use sk-0123456789")
    assert (await desk.controller.get(request.approval_id)).human_response == "use ‹sk-…, 13 characters›"


async def kept_request(desk: Desk) -> HumanApprovalRequest:
    request = await desk.controller.create_approval_request("guard_1", ASK, call=CALL)
    await desk.controller.close_undecided(request.approval_id, "withdrawn", "")
    return request


async def test_a_yes_to_a_call_that_was_given_up_is_kept_for_ten_minutes(desk: Desk) -> None:
    request = await kept_request(desk)
    changed = desk.controller.submit_decision(request.approval_id, "approve", arguments={"amount": 4})
    assert await code_of(changed) == "AGENTS-E-APPROVAL-INVALID"
    token = await desk.controller.submit_decision(request.approval_id, "approve", who="sato")
    assert (token.run_id, token.expires_at) == ("guard_1", "2026-11-16T09:10:00.000000+00:00")
    assert (await desk.controller.get(request.approval_id)).binding == ""
    log = (await desk.logs.query())[-1]
    assert (log.event, log.decision, log.comment, log.who) == ("approval_kept", "kept", "", "sato")
    again = desk.controller.submit_decision(request.approval_id, "approve")
    assert await code_of(again) == "AGENTS-E-APPROVAL-INVALID"


async def test_a_kept_yes_is_used_by_one_of_many(desk: Desk) -> None:
    request = await kept_request(desk)
    await desk.controller.keep(await desk.controller.get(request.approval_id), "")
    assert (await desk.logs.query())[-1].who == ""
    calls = [replace(CALL, call_id=f"c{number}") for number in range(2, 8)]
    taken = await asyncio.gather(*(desk.controller.take_kept("guard_1", ASK, call) for call in calls))
    assert [one.request.approval_id for one in taken if one is not None] == [request.approval_id]
    log = (await desk.logs.query())[-1]
    assert (log.event, log.decision) == ("approval", "approved")
    assert log.comment == f"approved before, after the caller had given up ({request.approval_id})"


async def asked_by_guards(desk: Desk) -> list[HumanApprovalRequest]:
    """Requests of a killed guard, of a running one with the same name, and of an old version without a lease."""
    asked = [
        await desk.controller.create_approval_request(run_id, ASK, call=CALL, wait_seconds=300)
        for run_id in ("guard_killed", "guard_running", "guard_old")
    ]
    for run_id, seconds in (("guard_killed", LEASE_SECONDS + 1), ("guard_running", 0)):
        moment = timestamp(desk.clock.now())
        await desk.presence.renew(Presence(run_id, "guard", "files", moment, moment))
        desk.clock.move(seconds)
    return asked


async def test_a_yes_is_kept_when_the_guard_that_asked_is_gone(desk: Desk) -> None:
    asked = await asked_by_guards(desk)
    assert [await desk.controller.is_guard_gone(one) for one in asked] == [True, False, False]
    for one in asked:
        await desk.controller.submit_decision(one.approval_id, "approve", "go on", who="sato")
    records = [await desk.controller.get(one.approval_id) for one in asked]
    assert [one.request.status for one in records] == ["kept", "approved", "approved"]
    logs = [(log.event, log.decision, log.comment, log.who) for log in await desk.logs.query("guard_killed")]
    assert logs[1:] == [("approval", "approved", "go on", "sato"), ("approval_kept", "kept", "go on", "sato")]


async def test_a_run_of_an_agent_belongs_to_no_guard(desk: Desk) -> None:
    killed = (await asked_by_guards(desk))[0].approval_id
    await desk.presence.renew(Presence("r1", "guard", "files", "2026-11-16", "2026-11-16"))
    (request,) = await desk.ask()
    assert await desk.controller.is_guard_gone(request) is False
    for approval_id, status in ((request.approval_id, "approved"), (killed, "kept")):
        await desk.controller.submit_decision(approval_id, "approve")
        decided = (await desk.controller.get(approval_id)).request
        assert (decided.status, decided.comment) == (status, "")


async def test_only_a_yes_to_the_same_arguments_is_kept(desk: Desk) -> None:
    killed = (await asked_by_guards(desk))[0].approval_id
    with pytest.raises(AgentsError, match="The guard that asked is gone, so the arguments"):
        await desk.controller.submit_decision(killed, "approve", arguments={"amount": 4})
    await desk.controller.submit_decision(killed, "deny")
    assert (await desk.controller.get(killed)).request.status == "denied"


async def test_a_guard_that_comes_back_may_use_the_yes_first(desk: Desk) -> None:
    killed = (await asked_by_guards(desk))[0].approval_id

    class Back(SqlDecisionBook):
        async def decide(self, choice: ApprovalChoice, record: ExecutionLog) -> bool:
            is_decided = await super().decide(choice, record)
            if choice.status == "approved":
                await desk.controller.consume(None, await desk.controller.get(choice.approval_id))
            return is_decided

    controller = desk.another(book=Back(desk.database, desk.logs))
    await controller.submit_decision(killed, "approve")
    record = await desk.controller.get(killed)
    assert (record.request.status, record.used_at is None) == ("approved", False)
