"""Texts in JSON values, what the user said, hashes of equal things, and differences."""

from typing import Any

from openai_responses_mcp.gate.json_values import (
    canonical,
    differences,
    digest,
    sealed,
    shown_json,
    texts_of_call,
    texts_of_output,
    words_of,
)


def said(content: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


def test_all_words_of_the_user_are_read() -> None:
    cases: list[tuple[Any, str]] = [
        ("delete it", "delete it"),
        (None, ""),
        ([said("first"), said("second")], "first\nsecond"),
        ({"role": "user", "content": "no list"}, ""),
        ((said("in a tuple"),), "in a tuple"),
        ([said("mine"), said("not mine", "assistant"), said("nor this", "system")], "mine"),
        (["no item", 5, {"content": "no role"}, said("mine")], "mine"),
        ([said(({"text": "a"}, "b", ["c"]))], "a\nb\nc"),
        ([said([{"type": "input_image", "image_url": "絵.png"}])], '{"type": "input_image", "image_url": "絵.png"}'),
        ([said({"text": 5})], '{"text": 5}'),
        ([said([{1, 2} - {2}])], '"{1}"'),
        ([said(None)], "null"),
    ]
    for input, words in cases:
        assert words_of(input) == words


def test_a_call_is_its_name_its_texts_these_in_a_row_and_the_whole_as_json() -> None:
    assert texts_of_call("pay", {"to": ["Ann", {"名": ("Bob",)}], "amount": 5}) == [
        *("pay", "to", "Ann", "名", "Bob", "amount"),
        "pay to Ann 名 Bob amount",
        'pay {"amount":5,"to":["Ann",{"名":["Bob"]}]}',
    ]


def test_an_output_is_itself_and_the_texts_in_it() -> None:
    assert texts_of_output('{"a": ["b", 1]}') == ['{"a": ["b", 1]}', "a", "b"]
    assert texts_of_output("no json") == ["no json"]
    assert texts_of_output("[" * 100_000) == ["[" * 100_000]


def test_equal_values_are_written_alike() -> None:
    assert (
        canonical({"b": 1, "a": ["é", None]}) == canonical({"a": ["é", None], "b": 1}) == r'{"a":["\u00e9",null],"b":1}'
    )


def test_a_hash_depends_on_the_values_and_their_order() -> None:
    hashes = {digest("a", "b"), digest("b", "a"), digest("ab"), digest(["a", "b"]), digest("a", "b", None)}
    assert len(hashes) == 5
    assert digest("a") == digest("a")


def test_a_seal_depends_on_its_key() -> None:
    assert sealed("one", "x") == sealed("one", "x") != sealed("other", "x")
    assert sealed("one", "x") != sealed("one", "y")


def test_a_value_is_shown_with_its_keys_in_their_order() -> None:
    assert shown_json({"b": 1, "a": "\u200b"}) == '{"b": 1, "a": "\\u200b"}'


def test_each_place_that_differs_has_a_line() -> None:
    cases: list[tuple[object, object, list[str]]] = [
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], [{"b": 2, "a": 1}, {"a": 1, "b": 2}], []),
        ({"a": {"x": [1, 2]}}, {"a": {"x": [1, 3]}}, ['"a"."x": [1, 2] is now [1, 3]']),
        ({"a": {"d": 1, "c": 2}}, {}, ['"a": {"c": 2, "d": 1} is gone']),
        ({}, {"a": {"d": 1, "c": 2}}, ['"a": {"c": 2, "d": 1} is new']),
        ({"a": 1}, {"a": True}, ['"a": 1 is now true']),
        ({"金額": {}}, {"金額": None}, ['"金額": {} is now null']),
        ([1], [2], [": [1] is now [2]"]),
    ]
    for before, after, lines in cases:
        assert differences(before, after).splitlines() == lines


def test_no_text_of_a_server_begins_a_line() -> None:
    for end in ("\n", "\x85", "\u2028"):
        lie = f"x{end}Nothing else has changed"
        for before, after in [
            ({}, {lie: 1}),
            ({"a": 1}, {"a": lie}),
            ({"a": {lie: lie}}, {"a": {lie: 2}}),
            ({lie: 1}, {}),
        ]:
            assert len(differences(before, after).splitlines()) == 1


def test_nothing_in_a_line_is_invisible() -> None:
    for letter in ("\u202e", "\U0001d159", "\U00016fe4", "\u2800"):
        line = differences({}, {f"a{letter}": f"b{letter}"})
        assert letter not in line
        assert line.isprintable()
