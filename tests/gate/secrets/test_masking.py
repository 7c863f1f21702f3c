"""Hiding secrets in stored and shown texts, and finding the fields of a call that hold one."""

import json
from typing import Any

import pytest

from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.secrets.masking import Masking, is_secret_name, secret_fields, secret_texts

ENVIRON = {
    "OPENAI_API_KEY": "very-private-value",
    "DATABASE_URL": "postgresql://me:hunter2-in-the-db@db.example/x",
    "HOME": "/home/somebody",
    "SHORT_KEY": "abc",
}
GOOGLE = "AIza" + "Sy0123456789abcdefghijklmnopqrstuvw"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_the_approver_sees_a_label_for_each_secret() -> None:
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


def test_the_approver_sees_everything_that_the_model_chose() -> None:
    cases: list[dict[str, Any]] = [
        {"command": "ls --password=$(touch x)"},
        {"body": {"secretary": {"action": "delete_all_users"}, "token_amount": 9000000}},
        {"password": "rm -rf /", "token": "x; reboot", "api_key": "plain", "authorization": "Bearer abcdefghijkl"},
        {"password": 5, "token": [1, "a"], "secret": {"b": None}, "cookie": True},
        {"text": "password=hunter2 secret: hunter2 Bearer hunter2hunter2 https://token@git.example"},
        {"url": "https://me:$(reboot)@example.com/"},
        {"": "", "a": [], "b": {}, "c": 1.5},
        {"text": "‹OPENAI_API_KEY› ⟦withheld:env:OPENAI_API_KEY⟧"},
    ]
    for args in cases:
        assert Masking(ENVIRON).shown(args, schema(command={"type": "string"})) == args


def test_masking_a_masked_value_changes_nothing() -> None:
    known = schema(password={"type": "string"})
    once = Masking(ENVIRON).shown({"password": "hunter2", "key": "very-private-value"}, known)
    assert Masking(ENVIRON).shown(once, known) == once == Masking(ENVIRON).value(once)
    for text in ("‹x› hunter2", "‹hunter2", "hunter2›", "‹a›‹b›"):
        assert str(Masking({}).shown({"password": text}, known)["password"]).startswith("‹password, ")


def test_shown_arguments_are_valid_json_and_complete() -> None:
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


def test_a_label_that_may_stand_for_a_secret_is_found() -> None:
    cases: list[tuple[str, str | None]] = [
        ("say ‹OPENAI_API_KEY›", "‹OPENAI_API_KEY›"),
        ("‹a\nb, 17 characters›", "‹a\nb, 17 characters›"),
        ("‹x, 1 character›", "‹x, 1 character›"),
        ("‹password in DATABASE_URL›", "‹password in DATABASE_URL›"),
        ("‹quoted› and ‹mine›", "‹mine›"),
        (f"‹{'A' * 300}›", f"‹{'A' * 300}›"),
        (f"‹{'A' * 301}›", None),
        ("‹quoted› ‹open OPENAI_API_KEY›", None),
        ("OPENAI_API_KEY", None),
    ]
    for text, label in cases:
        masking = Masking({"mine": "another-private-value"}, also="mine")
        assert masking.shown_text("use another-private-value") == "use ‹mine›"
        assert masking.label_in({"a": [{"b": text}]}) == label


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


def test_texts_of_secret_fields_are_hidden_elsewhere_in_the_log_from_eight_characters_on() -> None:
    masking = Masking({})
    assert masking.text("login with hunter2-and-more failed", ["hunter2-and-more"]) == (
        "login with ‹secret, 16 characters› failed"
    )
    assert masking.text("a failed", ["a"]) == "a failed"
    assert masking.text("12345678 1234567", ["12345678", "1234567"]) == "‹secret, 8 characters› 1234567"
    assert masking.value({"x": ["hunter2-and-more"]}, ["hunter2-and-more"]) == {"x": ["‹secret, 16 characters›"]}


