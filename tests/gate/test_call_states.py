"""The states of a call and the moves between them, and how calls are saved and recorded."""

import json
from dataclasses import replace

import pytest

from openai_responses_mcp.gate.call_table import (
    LET_THROUGH,
    MAY_START,
    MOVES,
    CallEvent,
    CallState,
    CallTable,
    ForbiddenMove,
    HumanAnswer,
    Permit,
    RunRecords,
    next_state,
)
from openai_responses_mcp.gate.calls import BudgetQuestion, PlannedCall, ToolDescription
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.secrets.masking import Masking


def follows(state: CallState, event: CallEvent) -> str | None:
    try:
        return next_state(state, event).value
    except ForbiddenMove:
        return None


def test_a_move_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(ForbiddenMove, match=r"^A call that is done cannot start$"):
        next_state(CallState.DONE, CallEvent.START)


def test_only_a_decided_call_may_start() -> None:
    assert {state for state in CallState if follows(state, CallEvent.START)} == set(MAY_START)


def test_running_is_reached_by_starting_alone() -> None:
    ways = [event for row in MOVES.values() for event, state in row.items() if state is CallState.RUNNING]
    assert set(ways) == {CallEvent.START}


def test_a_call_in_an_ended_or_undecided_state_is_not_let_through() -> None:
    assert set(CallState) - LET_THROUGH == {
        CallState.UNKNOWN,
        CallState.PLANNED,
        CallState.HELD,
        CallState.ASKED,
        CallState.DONE,
        CallState.REFUSED,
        CallState.TOLD,
    }


# ---------------------------------------------------------------------------------------------------------------------
# Saved, and recorded


def test_states_and_events_keep_the_names_that_earlier_versions_saved_and_showed() -> None:
    for one in (*CallState, *CallEvent):
        assert one.value == one.name.lower()


def test_answers_and_questions_are_read_back_also_those_of_earlier_versions() -> None:
    asked = Reason("judge", "needs_human", {"text": "ask somebody"})
    answer, question = HumanAnswer(Permit("c1", "a", "d"), (asked,)), BudgetQuestion("calls per run r1", asked, 5)
    table = CallTable()
    call = table.move("c1", CallEvent.PLAN)
    call.answer, call.questions = answer, [question]
    saved = json.loads(json.dumps(table.saved()))
    read, old = CallTable(), CallTable()
    read.restore(saved, [])
    assert (read["c1"].answer, read["c1"].questions) == (answer, [question])
    # They saved sentences.
    saved[0]["answer"]["asked"] = saved[0]["questions"][0]["reason"] = "ask somebody"
    old.restore(saved, [])
    assert old["c1"].answer == replace(answer, asked=())
    assert old["c1"].questions == [replace(question, reason=Reason("budget", "needs_human"))]


def test_a_record_about_a_call_has_the_words_of_the_tool_before_the_reasons() -> None:
    records = RunRecords("r1", Masking({}))
    call = PlannedCall("c1", ToolDescription("pay", "function"), {})
    plain = records.about(call, "started", "started")
    assert (plain.reason, plain.who) == ("", "")
    hidden = Reason("result", "allow", {"hidden": 2})
    entry = records.about(call, "outcome", "completed", "paid", hidden)
    assert entry.reason == "paid; secrets in the result that were hidden from the client: 2"
