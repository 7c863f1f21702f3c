"""Answers other than a plain yes: a denial for the model, changed arguments, a yes to a budget."""

import json
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.gate.budgets import Limit, SessionBudget
from openai_responses_mcp.gate.call_table import HumanAnswer, Permit
from openai_responses_mcp.gate.calls import ChangedCall, GateDecision, PlannedCall, ToolDescription, Turn
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyGate
from tests.agents.fake_stores import FakeBudgetStore, FakeExecutionLogStore, FakePolicyStore
from tests.agents.fakes import ASK, FakeClock, FakeJudge, code_of
from tests.agents.runs.ledgers import MASKING, audit_on

SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}}, "additionalProperties": False}
PAY = ToolDescription("pay", "function", parameters=SCHEMA, definition_hash="d1")
LOOK = ToolDescription("look", "function", definition_hash="d2")
CALL = PlannedCall("c1", PAY, {"amount": 5})
OTHER = PlannedCall("c2", LOOK, {"what": "here"})


class Room:
    """A judge who asks about payments, budgets, and the ledgers of one run before and after its pauses."""

    def __init__(self, *limits: Limit) -> None:
        self.judge = FakeJudge()
        self.judge.on("pay", ASK)
        self.log = FakeExecutionLogStore()
        self.budgets = FakeBudgetStore()
        self.limits = limits
        self.audit = audit_on(self.log)
        self.guard = self.new_guard()

    def new_guard(self) -> RunLedger:
        budget = SessionBudget(self.budgets, FakeClock(), "r1", lambda: self.limits)
        gate = SafetyGate(self.judge, FakePolicyStore())
        return RunLedger("r1", gate, self.audit, MASKING, GateContext("fast"), budget)

    async def judged(self, *calls: PlannedCall) -> None:
        await self.guard.judge(None, calls, [PAY, LOOK])

    async def answered(self, *answers: HumanAnswer, calls: tuple[PlannedCall, ...] = (CALL, OTHER)) -> None:
        """The run is saved, read back with these answers, and goes on."""
        saved = json.loads(json.dumps(self.guard.saved()))
        await self.audit.settle("r1")
        self.guard = self.new_guard()
        self.guard.restore(saved, answers)
        await self.guard.take_up([Turn(None, calls, (PAY, LOOK))])

    async def events(self) -> list[str]:
        await self.audit.settle("r1")
        return [f"{log.tool_call_id} {log.event} {log.decision}" for log in await self.log.query()]


def said_by_judge(text: str) -> Reason:
    return Reason("judge", "needs_human", {"risk": 1, "text": text})


def answer(call: PlannedCall = CALL, **said: Any) -> HumanAnswer:
    return HumanAnswer(Permit.of(call), (said_by_judge("ask somebody"),), **said)


async def test_a_denial_sent_to_the_model_stops_its_call_and_no_other() -> None:
    room = Room()
    await room.judged(CALL, OTHER)
    await room.answered(answer(denial_for_model="no"))
    assert room.guard.denial_for_model("c1") == "no"
    assert room.guard.denial_for_model("c2") is None
    assert room.guard.is_answered(CALL)
    assert room.guard.is_waiting("c1")
    await room.guard.judge(None, [CALL, OTHER], [PAY, LOOK])
    await room.guard.starting("c2", LOOK, OTHER.args)
    assert await code_of(room.guard.starting("c1", PAY, CALL.args)) == "AGENTS-E-GATE-DENIED"
    assert await room.events() == [
        "c1 decision needs_human",
        "c2 decision allow",
        "c1 told deny",
        "c2 decision:2 allow",
        "c2 started started",
        "c1 refused deny",
    ]


async def test_a_changed_call_starts_as_it_was_changed_and_not_as_it_was_made() -> None:
    room = Room()
    await room.judged(CALL, OTHER)
    await room.answered(answer(changed={"amount": 3}, shown={"amount": 5}))
    note = 'A human changed the arguments of this call:\n"amount": 5 is now 3'
    assert room.guard.changed("c1") == ChangedCall({"amount": 3}, note)
    assert room.guard.as_changed(CALL) == PlannedCall("c1", PAY, {"amount": 3})
    assert not room.guard.is_answered(CALL)
    assert room.guard.is_answered(room.guard.as_changed(CALL))
    await room.guard.starting("c1", PAY, {"amount": 3})
    assert await code_of(room.guard.starting("c2", LOOK, {"what": "there"})) == "AGENTS-E-GATE-DENIED"


