from dataclasses import fields

import pytest

from openai_responses_mcp.rehearsal import answers, markers
from openai_responses_mcp.rehearsal.markers import Wishes, read_wishes
from openai_responses_mcp.rehearsal.wire import ApiError


def test_a_question_without_markers_is_left_alone() -> None:
    assert read_wishes("What is [1]? ") == ("What is [1]? ", Wishes())


def test_markers_add_up_and_leave_the_question() -> None:
    plain, wishes = read_wishes("[rehearse: status=429; delay=5] Why? [Rehearse: times=2;; search=no]")
    assert plain == "Why?"
    assert wishes == Wishes(status=429, delay=5.0, times=2, search=False)


def test_values_may_hold_equals_signs_semicolons_lines_and_balanced_brackets() -> None:
    _, wishes = read_wishes(r"[rehearse: text=a=b\; [c]\nd; search=yes]")
    assert wishes == Wishes(text="a=b; [c]\nd", search=True)


@pytest.mark.parametrize(
    ("marker", "named"),
    [
        ("[rehearse: colour=red]", "'colour'. Known keys: status, "),
        ("[rehearse: status]", "'status'"),
        ("[rehearse: status=429", "closing bracket"),
        ("[rehearse: status=200]", "400 to 599"),
        ("[rehearse: status=many]", "'many'"),
        ("[rehearse: delay=-1]", "seconds"),
        ("[rehearse: delay=nan]", "seconds"),
        ("[rehearse: outcome=funny]", "refusal"),
        ("[rehearse: search=maybe]", "yes or no"),
        ("[rehearse: citations=100000]", "1000"),
    ],
)
def test_a_marker_that_makes_no_sense_is_refused_by_name(marker: str, named: str) -> None:
    with pytest.raises(ApiError) as refusal:
        read_wishes(marker)
    assert refusal.value.status == 400
    assert named in refusal.value.message


def test_every_name_in_the_lists_is_implemented() -> None:
    assert {None, *markers.OUTCOMES} == set(answers.OUTCOMES)
    assert {field.name for field in fields(Wishes)} == {*markers.KEYS}
