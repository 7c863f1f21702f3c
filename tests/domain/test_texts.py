"""What a text may hold, depending on where it goes, and how wide it is."""

import json

from openai_responses_mcp.domain.texts import (
    columns,
    cut,
    harmless,
    harmless_json,
    one_line,
    pieces,
    revealed,
    revealed_json,
    visible,
    without_surrogates,
    wrapped,
)

UNTOUCHED = [
    "東京\u3000大阪",
    "10\u00a0km, 1\u202f000",
    "👩\u200d💻",
    "می\u200cخواهم",
    "a\u200fb\u200e",
    "one\ttwo\nthree",
    "",
]


def test_a_text_without_harm_in_it_is_left_as_it_is() -> None:
    for text in UNTOUCHED:
        assert visible(text) == harmless(text) == without_surrogates(text) == text


def test_control_characters_are_shown_in_a_terminal_and_dropped_elsewhere() -> None:
    cases: list[tuple[str, str, str]] = [
        ("\x1b[2J", "\\x1b[2J", "[2J"),
        ("\x1b]8;;http://x\x07y", "\\x1b]8;;http://x\\x07y", "]8;;http://xy"),
        ("a\u009b31mb", "a\\x9b31mb", "a31mb"),
        ("a\u202eb\u2069", "a\\u202eb\\u2069", "ab"),
    ]
    for text, seen, kept in cases:
        assert visible(text) == seen
        assert harmless(text) == kept


def test_half_a_surrogate_pair_becomes_the_replacement_character() -> None:
    assert without_surrogates("a\ud83d b") == "a\ufffd b"
    assert visible("\ude00") == harmless("\ude00") == one_line("\ude00") == "\ufffd"


def test_a_message_stays_on_its_line() -> None:
    assert one_line("a\nb\tc\x1b[0m\u2028d\r\n東京\u3000") == "a b c [0m d  東京\u3000"


def test_one_character_that_does_harm_is_enough_to_be_replaced() -> None:
    cases: list[str] = ["\x00", "\t", "\n", "\r", "\x7f", "\x9f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2069"]
    for harm in cases:
        assert one_line(f"東京{harm}b") == "東京 b"


def test_visible_characters_are_shown_to_the_approver_unchanged() -> None:
    cases: list[str] = ["", "plain", "line\nline", "東京\u3000大阪、ﾃｽﾄ", "é e\u0301 ‹x› 😀", "a\\b"]
    for text in cases:
        assert revealed(text) == text


def test_invisible_characters_are_shown_to_the_approver_as_escapes() -> None:
    cases: list[tuple[str, str]] = [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\u202eb\u2066c\u200fd", "a\\u202eb\\u2066c\\u200fd"),
        ("a\u200bb\u200dc\u2060d\ufeffe\u00adf", "a\\u200bb\\u200dc\\u2060d\\ufeffe\\xadf"),
        ("a\u00a0b\u2003c\u2028d", "a\\xa0b\\u2003c\\u2028d"),
        ("a\U000e0041b\U000e0100c", "a\\U000e0041b\\U000e0100c"),
        ("a\ud83d b\ue000", "a\\ud83d b\\ue000"),
    ]
    for text, seen in cases:
        assert revealed(text) == seen
        written = revealed_json(json.dumps(text, ensure_ascii=False))
        assert written.isprintable()
        assert json.loads(written) == text


def test_json_stays_readable_where_everything_can_be_seen() -> None:
    text = json.dumps({"東京": ["é\u202e", 1]}, ensure_ascii=False, indent=1)
    assert revealed_json(text) == text.replace("\u202e", "\\u202e")


def test_harmless_json_means_the_same_and_steers_nothing() -> None:
    value = "東京\u3000\u202e\x9b31m\x7f\x1b[2J\n👩\u200d💻"
    written = harmless_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(written) == value
    assert harmless(written) == written
    assert "東京\u3000" in written


def test_east_asian_letters_take_two_columns() -> None:
    cases: list[tuple[str, int]] = [
        ("", 0),
        ("東京", 4),
        ("　", 2),
        ("😀", 2),
    ]
    for text, wide in cases:
        assert columns(text) == wide


def test_a_text_is_cut_to_the_room_it_has() -> None:
    cases: list[tuple[str, int, str]] = [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("東京都", 5, "東京…"),
        ("東京都", 4, "東…"),
        ("a東京", 3, "a…"),
    ]
    for text, room, shown in cases:
        assert cut(text, room) == shown
        assert columns(cut(text, room)) <= room


def test_pieces_lose_nothing() -> None:
    assert list(pieces("東京 x東京", 5)) == ["東京 ", "x東京"]
    assert list(pieces("", 5)) == [""]


def test_lines_are_broken_at_blanks_and_between_wide_letters() -> None:
    cases: list[tuple[str, int, list[str]]] = [
        ("", 5, [""]),
        ("one two three", 7, ["one two", "three"]),
        ("one elephant", 5, ["one", "eleph", "ant"]),
        ("elephants run", 5, ["eleph", "ants", "run"]),
        ("東京 は晴れ", 6, ["東京", "は晴れ"]),
        ("東京は晴れです", 7, ["東京は", "晴れで", "す"]),
        ("東京です。晴れ", 8, ["東京で", "す。晴れ"]),
        ("今日「晴れ」", 6, ["今日", "「晴", "れ」"]),
        ("値--stdio値", 9, ["値--stdio", "値"]),
    ]
    for text, room, lines in cases:
        assert list(wrapped(text, room)) == lines