async def test_a_changed_call_is_known_as_such_after_the_next_pause() -> None:
    room = Room()
    await room.judged(CALL)
    await room.answered(answer(changed={"amount": 3}), calls=(CALL,))
    before, saved = room.guard, json.loads(json.dumps(room.guard.saved()))
    room.guard = room.new_guard()
    room.guard.restore(saved, [])
    assert before.changed("c1") is not None
    assert room.guard.changed("c1") == before.changed("c1")
    assert room.guard.may_start(before.as_changed(CALL))


async def test_a_changed_call_that_does_not_fit_is_not_decided() -> None:
    room = Room()
    await room.judged(CALL)
    changed = answer(changed={"amount": "‹much›"})
    assert await code_of(room.answered(changed, calls=(CALL,))) == "AGENTS-E-APPROVAL-INVALID"
    assert room.guard.refusal is not None
    assert room.guard.is_waiting("c1")


async def test_until_the_answers_take_effect_nothing_starts() -> None:
    room = Room()
    await room.judged(CALL, OTHER)
    saved = room.guard.saved()
    room.guard = room.new_guard()
    room.guard.restore(saved, [answer(denial_for_model="no")])
    assert room.guard.is_answered(OTHER)
    assert room.guard.denial_for_model("c1") is None
    assert room.guard.is_waiting("c2")
    assert await code_of(room.guard.starting("c2", LOOK, OTHER.args)) == "AGENTS-E-GATE-DENIED"


async def test_a_saved_denial_keeps_the_name_of_earlier_versions() -> None:
    room = Room()
    await room.judged(CALL, OTHER)
    await room.answered(answer(denial_for_model="no"))
    saved = json.loads(json.dumps(room.guard.saved()))
    assert [call["answer"] and call["answer"]["told"] for call in saved["calls"]] == ["no", None]
    room.guard = room.new_guard()
    room.guard.restore(saved, [])
    assert room.guard.denial_for_model("c1") == "no"


async def test_a_call_that_the_engine_forgot_is_not_let_through() -> None:
    room = Room()
    await room.judged(CALL, OTHER)
    await room.answered(answer(denial_for_model="no"), calls=(CALL,))
    assert room.guard.is_waiting("c2")
    assert await code_of(room.guard.starting("c2", LOOK, OTHER.args)) == "AGENTS-E-GATE-DENIED"


@pytest.mark.parametrize(("reason", "asks"), [("it is late", False), ("it is late; ask somebody", True)])
async def test_a_changed_call_asks_again_only_for_a_reason_that_was_not_shown_before(reason: str, asks: bool) -> None:
    room = Room()
    await room.judged(CALL)
    room.judge.on("pay", GateDecision("needs_human", 1, reason))
    given = HumanAnswer(
        Permit.of(CALL), tuple(map(said_by_judge, ["ask somebody", "it is late"])), changed={"amount": 3}, attempt=2
    )
    await room.answered(given, calls=(CALL,))
    assert [waiting.attempt for waiting in room.guard.to_approve] == ([3] if asks else [])
    assert room.guard.is_waiting("c1") == asks


async def test_a_denial_sent_to_the_model_stays_when_its_turn_is_decided_again() -> None:
    room = Room()
    more = PlannedCall("c3", PAY, {"amount": 7})
    await room.judged(CALL, more)
    room.judge.on("pay", GateDecision("needs_human", 1, "quite another reason"))
    await room.answered(answer(denial_for_model="no"), answer(more, changed={"amount": 6}), calls=(CALL, more))
    assert [(waiting.call.call_id, waiting.attempt) for waiting in room.guard.to_approve] == [("c3", 2)]
    again = HumanAnswer(
        Permit.of(room.guard.as_changed(more)), (said_by_judge("quite another reason"),), 2, changed={"amount": 4}
    )
    await room.answered(again, calls=(CALL, more))
    assert room.guard.denial_for_model("c1") == "no"
    assert room.guard.may_start(replace(more, args={"amount": 4}))
    assert (await room.events()).count("c1 told deny") == 1


