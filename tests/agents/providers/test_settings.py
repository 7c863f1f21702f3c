"""The table of providers and how the environment fills it in."""

from collections.abc import Mapping
from typing import Any

import pytest

from openai_responses_mcp.agents.composition import get_provider, list_providers
from openai_responses_mcp.agents.providers.compat_model import CompatModelProvider
from openai_responses_mcp.agents.providers.settings import (
    PROVIDERS,
    CompatModelConfig,
    ProviderSettings,
    chosen_provider,
    completed_base_url,
    settings_from,
    timeout_ms_from,
)
from openai_responses_mcp.gate.errors import AgentsError
from tests.sdk_models import ENDING, LISTED

# Every variable and default of the seed's section 6, but for OpenAI's model: the seed's comes to its end.
SEED: Mapping[str, tuple[str, str, str, str | None, str, str | None]] = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1", "OPENAI_API_KEY", None, "AGENTS_OPENAI_MODEL", "gpt-5.4-mini"),
    "ollama": ("AGENTS_OLLAMA_BASE_URL", "http://127.0.0.1:11434/v1", "AGENTS_OLLAMA_API_KEY", "ollama", "AGENTS_OLLAMA_MODEL", None),
    "lmstudio": ("AGENTS_LMSTUDIO_BASE_URL", "http://127.0.0.1:1234/v1", "AGENTS_LMSTUDIO_API_KEY", "lmstudio", "AGENTS_LMSTUDIO_MODEL", None),
    "gemini": ("AGENTS_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com/v1beta/openai", "AGENTS_GEMINI_API_KEY", None, "AGENTS_GEMINI_MODEL", "gemini-3.8-flash"),
    "anthropic": ("AGENTS_ANTHROPIC_BASE_URL", "https://api.anthropic.com/v1", "AGENTS_ANTHROPIC_API_KEY", None, "AGENTS_ANTHROPIC_MODEL", None),
    "openrouter": ("AGENTS_OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1", "AGENTS_OPENROUTER_API_KEY", None, "AGENTS_OPENROUTER_MODEL", None),
}  # fmt: skip


def settings(name: str, environ: Mapping[str, str]) -> ProviderSettings:
    return settings_from(chosen_provider(name, environ), environ)


def complaint(name: str, environ: Mapping[str, str], model: str | None = None) -> str:
    with pytest.raises(AgentsError) as caught:
        settings(name, environ).model_name(model)
    assert caught.value.code == "AGENTS-E-PROVIDER-CONFIG"
    return caught.value.message


def test_the_default_model_of_openai_stays() -> None:
    assert settings("openai", {"OPENAI_API_KEY": "made-up"}).model_name(None) in LISTED - ENDING


def test_the_table_holds_every_variable_and_default() -> None:
    found = {
        spec.name: (spec.base_url_variable, spec.default_base_url, spec.key_variable, spec.default_key, spec.model_variable, spec.default_model)
        for spec in PROVIDERS.values()
    }  # fmt: skip
    assert found == SEED
    assert list_providers() == list(SEED)


def test_variables_win_over_defaults() -> None:
    environ = {
        "AGENTS_GEMINI_BASE_URL": "http://127.0.0.1:9",
        "AGENTS_GEMINI_API_KEY": "my-key",
        "AGENTS_GEMINI_MODEL": " my-model ",
        "AGENTS_REQUEST_TIMEOUT_MS": "1000",
    }
    found = settings("gemini", environ)
    assert found.config.base_url == "http://127.0.0.1:9/v1beta/openai"
    assert (found.config.api_key, found.model_name(None), found.config.timeout_ms) == ("my-key", "my-model", 1000)


def test_a_missing_key_is_named_by_its_variable() -> None:
    assert "AGENTS_GEMINI_API_KEY" in complaint("gemini", {"AGENTS_GEMINI_API_KEY": "  "})


def test_local_servers_need_no_key_but_a_model() -> None:
    assert settings("lmstudio", {}).config.api_key == "lmstudio"
    assert "AGENTS_LMSTUDIO_MODEL" in complaint("lmstudio", {})


@pytest.mark.parametrize("model", [" ", "m" * 129])
def test_a_model_name_out_of_range_is_refused(model: str) -> None:
    assert "AGENTS_OLLAMA_MODEL" in complaint("ollama", {}, model)


@pytest.mark.parametrize("key", ["my key", "schlüssel", "a\x00b"])
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(key: str) -> None:
    message = complaint("openai", {"OPENAI_API_KEY": key})
    assert "OPENAI_API_KEY" in message
    assert key not in message


@pytest.mark.parametrize(
    "address",
    ["ftp://host/v1", "http://[::1", "https://user:pass@host/v1", "https://host/v1?key=1", "http://gateway.example/v1"],
)
def test_a_bad_address_is_named_by_its_variable_and_not_shown(address: str) -> None:
    message = complaint("openai", {"OPENAI_API_KEY": "my-key", "OPENAI_BASE_URL": address})
    assert "OPENAI_BASE_URL" in message
    assert address not in message


@pytest.mark.parametrize(
    ("given", "usual", "completed"),
    [
        ("http://192.168.0.7:1", "http://x/v1", "http://192.168.0.7:1/v1"),
        ("http://h:1/v1/", "http://x/v1", "http://h:1/v1"),
        ("http://h/v2", "http://x/v1", "http://h/v2"),
        ("https://h/v1beta", "https://x/v1beta/openai", "https://h/v1beta/openai"),
    ],
)
def test_an_address_without_its_usual_end_is_completed(given: str, usual: str, completed: str) -> None:
    assert completed_base_url(given, usual) == completed


@pytest.mark.parametrize("written", ["999", "120001", "60s", "１０００"])
def test_a_timeout_out_of_range_is_named_by_its_variable(written: str) -> None:
    with pytest.raises(AgentsError, match="AGENTS_REQUEST_TIMEOUT_MS"):
        timeout_ms_from({"AGENTS_REQUEST_TIMEOUT_MS": written})


def test_the_provider_is_chosen_by_argument_then_variable_then_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "my-key")
    assert get_provider().name == "openai"
    monkeypatch.setenv("AGENTS_MODEL_PROVIDER", "lmstudio")
    assert get_provider().name == "lmstudio"
    assert get_provider("ollama").name == "ollama"
    assert "AGENTS_MODEL_PROVIDER" in complaint("nobody", {})


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("m", {"base_url": "http://127.0.0.1/v1", "timeout_ms": 999}),
        ("m", {"base_url": "nowhere"}),
        ("m" * 129, {"base_url": "http://127.0.0.1/v1"}),
    ],
)
def test_create_model_checks_what_it_is_given(name: str, config: dict[str, Any]) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-PROVIDER-CONFIG"):
        CompatModelProvider().create_model(name, CompatModelConfig(**config))


def test_nothing_that_is_shown_holds_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-key")
    provider = get_provider("openai")
    assert "sk-made-up-key" not in f"{provider} {provider.get_model()} {provider.settings}"


def test_openai_itself_is_asked_over_responses_and_everybody_else_over_chat_completions() -> None:
    key = {"OPENAI_API_KEY": "my-key"}
    assert settings("openai", key).config.api == "responses"
    assert settings("openai", {**key, "OPENAI_BASE_URL": "http://localhost:8"}).config.api == "chat_completions"
    assert settings("ollama", {}).config.api == "chat_completions"
