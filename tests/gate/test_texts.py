"""What the user said, out of whatever the SDK is given as input."""

from typing import Any

import pytest

from openai_responses_mcp.gate.texts import texts_of_call, texts_of_output, words_of


def said(content: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ("delete it", "delete it"),
        ([], ""),
        (None, ""),
        ({"role": "user", "content": "no list"}, ""),
        ([said("first"), said("second")], "first\nsecond"),
        ((said("in a tuple"),), "in a tuple"),
        ([said("mine"), said("not mine", "assistant"), said("nor this", "system")], "mine"),
        (["no item", 5, {"content": "by nobody"}, said("mine")], "mine"),
        ([said([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}])], "a\nb"),
        ([said(({"text": "a"}, "b", ["c"]))], "a\nb\nc"),
        ([said([{"type": "input_image", "image_url": "絵.png"}])], '{"type": "input_image", "image_url": "絵.png"}'),
        ([said({"text": 5})], '{"text": 5}'),
        ([said([{1, 2} - {2}])], '"{1}"'),
        ([said(None)], "null"),
    ],
)
def test_all_that_the_user_said_is_looked_at(input: Any, words: str) -> None:
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