@pytest.mark.parametrize(("reason", "goes_on"), [("ask somebody", True), ("quite another reason", False)])
async def test_a_call_that_waits_for_an_inner_run_goes_on_once_no_approval_is_open(reason: str, goes_on: bool) -> None:
    room = Room()
    await room.judged(OTHER)
    await room.guard.starting("c2", LOOK, OTHER.args)
    await room.guard.suspend("c2")
    await room.judged(CALL)
    room.judge.on("pay", GateDecision("needs_human", 1, reason))
    await room.answered(answer(changed={"amount": 3}), calls=(CALL,))
    assert room.guard.may_start(OTHER) is goes_on


async def test_a_secret_that_a_human_put_into_a_call_is_not_shown_in_its_output() -> None:
    room = Room()
    login = ToolDescription("pay", "function", parameters={"properties": {"password": {"type": "string"}}})
    call = PlannedCall("c1", login, {"password": "open sesame"})
    await room.judged(call)
    await room.answered(answer(call, changed={"password": "swordfish"}), calls=(call,))
    await room.guard.starting("c1", login, {"password": "swordfish"})
    await room.guard.finished("c1", "swordfish fits, open sesame did not")
    [result] = room.guard.results
    assert "fits" in str(result)
    assert "swordfish" not in str(result)
    assert "sesame" not in str(result)


async def test_an_unchanged_approved_call_stays_approved_whatever_the_judge_says_now() -> None:
    room = Room()
    more = PlannedCall("c3", PAY, {"amount": 7})
    await room.judged(CALL, more)
    room.judge.on("pay", GateDecision("needs_human", 1, "quite another reason"))
    await room.answered(answer(), answer(more, denial_for_model="no"), calls=(CALL, more))
    assert room.guard.to_approve == []
    assert room.guard.may_start(CALL)


async def test_a_yes_to_a_budget_is_kept_and_a_no_is_not() -> None:
    room = Room(Limit(1, "calls", "run"))
    room.judge.on("pay", GateDecision("allow", 1, "fine"))
    await room.judged(OTHER, CALL)
    assert [waiting.decision.reason for waiting in room.guard.to_approve] == ["the budget of 1 call per run is used up"]
    await room.answered(answer())
    assert await room.budgets.read("calls per run r1") == (0, 2)
    await room.guard.starting("c2", LOOK, OTHER.args)
    await room.guard.starting("c1", PAY, CALL.args)
    assert await room.budgets.read("calls per run r1") == (2, 2)
    last = PlannedCall("c4", LOOK, {})
    await room.judged(last)
    await room.answered(answer(last, denial_for_model="no"), calls=(last,))
    assert await room.budgets.read("calls per run r1") == (2, 2)


async def test_a_call_that_cannot_be_counted_does_not_go_on() -> None:
    room = Room(Limit(5, "calls", "run"), Limit(5, "tokens", "run"))
    await room.judged(OTHER)
    room.budgets.is_broken = True
    assert await code_of(room.guard.starting("c2", LOOK, OTHER.args)) == "AGENTS-E-LOG-STORE"
    assert await code_of(room.guard.used_tokens(5)) == "AGENTS-E-LOG-STORE"
    assert room.guard.refusal is not None


async def test_a_table_of_an_earlier_version_is_read() -> None:
    room = Room()
    await room.judged(CALL, OTHER)
    saved = json.loads(json.dumps(room.guard.saved()))
    for call in saved["calls"]:
        for name in ("attempt", "answer", "changed", "questions"):
            del call[name]
    room.guard = room.new_guard()
    room.guard.restore(saved, [answer()])
    assert room.guard.may_start(CALL)
    assert room.guard.may_start(OTHER)
    assert [call["attempt"] for call in json.loads(json.dumps(room.guard.saved()))["calls"]] == [1, 1]
