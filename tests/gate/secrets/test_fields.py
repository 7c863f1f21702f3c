"""Which fields hold a secret: the tool's own schema says so, the arguments do not."""

from typing import Any

import pytest

from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.secrets.fields import is_secret_name, secret_fields, secret_texts


@pytest.mark.parametrize(
    "name",
    [
        "password", "Password", "db_password", "dbPassword", "PASSWORD", "passwd", "user-pwd", "passphrase", "pass_word",
        "secret", "clientSecret", "token", "access_token", "authToken", "X-Auth-Token", "Authorization", "credentials",
        "api_key", "apiKey", "X-API-Key", "OPENAI_API_KEY", "apikey", "privateKey", "ssh_keys", "Cookie", "パスワード", "暗証番号", "DBの秘密鍵", "トークン",
    ],
)  # fmt: skip
def test_a_name_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "secretary", "token_amount", "max_tokens", "tokens", "tokenizer", "password_hint_shown", "passwordless",
        "key", "keyboard", "primary_key", "author", "monkey", "cookie_consent", "body", "パスワードの長さ", "42",
    ],
)  # fmt: skip
def test_a_name_of_something_else(name: str) -> None:
    assert not is_secret_name(name)


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}


def test_only_texts_that_the_schema_names_are_secret_fields() -> None:
    args = {"password": "a b; c", "token": 5, "secret": ["x"], "credentials": {"a": "b"}, "api_key": "", "user": "me"}
    known = schema(password=TEXT, token=TEXT, secret=TEXT, credentials=TEXT, api_key=TEXT, user=TEXT)
    assert secret_fields(known, args) == {("password",): "password"}


def test_a_key_that_the_model_made_up_is_no_field() -> None:
    args = {"body": {"password": "rm -rf /", "token": "x"}, "token": "y", "inner": {"token": "z"}}
    assert secret_fields(schema(body={"type": "object"}, password=TEXT), args) == {}
    assert secret_fields({}, args) == {}
    assert secret_fields({"anyOf": [schema(body=TEXT)]}, args) == {}
    assert secret_fields(schema(inner=schema(token=TEXT)), args) == {("inner", "token"): "token"}


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
        ),
        "$defs": {"Login": schema(password=TEXT), "a/b~c": schema(secret=TEXT)},
    }
    args = {
        "login": {"password": "1"},
        "many": [None, {"password": "2"}],
        "pair": [{"Authorization": "not here"}, {"Authorization": "3"}, {"Authorization": "not described"}],
        "free": {"anything": {"Authorization": "4"}},
        "either": {"Authorization": "5", "token": "6", "secret": "only asked about"},
        "odd": {"secret": "7"},
    }
    assert secret_fields(known, args) == {
        ("login", "password"): "password",
        ("many", 1, "password"): "password",
        ("pair", 1, "Authorization"): "Authorization",
        ("free", "anything", "Authorization"): "Authorization",
        ("either", "Authorization"): "Authorization",
        ("either", "token"): "token",
        ("odd", "secret"): "secret",
    }


@pytest.mark.parametrize(
    "part",
    [
        {"$ref": "#"},
        {"$ref": "#/properties/a"},
        {"$ref": "#/nowhere/at/all"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": 5},
        {"anyOf": 5, "properties": [], "prefixItems": {}, "items": True},
        True,
        None,
    ],
)
def test_a_schema_that_goes_in_circles_or_makes_no_sense_names_what_it_names(part: Any) -> None:
    args = {"a": {"a": {"token": "y"}, "list": [{"token": "z"}]}, "token": "x"}
    assert secret_fields(schema(a=part, token=TEXT), args)["token",] == "token"


def test_a_schema_with_very_many_ways_through_it_is_read_once() -> None:
    known: dict[str, Any] = schema(token=TEXT)
    for _ in range(60):
        known = {"anyOf": [known] * 3, **schema(token=TEXT)}
    assert secret_fields(known, {"token": "x"}) == {("token",): "token"}


def test_many_values_of_one_kind_are_looked_at_once() -> None:
    row = {"anyOf": [schema(**{f"field{number}": TEXT}) for number in range(500)] + [schema(token=TEXT)]}
    rows = [{"token": "x", "other": [1]} for _ in range(2_000)]
    found = secret_fields(schema(rows={"items": row}), {"rows": rows})
    assert found == {("rows", number, "token"): "token" for number in range(2_000)}


def test_a_schema_made_to_take_forever_is_refused() -> None:
    big = {"anyOf": [schema() for _ in range(2_000)]}
    known = {**schema(**{f"p{number}": {"$ref": "#/$defs/big"} for number in range(2_000)}), "$defs": {"big": big}}
    args: dict[str, Any] = {f"p{number}": {} for number in range(2_000)} | {"token": "hunter2-and-more"}
    with pytest.raises(AgentsError, match="AGENTS-E-AGENT-CAPABILITY-RESOLVE"):
        secret_fields(known, args)


@pytest.mark.parametrize("args", [{"text": "hi"}, {"list": [1, {"text": "hi"}]}, {7: "hi"}])
def test_a_schema_is_not_read_for_arguments_without_such_a_name(args: Any) -> None:
    unreadable: Any = {"properties": {"text": {"$ref": 7}}, "allOf": 7}
    assert (secret_fields(unreadable, args), secret_texts(unreadable, args)) == ({}, [])


def test_a_name_is_found_however_deep_it_stands() -> None:
    inner = schema(password={"type": "string"})
    known = schema(list={"type": "array", "items": schema(deeper=inner)})
    args = {"list": [{"deeper": {"password": "hunter2"}}]}
    assert secret_fields(known, args) == {("list", 0, "deeper", "password"): "password"}
    assert secret_texts(known, args) == ["hunter2"]
