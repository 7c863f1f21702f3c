"""Names of providers, and the list of models that one of them has."""

from typing import Literal

ProviderName = Literal["openai", "ollama", "lmstudio", "gemini", "anthropic", "openrouter"]
ListFailure = Literal["http_error", "timeout", "network_error", "invalid_payload", "empty_response"]
ListSource = Literal["live", "configured", "default", "none"]


class ModelList(list[str]):
    """Names of models. Where `source` is not `live`, `reason` says why the provider's own list could not be had."""

    def __init__(
        self, models: list[str], source: ListSource = "live", reason: ListFailure | None = None, detail: str = ""
    ) -> None:
        super().__init__(models)
        self.source = source
        self.reason = reason
        self.detail = detail
