from dataclasses import fields

import pytest

from openai_responses_mcp.rehearsal.markers import OUTCOMES
from openai_responses_mcp.rehearsal.wire import ApiError
from tests.stand_in import bodies, markers, odd_answers, streams
from tests.stand_in.markers import Directives, FunctionCall, read_directives


def test_a_question_without_markers_is_left_alone() -> None:
    assert read_directives("What is [1]? ") == ("What is [1]? ", Directives())


def test_markers_add_up_and_leave_the_question() -> None:
    plain, asked = read_directives("[rehearse: status=429; retry_after=5] Why? [Rehearse: times=2;; search=no]")
    assert plain == "Why?"
    assert asked == Directives(status=429, retry_after="5", times=2, search=False)


def test_values_may_hold_equals_signs_semicolons_lines_and_balanced_brackets() -> None:
    _, asked = read_directives(r"[rehearse: text=a=b\; [c]\nd; header=X-Note: e]")
    assert asked.text == "a=b; [c]\nd"
    assert asked.header == ("x-note", "e")


def test_each_marker_with_a_call_is_one_function_call() -> None:
    _, asked = read_directives('[rehearse: call=add; args={"of": [1, 2]}][rehearse: call=stop]')
    assert asked.calls == (FunctionCall("add", '{"of": [1, 2]}'), FunctionCall("stop", "{}"))


@pytest.mark.parametrize(
    ("marker", "named"),
    [
        ("[rehearse: colour=red]", "'colour'"),
        ("[rehearse: status]", "'status'"),
        ("[rehearse: status=429", "closing bracket"),
        ("[rehearse: status=200]", "400 to 599"),
        ("[rehearse: status=many]", "'many'"),
        ("[rehearse: delay=-1]", "seconds"),
        ("[rehearse: delay=nan]", "seconds"),
        ("[rehearse: body=funny]", "truncated"),
        ("[rehearse: search=maybe]", "yes or no"),
        ("[rehearse: retry_after=明日]", "ASCII"),
        ("[rehearse: header=no colon]", "Name: value"),
        ("[rehearse: call=f; args={]", "JSON"),
        ("[rehearse: citations=100000]", "1000"),
    ],
)
def test_a_marker_that_makes_no_sense_is_refused_by_name(marker: str, named: str) -> None:
    with pytest.raises(ApiError) as refusal:
        read_directives(marker)
    assert refusal.value.status == 400
    assert named in refusal.value.message


def test_every_name_in_the_lists_is_implemented() -> None:
    assert {*markers.BODIES} == {*bodies.SPOILED_BODIES}
    assert {*markers.STREAMS} == {*streams.SPOILED_STREAMS}
    assert {None, *OUTCOMES, *markers.ODD_OUTCOMES} == {*odd_answers.ALL_OUTCOMES}
    assert {field.name for field in fields(Directives)} - {"calls"} == {*markers.ALL_KEYS} - {"call", "args"}
