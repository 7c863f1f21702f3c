import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from openai_responses_mcp.server.tasks import LONGEST_ID, NotATask, TaskFacts, TaskIds

KEY = "sk-made-up-1234567890"
IDS = TaskIds(KEY)
USUAL = TaskFacts("resp_" + "0a" * 24, "answer_detailed", 1_794_789_000_000, ("example.com", "例え.jp"))
FOREIGN = "no task of this server has such an id"
CHANGED = "its id was changed, or made with another API key"

short_texts = st.text(max_size=12)
facts = st.builds(
    TaskFacts, short_texts, short_texts, st.integers(0, 2**53), st.none() | st.lists(st.text(), max_size=20).map(tuple)
)


def made(wanted: TaskFacts = USUAL) -> str:
    task_id = IDS.maybe_made(wanted)
    assert task_id is not None
    return task_id


def refusal(task_id: str, ids: TaskIds = IDS) -> str:
    with pytest.raises(NotATask) as caught:
        ids.read(task_id)
    return str(caught.value)


@given(facts)
@example(TaskFacts("\ud800", "", 0))
def test_the_facts_in_a_task_id_can_be_read_back(wanted: TaskFacts) -> None:
    read = IDS.read(made(wanted))
    assert read in (wanted, wanted._replace(domains=None))


@given(facts)
def test_an_id_is_short_and_goes_into_a_url_as_it_is(wanted: TaskFacts) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]+", made(wanted))
    assert len(made(wanted)) <= LONGEST_ID


@given(facts, st.data())
def test_an_id_with_any_character_changed_is_refused(wanted: TaskFacts, data: st.DataObject) -> None:
    task_id = made(wanted)
    place = data.draw(st.integers(0, len(task_id) - 1))
    other = data.draw(st.sampled_from("AZaz09-_.=+/ é"))
    assume(task_id[place] != other)
    assert refusal(task_id[:place] + other + task_id[place + 1 :])


@given(st.text())
def test_a_made_up_id_is_refused(text: str) -> None:
    assert refusal(text) == FOREIGN
    assert refusal(f"task_{text}")


@given(st.text(alphabet="abc0123456789", min_size=1))
def test_the_id_of_another_key_is_refused(key: str) -> None:
    assert refusal(made(), TaskIds(key)) == CHANGED


def test_a_truncated_or_extended_task_id_is_refused() -> None:
    for ending in ("", "=", "==", "A", "AAAA", "\n"):
        assert refusal(made()[:-1] + ending) in (CHANGED, FOREIGN)
        if ending:
            assert refusal(made() + ending) in (CHANGED, FOREIGN)


def test_every_server_with_the_key_reads_the_id() -> None:
    assert TaskIds(f" {KEY}\n").read(made()) == USUAL


def test_domains_that_do_not_fit_are_left_to_the_api() -> None:
    many = USUAL._replace(domains=tuple(f"number-{number}.example.com" for number in range(50)))
    assert IDS.read(made(many)) == many._replace(domains=None)


def test_there_is_no_id_for_what_cannot_fit() -> None:
    assert IDS.maybe_made(USUAL._replace(response_id="r" * 400)) is None


def test_an_id_longer_than_any_of_ours_is_not_even_decoded() -> None:
    assert refusal("task_" + "A" * LONGEST_ID) == FOREIGN
