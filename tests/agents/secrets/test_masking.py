"""Secrets out of what is kept and shown, and back into what is resumed."""

import pytest

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.secrets.masking import Masking
from openai_responses_mcp.agents.secrets.withholding import Withholding

ENVIRON = {"OPENAI_API_KEY": "very-private-value", "HOME": "/home/somebody", "SHORT_KEY": "abc"}


def test_known_and_likely_secrets_are_starred_out() -> None:
    masking = Masking(ENVIRON)
    assert masking.text("use very-private-value or sk-0123456789abcdef") == "use *** or ***"
    assert masking.text("/home/somebody says abc") == "/home/somebody says abc"


def test_fields_are_masked_by_their_name() -> None:
    shown = Masking({}).value(
        {
            "password": "hunter2",
            "headers": {"Authorization": "x", "Cookie": ["a", "b"]},
            "url": "https://me:hunter2@example.com/",
            "max_tokens": 5,
            "token": None,
            "api_key": "",
            "list": ("a", 1.5, True, None, object),
        }
    )
    assert shown["password"] == "***"
    assert shown["headers"] == {"Authorization": "***", "Cookie": "***"}
    assert shown["url"] == "https://***@example.com/"
    assert (shown["max_tokens"], shown["token"], shown["api_key"]) == (5, None, "")
    assert shown["list"][:4] == ["a", 1.5, True, None]


def test_a_secret_that_is_a_key_is_masked() -> None:
    assert Masking(ENVIRON).value({"very-private-value": 1}) == {"***": 1}


def test_withheld_secrets_come_back() -> None:
    withholding = Withholding(Masking(ENVIRON))
    state = {"a": ["say very-private-value", {"b": "key sk-0123456789abcdef and very-private-value"}], "n": 1}
    stored = withholding.take_out(state)
    assert "very-private-value" not in str(stored)
    assert "sk-0123" not in str(stored)
    assert withholding.put_back(stored) == state


def test_a_variable_comes_back_in_another_process_with_the_same_environment() -> None:
    stored = Withholding(Masking(ENVIRON)).take_out({"a": "say very-private-value"})
    assert Withholding(Masking(ENVIRON)).put_back(stored) == {"a": "say very-private-value"}


@pytest.mark.parametrize("text", ["say very-private-value", "key sk-0123456789abcdef"])
def test_what_nobody_can_give_back_is_a_named_error(text: str) -> None:
    stored = Withholding(Masking(ENVIRON)).take_out({"a": text})
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER") as caught:
        Withholding(Masking({})).put_back(stored)
    assert caught.value.details == {"reason": "secret_withheld"}
