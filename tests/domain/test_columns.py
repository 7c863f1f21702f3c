import pytest

from openai_responses_mcp.domain.columns import columns, cut, pieces


@pytest.mark.parametrize(
    ("text", "wide"), [("", 0), ("abc", 3), ("東京", 4), ("ｱﾞ", 2), ("Ａ", 2), ("　", 2), ("é", 1), ("😀", 2)]
)
def test_east_asian_letters_take_two_columns(text: str, wide: int) -> None:
    assert columns(text) == wide


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("東京", 4, "東京"),
        ("東京都", 5, "東京…"),
        ("東京都", 4, "東…"),
        ("a東京", 3, "a…"),
    ],
)
def test_a_text_is_cut_to_the_room_it_has(text: str, room: int, shown: str) -> None:
    assert cut(text, room) == shown
    assert columns(cut(text, room)) <= room


def test_pieces_lose_nothing() -> None:
    assert list(pieces("東京 x東京", 5)) == ["東京 ", "x東京"]
    assert list(pieces("", 5)) == [""]
