"""The two views without secrets: exact for who decides, stricter for the log."""

import json
from typing import Any

import pytest

from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.secrets.fields import secret_texts
from openai_responses_mcp.gate.secrets.masking import Masking

ENVIRON = {
    "OPENAI_API_KEY": "very-private-value",
    "DATABASE_URL": "postgresql://me:hunter2-in-the-db@db.example/x",
    "HOME": "/home/somebody",
    "SHORT_KEY": "abc",
}
GOOGLE = "AIza" + "Sy0123456789abcdefghijklmnopqrstuvw"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_who_decides_sees_each_secret_as_what_it_is() -> None:
    known = schema(password={"type": "string"}, headers=schema(Authorization={"type": "string"}))
    args = {
        "command": f"curl -d very-private-value {GOOGLE} postgresql://me:hunter2-in-the-db@db.example/x",
        "password": "correct horse battery",
        "headers": {"Authorization": "Bearer x", "X-Other": "y"},
    }
    assert Masking(ENVIRON).shown(args, known) == {
        "command": "curl -d ‹OPENAI_API_KEY› ‹AIza…, 39 characters› postgresql://me:‹password in DATABASE_URL›@db.example/x",
        "password": "‹password, 21 characters›",
        "headers": {"Authorization": "‹Authorization, 8 characters›", "X-Other": "y"},
    }


@pytest.mark.parametrize(
    "args",
    [
        {"command": "ls --password=$(touch x)"},
        {"body": {"secretary": {"action": "delete_all_users"}, "token_amount": 9000000}},
        {"password": "rm -rf /", "token": "x; reboot", "api_key": "plain", "authorization": "Bearer abcdefghijkl"},
        {"password": 5, "token": [1, "a"], "secret": {"b": None}, "cookie": True},
        {"text": "password=hunter2 secret: hunter2 Bearer hunter2hunter2 https://token@git.example"},
        {"url": "https://me:$(reboot)@example.com/"},
        {"": "", "a": [], "b": {}, "c": 1.5},
        {"text": "‹OPENAI_API_KEY› ⟦withheld:env:OPENAI_API_KEY⟧"},
    ],
)
def test_who_decides_sees_everything_that_the_model_chose(args: dict[str, Any]) -> None:
    assert Masking(ENVIRON).shown(args, schema(command={"type": "string"})) == args


def test_what_is_shown_can_be_shown_again() -> None:
    known = schema(password={"type": "string"})
    once = Masking(ENVIRON).shown({"password": "hunter2", "key": "very-private-value"}, known)
    assert Masking(ENVIRON).shown(once, known) == once
    assert Masking(ENVIRON).value(once) == once


def test_a_field_that_only_begins_like_a_label_is_hidden() -> None:
    known = schema(password={"type": "string"})
    for text in ("‹x› hunter2", "‹hunter2", "hunter2›", "‹a›‹b›"):
        assert str(Masking({}).shown({"password": text}, known)["password"]).startswith("‹password, ")


def test_what_is_shown_is_valid_json_without_losing_anything() -> None:
    args: Any = {"n": float("nan"), "i": [float("inf"), -float("inf")], 5: ("a", object), "x": "‹"}
    shown = Masking({}).shown(args, {})
    assert shown["n"] == "NaN"
    assert shown["i"] == ["Infinity", "-Infinity"]
    assert shown["5"] == ["a", str(object)]
    json.dumps(shown, allow_nan=False)


def test_keys_that_are_shown_alike_are_all_shown() -> None:
    keys = [f"sk-0123456789abcdef{letter}" for letter in "abc"]
    shown = Masking({}).shown(dict.fromkeys(keys, 1), {})
    assert list(shown) == [f"‹sk-…, 20 characters›{number}" for number in ("", " (2)", " (3)")]


def test_the_log_also_hides_what_looks_like_a_secret() -> None:
    masking = Masking(ENVIRON)
    assert (
        masking.text("use very-private-value or sk-0123456789abcdef") == "use ‹OPENAI_API_KEY› or ‹sk-…, 19 characters›"
    )
    assert masking.text("--password=hunter2 Bearer abcdefghijkl") == "--password=*** Bearer ***"
    assert masking.text("/home/somebody says abc") == "/home/somebody says abc"
    shown = masking.value(
        {"password": "hunter2", "headers": {"Authorization": "x"}, "list": ["hunter2-in-the-db", 1.5]}
    )
    assert shown == {
        "password": "‹password, 7 characters›",
        "headers": {"Authorization": "‹Authorization, 1 character›"},
        "list": ["‹password in DATABASE_URL›", 1.5],
    }


def test_the_log_shows_what_would_run() -> None:
    args: dict[str, Any] = {
        "command": "ls --password=$(touch x)",
        "body": {"secretary": {"action": "delete_all_users"}, "token_amount": 9000000},
        "token": "rm -rf /",
        "secret": "$(reboot)",
        "password": "`reboot`",
        "cookie": ["a", None, True],
        "api_key": "",
    }
    assert Masking({}).value(args) == args


def test_texts_of_secret_fields_are_hidden_elsewhere_in_the_log_where_they_can_be_told_apart() -> None:
    masking = Masking({})
    assert masking.text("login with hunter2-and-more failed", ["hunter2-and-more"]) == (
        "login with ‹secret, 16 characters› failed"
    )
    assert masking.text("a failed", ["a"]) == "a failed"
    assert masking.text("12345678 1234567", ["12345678", "1234567"]) == "‹secret, 8 characters› 1234567"
    assert masking.value({"x": ["hunter2-and-more"]}, ["hunter2-and-more"]) == {"x": ["‹secret, 16 characters›"]}


def test_the_texts_of_secret_fields() -> None:
    known = schema(login=schema(password={"type": "string"}), list={"items": schema(token={"type": "string"})})
    args = {"login": {"password": "a"}, "list": [{"token": "b"}], "token": "c"}
    assert secret_texts(known, args) == ["a", "b"]


def test_a_secret_that_is_a_key_is_masked() -> None:
    assert Masking(ENVIRON).value({"very-private-value": 1}) == {"‹OPENAI_API_KEY›": 1}


def test_an_error_is_shown_without_secrets_and_without_a_cause_that_has_one() -> None:
    masking = Masking(ENVIRON)
    failure = AgentsError("AGENTS-E-RUNNER", "no very-private-value", details={"at": "very-private-value"})
    failure.__cause__ = ValueError("plain")
    shown = masking.error(failure, run_id="r")
    told = masking.error(AgentsError("AGENTS-E-RUNNER", "could not use hunter2-and-more"), ["hunter2-and-more"])
    assert told.message == "could not use ‹secret, 16 characters›"
    assert (shown.message, shown.details) == ("no ‹OPENAI_API_KEY›", {"run_id": "r", "at": "‹OPENAI_API_KEY›"})
    assert shown.__cause__ is failure.__cause__
    failure.__cause__.__context__ = KeyError("very-private-value")
    assert masking.error(failure).__cause__ is None
    failure.__cause__ = looped = ValueError("plain")
    looped.__context__ = looped
    assert masking.error(failure).__cause__ is looped
