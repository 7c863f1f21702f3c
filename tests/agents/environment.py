"""The environment as a test wants it: nothing of the machine's own settings."""

import pytest

from openai_responses_mcp.agents.providers.settings import PROVIDERS, TIMEOUT_VARIABLE


def forget_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No provider is set up, and no proxy stands between the tests and loopback."""
    for spec in PROVIDERS.values():
        for name in (spec.base_url_variable, spec.key_variable, spec.model_variable, *spec.header_variables.values()):
            monkeypatch.delenv(name, raising=False)
    for name in ("AGENTS_MODEL_PROVIDER", TIMEOUT_VARIABLE, "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