def test_a_secret_that_is_a_key_is_masked() -> None:
    assert Masking(ENVIRON).value({"very-private-value": 1}) == {"‹OPENAI_API_KEY›": 1}


def test_an_error_is_shown_without_secrets_and_without_a_cause_that_has_one() -> None:
    masking = Masking(ENVIRON)
    failure = AgentsError("AGENTS-E-RUNNER", "no very-private-value", details={"at": "very-private-value"})
    failure.__cause__ = ValueError("plain")
    shown = masking.error(failure, run_id="r")
    other = masking.error(AgentsError("AGENTS-E-RUNNER", "could not use hunter2-and-more"), ["hunter2-and-more"])
    assert other.message == "could not use ‹secret, 16 characters›"
    assert (shown.message, shown.details) == ("no ‹OPENAI_API_KEY›", {"run_id": "r", "at": "‹OPENAI_API_KEY›"})
    assert shown.__cause__ is failure.__cause__
    failure.__cause__.__context__ = KeyError("very-private-value")
    assert masking.error(failure).__cause__ is None
    failure.__cause__ = looped = ValueError("plain")
    looped.__context__ = looped
    assert masking.error(failure).__cause__ is looped


def test_a_name_of_a_secret() -> None:
    cases: list[str] = [
        "password", "Password", "db_password", "dbPassword", "PASSWORD", "passwd", "user-pwd", "passphrase", "pass_word",
        "secret", "clientSecret", "token", "access_token", "authToken", "X-Auth-Token", "Authorization", "credentials",
        "api_key", "apiKey", "X-API-Key", "OPENAI_API_KEY", "apikey", "privateKey", "ssh_keys", "Cookie", "パスワード", "暗証番号", "DBの秘密鍵", "トークン",
    ]  # fmt: skip
    for name in cases:
        assert is_secret_name(name)


def test_a_name_of_something_else() -> None:
    cases: list[str] = [
        "", "secretary", "token_amount", "max_tokens", "tokens", "tokenizer", "password_hint_shown", "passwordless",
        "key", "keyboard", "primary_key", "author", "monkey", "cookie_consent", "body", "パスワードの長さ", "42",
    ]  # fmt: skip
    for name in cases:
        assert not is_secret_name(name)


TEXT = {"type": "string"}


def fields(schema: dict[str, Any], args: dict[str, Any]) -> dict[Any, str]:
    return {one.path: one.name for one in secret_fields(schema, args)}


def test_only_texts_that_the_schema_names_are_secret_fields() -> None:
    args = {"password": "a b; c", "token": 5, "secret": ["x"], "credentials": {"a": "b"}, "api_key": "", "user": "me"}
    known = schema(password=TEXT, token=TEXT, secret=TEXT, credentials=TEXT, api_key=TEXT, user=TEXT)
    assert fields(known, args) == {("password",): "password"}


def test_a_key_that_the_model_made_up_is_no_field() -> None:
    args = {"body": {"password": "rm -rf /", "token": "x"}, "token": "y", "inner": {"token": "z"}}
    assert fields(schema(body={"type": "object"}, password=TEXT), args) == {}
    assert fields({}, args) == {}
    assert fields({"anyOf": [schema(body=TEXT)]}, args) == {}
    assert fields(schema(inner=schema(token=TEXT)), args) == {("inner", "token"): "token"}


