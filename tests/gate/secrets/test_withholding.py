"""Secrets are taken out of a saved run, and put back when it resumes."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.secrets.withholding import MOST_SAVES, Withholding, with_secrets

KEY = "very-private-value"
BROKEN = 'first\nsecond"third\\fourth'
ENVIRON = {"OPENAI_API_KEY": KEY, "A_SECRET": BROKEN, "DATABASE_URL": "postgresql://me:hunter2-in-the-db@db.example/x"}
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


def a_process() -> Withholding:
    return Withholding(Masking(ENVIRON))


def stored(taken: Any) -> Any:
    """As a store gives it back."""
    return json.loads(json.dumps(taken))


STATE = {
    "a": [f"say {KEY} twice: {KEY}", {"b": f"{KEY} hunter2-in-the-db"}],
    "arguments": json.dumps({"x": BROKEN, "n": 1}),
    "n": [1, None, True, 1.5],
}


def test_secrets_come_back_where_they_were_in_any_process_with_the_same_environment() -> None:
    taken = stored(a_process().take_out(STATE))
    for secret in (KEY, "second", "hunter2-in-the-db"):
        assert secret not in json.dumps(taken)
    assert a_process().put_back(taken) == STATE


def test_other_secrets_come_back_in_the_process_that_took_them_out() -> None:
    first = a_process()
    state = {"a": f"clone with {TOKEN}, please"}
    taken = stored(first.take_out(state))
    assert TOKEN not in json.dumps(taken)
    assert first.put_back(taken) == state
    with pytest.raises(AgentsError, match="only the process that paused the run can") as caught:
        a_process().put_back(taken)
    assert (caught.value.code, caught.value.details) == ("AGENTS-E-RUNNER", {"reason": "secret_withheld"})


def test_a_variable_that_is_missing_is_named() -> None:
    taken = stored(a_process().take_out({"a": f"say {KEY}"}))
    with pytest.raises(AgentsError, match="only an environment with the OPENAI_API_KEY can"):
        Withholding(Masking({})).put_back(taken)


def test_text_is_never_a_command() -> None:
    cases: list[str] = [
        "⟦withheld:env:OPENAI_API_KEY⟧",
        "⟦withheld:00000000000000000000000000000000⟧",
        "‹OPENAI_API_KEY›",
        '{"path": ["a"], "at": 0, "name": "OPENAI_API_KEY", "form": "plain", "is_key": false, "held": 0}',
        "withheld 1",
    ]
    for text in cases:
        process = a_process()
        for state in ({"a": text, text: [text]}, {"a": f"{text}{KEY}{text}", f"{text}{KEY}": text, "gaps": text}):
            taken = stored(process.take_out(state))
            assert process.put_back(taken) == state
        assert a_process().put_back(stored(a_process().take_out({"a": text}))) == {"a": text}


def test_texts_of_secret_fields_are_taken_out_however_json_writes_them() -> None:
    process = a_process()
    state = {
        "arguments": r'{"password": "\u0068unter2", "user": "hunter20", "x": ["hunter2"]}',
        "whole": "hunter2",
        "said": "the password hunter2 is short, correct horse battery is not",
        "odd": r'"\x" "\ud83d"',
    }
    taken = stored(process.take_out(state, ["hunter2", "correct horse battery"]))
    kept = taken["kept"]
    assert kept["arguments"] == '{"password": "", "user": "hunter20", "x": [""]}'
    assert kept["whole"] == ""
    # A short text is only recognised where it stands alone.
    assert kept["said"] == "the password hunter2 is short,  is not"
    assert process.put_back(taken) == state


def test_a_field_with_a_value_of_the_environment_comes_back_anywhere() -> None:
    state = {"a": KEY, "b": json.dumps({"password": KEY})}
    taken = stored(a_process().take_out(state, [KEY]))
    assert taken["kept"] == {"a": "", "b": '{"password": ""}'}
    assert a_process().put_back(taken) == state


def test_a_secret_behind_escapes_is_taken_out() -> None:
    process = a_process()
    state = {"a": r'{"x": "say \u0076ery-private-value", "y": "' + KEY + r' and \u0076ery-private-value", "z": "\n"}'}
    taken = stored(process.take_out(state))
    assert taken["kept"] == {"a": r'{"x": "", "y": "", "z": "\n"}'}
    assert process.put_back(taken) == state


@pytest.mark.parametrize("inside", [rf"{KEY}\n", rf"\n{KEY}", rf"a\n{KEY} and {KEY}\tb", r"no secret, only\nlines"])
def test_a_variable_between_escapes_comes_back_anywhere(inside: str) -> None:
    state = {"a": f'{{"x": "before", "y": "{inside}", "z": "{KEY}"}}'}
    taken = stored(a_process().take_out(state))
    assert taken["kept"]["a"] == state["a"].replace(KEY, "")
    assert a_process().put_back(taken) == state


def test_a_field_is_recognised_from_eight_characters_on() -> None:
    kept = a_process().take_out({"a": "say 12345678, 1234567"}, ["12345678", "1234567"])["kept"]
    assert kept == {"a": "say , 1234567"}


def test_a_field_is_found_behind_escapes_next_to_a_bare_line_end() -> None:
    kept = a_process().take_out({"a": '"\\u0068un\nter2"'}, ["hun\nter2"])["kept"]
    assert kept == {"a": '""'}


def test_a_secret_behind_escapes_is_found_next_to_one_that_is_known_twice_over() -> None:
    """The value of a variable that also stood in a secret field."""
    state = {"a": '{"x": "' + KEY + r' \u0076ery-private-value"}'}
    taken = stored(a_process().take_out(state, [KEY]))
    assert taken["kept"] == {"a": '{"x": ""}'}


def test_a_token_behind_escapes_is_found_at_the_beginning_of_a_text() -> None:
    kept = a_process().take_out({"a": f'["{chr(92)}u0067{TOKEN[1:]}"]'})["kept"]
    assert kept == {"a": '[""]'}


def test_a_secret_behind_escapes_is_found_in_a_text_that_was_cut_off() -> None:
    process = a_process()
    state = {"a": r'{"x": "\u0076ery-private-value and mor', "b": f'"{KEY} x{chr(92)}'}
    taken = stored(process.take_out(state))
    assert taken["kept"] == {"a": '{"x": "', "b": f'" x{chr(92)}'}
    assert process.put_back(taken) == state


@pytest.mark.parametrize("text", ['"' + chr(92), '"', f'"{TOKEN}{chr(92)}n" ', f'{TOKEN} "{chr(92)}n" '])
def test_a_long_text_is_searched_in_linear_time(text: str) -> None:
    started = time.thread_time()
    a_process().take_out({"a": text * (120_000 // len(text))}, ["hunter2-hunter2", "ab"])
    assert time.thread_time() - started < 5


def test_secrets_in_keys_are_taken_out() -> None:
    process = a_process()
    state = {KEY: 1, f"x{KEY}": {f"y{TOKEN}": KEY}, "withheld 1": 2, "withheld 2": 3}
    taken = stored(process.take_out(state))
    assert KEY not in json.dumps(taken)
    assert list(taken["kept"]) == ["withheld 3", "withheld 4", "withheld 1", "withheld 2"]
    assert process.put_back(taken) == state
    assert a_process().put_back(stored(a_process().take_out({KEY: {"a": KEY}}))) == {KEY: {"a": KEY}}


def test_only_the_latest_saves_can_be_put_back() -> None:
    process = a_process()
    old = process.take_out({"a": TOKEN})
    for _ in range(MOST_SAVES - 1):
        process.take_out({})
    assert process.put_back(old) == {"a": TOKEN}
    process.take_out({})
    with pytest.raises(AgentsError, match="only the process"):
        process.put_back(old)


PIECES = st.sampled_from(
    [KEY, TOKEN, BROKEN, json.dumps(BROKEN), "hunter2", '"', "\\", '"hunter2"', "‹", "⟦withheld:env:A⟧", " ", "x", "sk-", "日本"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=6).map("".join)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@given(state=VALUES)
def test_everything_comes_back_and_nothing_stays(state: Any) -> None:
    process = a_process()
    taken = stored(process.take_out(state, ["hunter2"]))
    assert process.put_back(taken) == state
    assert KEY not in json.dumps(taken, ensure_ascii=False)


LABEL = "‹OPENAI_API_KEY›"


def test_an_unchanged_label_becomes_the_secret_again() -> None:
    cases: list[tuple[dict[str, object], dict[str, object], dict[str, object], dict[str, object]]] = [
        ({"key": LABEL, "n": 2}, {"key": LABEL, "n": 1}, {"key": "sk-1", "n": 1}, {"key": "sk-1", "n": 2}),
        ({"a": {"key": LABEL}}, {"a": {"key": LABEL}}, {"a": {"key": "sk-1"}}, {"a": {"key": "sk-1"}}),
        ({"a": [LABEL, "x", "y"]}, {"a": [LABEL]}, {"a": ["sk-1"]}, {"a": ["sk-1", "x", "y"]}),
        ({"a": [LABEL]}, {"a": [LABEL, "x"]}, {"a": ["sk-1", "x"]}, {"a": ["sk-1"]}),
        ({"a": ["x", LABEL]}, {"a": [LABEL]}, {"a": ["sk-1"]}, {"a": ["x", LABEL]}),
        ({"b": LABEL}, {"a": LABEL}, {"a": "sk-1"}, {"b": LABEL}),
        ({"a": LABEL}, {"a": LABEL}, {"a": 5}, {"a": LABEL}),
        ({"a": [1]}, {"a": {"x": 1}}, {"a": {"x": 1}}, {"a": [1]}),
        ({"a": ["x"]}, {"a": ["x"]}, {"a": "abc"}, {"a": ["x"]}),
        ({}, {"a": LABEL}, {"a": "sk-1"}, {}),
    ]
    for changed, shown, original, restored in cases:
        assert with_secrets(changed, shown, original) == restored
