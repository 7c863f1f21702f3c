import pytest

from openai_responses_mcp.domain.columns import columns, cut, pieces, wrapped


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


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("", 5, [""]),
        ("one two", 7, ["one two"]),
        ("one two three", 7, ["one two", "three"]),
        ("one elephant", 5, ["one", "eleph", "ant"]),
        ("elephants run", 5, ["eleph", "ants", "run"]),
        ("東京 は晴れ", 6, ["東京", "は晴れ"]),
    ],
)
def test_lines_are_broken_at_blanks(text: str, room: int, lines: list[str]) -> None:
    assert list(wrapped(text, room)) == lines