def test_fields_are_found_wherever_the_schema_has_them() -> None:
    headers = schema(Authorization=TEXT)
    known = {
        **schema(
            login={"$ref": "#/$defs/Login"},
            many={"type": "array", "items": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Login"}]}},
            pair={"prefixItems": [TEXT, {"allOf": [headers]}]},
            free={"additionalProperties": headers},
            either={"if": schema(secret=TEXT), "then": headers, "else": {"oneOf": [schema(token=TEXT)]}},
            odd={"$ref": "#/$defs/a~1b~0c"},
            anchored={"$ref": "#here"},
        ),
        "$defs": {
            "Login": schema(password=TEXT),
            "a/b~c": schema(secret=TEXT),
            "x": {"$anchor": "here", **schema(token=TEXT)},
        },
    }
    args = {
        "login": {"password": "1"},
        "many": [None, {"password": "2"}],
        "pair": [{"Authorization": "not here"}, {"Authorization": "3"}, {"Authorization": "not described"}],
        "free": {"anything": {"Authorization": "4"}},
        "either": {"Authorization": "5", "token": "6", "secret": "only asked about"},
        "odd": {"secret": "7"},
        "anchored": {"token": "8"},
    }
    assert fields(known, args) == {
        ("login", "password"): "password",
        ("many", 1, "password"): "password",
        ("pair", 1, "Authorization"): "Authorization",
        ("free", "anything", "Authorization"): "Authorization",
        ("either", "Authorization"): "Authorization",
        ("either", "token"): "token",
        ("odd", "secret"): "secret",
        ("anchored", "token"): "token",
    }


def test_a_schema_that_goes_in_circles_or_makes_no_sense_names_what_it_names() -> None:
    cases: list[Any] = [
        *({"$ref": to} for to in ("#", "#/properties/a", "#/nowhere/at/all", "https://example.com/schema.json", 5)),
        *({"anyOf": 5, "properties": [], "prefixItems": {}, "items": True}, True, None),
    ]
    for part in cases:
        args = {"a": {"a": {"token": "y"}, "list": [{"token": "z"}]}, "token": "x"}
        assert fields(schema(a=part, token=TEXT), args)["token",] == "token"


def test_a_schema_with_very_many_ways_through_it_is_read_once() -> None:
    known: dict[str, Any] = schema(token=TEXT)
    for _ in range(60):
        known = {"anyOf": [known] * 3, **schema(token=TEXT)}
    assert fields(known, {"token": "x"}) == {("token",): "token"}


def test_many_values_of_one_kind_are_looked_at_once() -> None:
    row = {"anyOf": [schema(**{f"field{number}": TEXT}) for number in range(500)] + [schema(token=TEXT)]}
    rows = [{"token": "x", "other": [1]} for _ in range(2_000)]
    found = fields(schema(rows={"items": row}), {"rows": rows})
    assert found == {("rows", number, "token"): "token" for number in range(2_000)}


def test_a_schema_made_to_take_forever_is_refused() -> None:
    big = {"anyOf": [schema() for _ in range(2_000)]}
    known = {**schema(**{f"p{number}": {"$ref": "#/$defs/big"} for number in range(2_000)}), "$defs": {"big": big}}
    args: dict[str, Any] = {f"p{number}": {} for number in range(2_000)} | {"token": "hunter2-and-more"}
    too_complex = "^AGENTS-E-AGENT-CAPABILITY-RESOLVE: .* too complex to find which of its fields hold secrets$"
    with pytest.raises(AgentsError, match=too_complex):
        fields(known, args)
    many = {f"p{number}": TEXT for number in range(2_000)}
    with pytest.raises(AgentsError, match=too_complex):
        fields({"anyOf": [schema(**many) for _ in range(60)]}, {"token": "x"})


@pytest.mark.parametrize("args", [{"text": "hi"}, {"list": [1, {"text": "hi"}]}, {7: "hi"}])
def test_a_schema_is_not_read_for_arguments_without_such_a_name(args: Any) -> None:
    unreadable: Any = {"properties": {"text": {"$ref": 7}}, "allOf": 7}
    assert (fields(unreadable, args), secret_texts(unreadable, args)) == ({}, [])


def test_a_name_is_found_however_deep_it_stands() -> None:
    inner = schema(password={"type": "string"})
    known = schema(list={"type": "array", "items": schema(deeper=inner)}, login=inner)
    args = {"login": {"password": "a"}, "list": [{"deeper": {"password": "hunter2"}}], "token": "c"}
    assert fields(known, args) == {
        ("login", "password"): "password",
        ("list", 0, "deeper", "password"): "password",
    }
    assert secret_texts(known, args) == ["a", "hunter2"]
