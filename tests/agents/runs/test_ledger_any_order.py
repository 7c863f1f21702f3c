"""The ledger against a model of its promises, in any order of events.

No order of events starts a call that was not decided, that started before, that differs from what was decided, that a
human denied, or whose turn has an undecided or refused call. Every other call starts. Between a pause and its end, a
human may deny calls with a text for the model, and change others.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.gate.audit.records import first_break
from openai_responses_mcp.gate.call_table import HumanAnswer, Permit
from openai_responses_mcp.gate.calls import GateDecision, PlannedCall, ToolCallRequest, ToolDescription
from openai_responses_mcp.gate.calls import Turn as PausedTurn
from openai_responses_mcp.gate.policy.rules import PolicyProfile
from openai_responses_mcp.gate.reasons import Decision, Reason
from openai_responses_mcp.gate.safety_gate import Judge
from tests.agents.fake_stores import FakeExecutionLogStore
from tests.agents.fakes import code_of
from tests.agents.runs.ledgers import audit_on, ledger_with

TOOL = ToolDescription("act", "function", definition_hash="as decided")
OTHER_TOOL = ToolDescription("act", "function", definition_hash="another")
REFUSED = "AGENTS-E-GATE-DENIED"
VERDICTS = st.sampled_from(["allow", "allow", "allow", "needs_human", "needs_human", "deny", "nonsense"])
TURNS = st.lists(VERDICTS, min_size=1, max_size=3)
# Counted from the newest call back; beyond them is a call that was never requested.
PLACES = st.sampled_from([0, 0, 0, 0, 0, 1, 2, 99])

GIVEN = (Reason("judge", "needs_human", {"risk": 1, "text": ""}),)
# What a human makes of a call, and what the judge says to it then: with a new reason to ask, a human is asked again.
CHANGES = {
    "changed to allow": {"verdict": "allow", "by": "a human"},
    "changed to ask": {"verdict": "needs_human", "by": "a human"},
    "changed to ask for a new reason": {"verdict": "needs_human", "by": "a human", "why": "something new"},
    "changed to deny": {"verdict": "deny", "by": "a human"},
    "changed to nonsense": {"verdict": "nonsense", "by": "a human"},
}
ANSWERS = st.sampled_from(["yes", "yes", "told", "told", *list(CHANGES)[:3], *list(CHANGES)])


class JudgeByArguments(Judge):
    """Says what the call itself asks for."""

    async def evaluate(self, agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        return GateDecision(cast(Decision, request.args["verdict"]), 1, str(request.args.get("why", "")))


@dataclass
class Turn:
    verdicts: dict[str, str] = field(default_factory=dict)
    is_broken_off: bool = False
    approved: set[str] = field(default_factory=set)

    @property
    def is_let_through(self) -> bool:
        asked = {call_id for call_id, verdict in self.verdicts.items() if verdict == "needs_human"}
        is_refused = bool({"deny", "nonsense"} & set(self.verdicts.values()))
        return not self.is_broken_off and not is_refused and asked <= self.approved


@dataclass
class Known:
    """What the model knows of a requested call."""

    turn: Turn
    args: dict[str, str]
    asked_for: dict[str, str]
    is_running: bool = False
    is_suspended: bool = False
    is_spent: bool = False
    is_done: bool = False
    is_told: bool = False

    @property
    def may_start(self) -> bool:
        return self.turn.is_let_through and not self.is_running and not self.is_suspended and not self.is_spent

    @property
    def has_had_its_start(self) -> bool:
        return self.is_running or self.is_suspended or self.is_spent

    @property
    def is_asked(self) -> bool:
        return self.args["verdict"] == "needs_human"


def refusal_of(turn: Turn) -> str:
    """The code with which the first refusal of the turn refuses all of it."""
    refused = [verdict for verdict in turn.verdicts.values() if verdict in ("deny", "nonsense")]
    return "" if not refused else REFUSED if refused[0] == "deny" else "AGENTS-E-GATE-EVAL"


class SideBySide:
    """The ledger and its model, given the same events."""

    def __init__(self) -> None:
        self.log = FakeExecutionLogStore()
        self.audit = audit_on(self.log)
        self.ledger: RunLedger = ledger_with(self.audit, JudgeByArguments())
        self.known: dict[str, Known] = {}

    async def check_log(self) -> None:
        logs = await self.log.query()
        assert first_break(logs) is None
        decided = {log.tool_call_id for log in logs if log.event == "decision" and log.decision != "deny"}
        assert {log.tool_call_id for log in logs if log.event == "started"} <= decided
        assert {log.tool_call_id for log in logs if log.event == "outcome"} <= decided
        told = {log.tool_call_id for log in logs if log.event == "told"}
        assert told == {call_id for call_id, known in self.known.items() if known.is_told}
        assert not told & {log.tool_call_id for log in logs if log.event == "started"}
        last = {log.tool_call_id: log.decision for log in logs if log.event.partition(":")[0] == "decision"}
        assert not [log for log in logs if log.event == "started" and last[log.tool_call_id] == "deny"]

    # -----------------------------------------------------------------------------------------------------------------

    def id_at(self, place: int, wanted: Callable[[Known], bool] = lambda known: True) -> str:
        """Those that are wanted come first, else most steps would be refused."""
        newest = list(reversed(self.known))
        first = [call_id for call_id in newest if wanted(self.known[call_id])]
        return [*first, *(call_id for call_id in newest if call_id not in first), "nobody"][min(place, len(newest))]

    async def judge(self, verdicts: list[str], repeated: int | None) -> None:
        ids = [f"c{len(self.known) + number}" for number in range(len(verdicts))]
        if repeated is not None:
            ids[-1] = self.id_at(repeated)
        await self.judged(
            [PlannedCall(call_id, TOOL, {"verdict": said}) for call_id, said in zip(ids, verdicts, strict=True)]
        )

    async def judged(self, calls: list[PlannedCall]) -> None:
        planned = Turn()
        for call in calls:
            known = self.known.get(call.call_id)
            args = {name: str(value) for name, value in call.args.items()}
            if known is None:
                self.known[call.call_id] = Known(planned, args, args)
                planned.verdicts[call.call_id] = str(call.args["verdict"])
            elif known.args == known.asked_for != args:
                planned.is_broken_off = True
                break
        expected = "AGENTS-E-RUNNER" if planned.is_broken_off else refusal_of(planned)
        assert await code_of(self.ledger.judge(None, calls, [TOOL])) == expected

    async def start(self, place: int, way: str) -> None:
        await self.start_of(self.id_at(place, lambda known: known.may_start), way)

    async def start_again(self, place: int) -> None:
        await self.start_of(self.id_at(place, lambda known: known.has_had_its_start), "as decided")

    async def start_of(self, call_id: str, way: str) -> None:
        known = self.known.get(call_id)
        args = dict(known.args) if known else {"verdict": "allow"}
        if way == "other arguments":
            args["more"] = "yes"
        tool = OTHER_TOOL if way == "another tool" else TOOL
        may_start = known is not None and known.may_start
        has_started = may_start and way == "as decided"
        assert await code_of(self.ledger.starting(call_id, tool, args)) == ("" if has_started else REFUSED)
        if known is not None and may_start:
            known.is_running, known.is_spent = has_started, not has_started

    async def finish(self, place: int, error: str | None) -> None:
        call_id = self.id_at(place, lambda known: known.is_running)
        known = self.known.get(call_id)
        runs = known is not None and known.is_running
        is_suspended = known is not None and known.is_suspended
        expected = "" if runs or is_suspended else REFUSED
        assert await code_of(self.ledger.finished(call_id, "out", error)) == expected
        if known is not None and runs:
            known.is_running, known.is_spent, known.is_done = False, True, True
            assert self.ledger.result_of(call_id) is not None

    async def suspend(self, place: int) -> None:
        call_id = self.id_at(place, lambda known: known.is_running)
        known = self.known.get(call_id)
        goes = known is not None and (known.is_running or known.is_suspended)
        assert await code_of(self.ledger.suspend(call_id)) == ("" if goes else REFUSED)
        if known is not None and goes:
            known.is_running, known.is_suspended = False, True

    async def pause_and_resume(self, all_of_it: bool, left_out: int) -> None:
        asked = self.asked
        approved = {call_id for call_id in asked if all_of_it or call_id != self.id_at(left_out)}
        await self.read_back([self.answer(call_id) for call_id in sorted(approved)])
        if approved != set(asked):
            return
        for call_id, known in self.known.items():
            known.turn.approved |= {call_id} & approved
            known.is_suspended = False

    async def decide_again(self, said: list[str]) -> None:
        """A human says something about every call that waits for one; not all of it is a plain yes."""
        asked = self.asked
        answers = dict(zip(asked, said * len(asked), strict=False))
        if set(answers.values()) <= {"yes"}:
            return
        waiting = {
            call_id: known
            for call_id, known in self.known.items()
            if self.waits(known) and not known.turn.is_let_through
        }
        await self.read_back([self.answer(call_id, answers[call_id]) for call_id in asked])
        calls = tuple(PlannedCall(call_id, TOOL, known.asked_for) for call_id, known in waiting.items())
        again = Turn(approved=set().union(*(known.turn.approved for known in waiting.values())))
        for call_id, known in waiting.items():
            known.turn = self.answered(call_id, known, answers.get(call_id, ""), again)
        expected = refusal_of(again)
        assert await code_of(self.ledger.take_up([PausedTurn(None, calls, (TOOL,))])) == expected
        if not expected and again.is_let_through:
            for known in self.known.values():
                known.is_suspended = False

    def answered(self, call_id: str, known: Known, said: str, again: Turn) -> Turn:
        """The turn that the call belongs to from now on."""
        if said == "told":
            known.is_told = known.is_spent = True
            return Turn(is_broken_off=True)
        if said in CHANGES:
            known.args = CHANGES[said]
        if said == "yes" or (said in CHANGES and not known.args.get("why")):
            again.approved.add(call_id)
        else:
            again.approved -= {call_id} if said else set()
        again.verdicts[call_id] = known.args["verdict"]
        return again

    @property
    def asked(self) -> dict[str, Known]:
        return {
            call_id: known
            for call_id, known in self.known.items()
            if known.is_asked
            and self.waits(known)
            and not known.turn.is_let_through
            and call_id not in known.turn.approved
        }

    def answer(self, call_id: str, said: str = "yes") -> HumanAnswer:
        permit = Permit.of(PlannedCall(call_id, TOOL, self.known[call_id].args))
        return HumanAnswer(permit, GIVEN, denial_for_model="no" if said == "told" else None, changed=CHANGES.get(said))

    async def read_back(self, answers: list[HumanAnswer]) -> None:
        saved = json.loads(json.dumps(self.ledger.saved()))
        # What was noted of a run is written before the run is saved.
        await self.audit.settle("r1")
        self.ledger = ledger_with(self.audit, JudgeByArguments())
        self.ledger.restore(saved, answers)

    def waits(self, known: Known) -> bool:
        """Whether its turn was decided as a whole, and nothing of it refused."""
        verdicts = set(known.turn.verdicts.values())
        return not known.turn.is_broken_off and not {"deny", "nonsense"} & verdicts

    async def look(self, place: int) -> None:
        call_id = self.id_at(place)
        known = self.known.get(call_id)
        goes = known is not None and (known.may_start or known.is_running or known.is_suspended or known.is_done)
        assert self.ledger.is_waiting(call_id) == (not goes)


JUDGE = st.tuples(st.just("judge"), TURNS, st.sampled_from([None, None, None, 0, 1]))
START = st.tuples(st.just("start"), PLACES, st.sampled_from([*["as decided"] * 4, "other arguments", "another tool"]))
START_AGAIN = st.tuples(st.just("start_again"), st.sampled_from([0, 0, 1, 2]))
EVENTS = st.one_of(
    JUDGE,
    START,
    START_AGAIN,
    st.tuples(st.just("finish"), PLACES, st.sampled_from([None, "failed"])),
    st.tuples(st.just("suspend"), PLACES),
    st.tuples(st.just("pause_and_resume"), st.booleans(), PLACES),
    st.tuples(st.just("decide_again"), st.lists(ANSWERS, min_size=1, max_size=3)),
    st.tuples(st.just("look"), PLACES),
)
# By chance alone hardly any call would finish, or be started a second time.
STARTED = [("judge", ["allow"], None), ("start", 0, "as decided")]
LIVES = st.sampled_from(
    [
        STARTED,
        [*STARTED, ("finish", 0, None)],
        [*STARTED, ("suspend", 0)],
        [*STARTED, ("suspend", 0), ("pause_and_resume", True, 0), ("start", 0, "as decided"), ("finish", 0, None)],
        [("judge", ["needs_human", "allow"], None)],
        [("judge", ["needs_human"], None), ("pause_and_resume", True, 0), ("start", 0, "as decided")],
        [("judge", ["allow", "needs_human"], None), ("decide_again", ["told"])],
    ]
)
ORDERS = st.lists(st.one_of(EVENTS.map(lambda event: [event]), EVENTS.map(lambda event: [event]), LIVES), min_size=10)


@given(ORDERS)
def test_no_order_of_events_starts_what_may_not_start(orders: list[list[tuple[Any, ...]]]) -> None:
    asyncio.run(run(orders))


async def run(orders: list[list[tuple[Any, ...]]]) -> None:
    both = SideBySide()
    for name, *facts in chain.from_iterable(orders):
        await getattr(both, name)(*facts)
    await both.check_log()
