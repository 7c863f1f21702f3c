"""The door of the desk: one secret, one browser, once."""

import pytest

from openai_responses_mcp.desk.page.access import Entrance


def test_the_secret_lets_one_in_once() -> None:
    entrance = Entrance()
    session = entrance.enter(entrance.link_secret)
    assert session is not None
    assert entrance.knows(session)
    assert entrance.enter(entrance.link_secret) is None
    assert entrance.knows(session)


@pytest.mark.parametrize("guess", ["", "x", "\ud800", "é"])
def test_a_wrong_secret_lets_nobody_in_and_uses_nothing_up(guess: str) -> None:
    entrance = Entrance()
    assert entrance.enter(guess) is None
    assert not entrance.is_used
    assert entrance.enter(entrance.link_secret)


def test_nobody_is_known_before_anybody_came_in() -> None:
    entrance = Entrance()
    assert not entrance.knows(None)
    assert not entrance.knows("")
    assert not entrance.knows(Entrance().enter("") or entrance.link_secret)


def test_what_it_gives_away_is_different_each_time_and_from_each_other() -> None:
    one, other = Entrance(), Entrance()
    given = [value for e in (one, other) for value in (e.link_secret, e.room, e.page_token, e.enter(e.link_secret))]
    assert len(set(given)) == 8


def test_only_the_token_of_the_page_is_the_token_of_the_page() -> None:
    entrance = Entrance()
    assert entrance.is_from_the_page(entrance.page_token)
    assert not entrance.is_from_the_page(None)
    assert not entrance.is_from_the_page("")
    assert not entrance.is_from_the_page(Entrance().page_token)
