"""The table of providers: where each is, which variables describe it, and what it cannot do.

A quirk is worked around if the outcome is the same or is checked here anyway. Otherwise asking for the feature is
`AGENTS-E-COMPAT-UNSUPPORTED`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

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


class ProviderHandle(Protocol):
    """A provider of models, ready to be asked for one."""

    @property
    def name(self) -> ProviderName: ...

    def get_model(self, model: str | None = None) -> Any:
        """A model of the SDK, for an agent."""
        ...

    async def list_models(self) -> ModelList: ...


@dataclass(frozen=True, slots=True)
class Quirks:
    """What a provider does with the parts of a request that not everybody understands.

    `named_tool_choice`: `single_tool` offers that tool alone and asks for any; the outcome is the same. `json_schema`:
    if the provider does not keep to it, the schema goes into the instructions, and the SDK checks the answer.
    `dropped_fields` and `dropped_keywords` are hints to the model or the provider; arguments are checked here anyway.
    """

    named_tool_choice: Literal["native", "single_tool", "unsupported"] = "native"
    required_tool_choice: bool = True
    strict: bool = True
    json_schema: bool = True
    dropped_fields: frozenset[str] = frozenset()
    dropped_keywords: frozenset[str] = frozenset()
    highest_temperature: float | None = None


NO_QUIRKS = Quirks()


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """One line of the table; `default_key` is for servers that want some key and do not look at it."""

    name: ProviderName
    base_url_variable: str
    default_base_url: str
    key_variable: str
    model_variable: str
    default_key: str | None = None
    default_model: str | None = None
    header_variables: Mapping[str, str] = field(default_factory=dict)
    list_headers: Mapping[str, str] = field(default_factory=dict)
    key_header: str = "Authorization"
    model_prefix: str = ""
    quirks: Quirks = NO_QUIRKS


_FOR_OPENAI_ONLY = frozenset({"store", "metadata", "prompt_cache_key", "verbosity", "service_tier", "user"})

PROVIDERS: Mapping[ProviderName, ProviderSpec] = {
    spec.name: spec
    for spec in (
        ProviderSpec(
            name="openai",
            base_url_variable="OPENAI_BASE_URL",
            default_base_url="https://api.openai.com/v1",
            key_variable="OPENAI_API_KEY",
            model_variable="AGENTS_OPENAI_MODEL",
            default_model="gpt-5.4-mini",
        ),
        ProviderSpec(
            name="ollama",
            base_url_variable="AGENTS_OLLAMA_BASE_URL",
            default_base_url="http://127.0.0.1:11434/v1",
            key_variable="AGENTS_OLLAMA_API_KEY",
            model_variable="AGENTS_OLLAMA_MODEL",
            default_key="ollama",
            # It reads the request without tool_choice: whether a tool is called is up to the model.
            quirks=Quirks(
                named_tool_choice="unsupported",
                required_tool_choice=False,
                strict=False,
                dropped_fields=_FOR_OPENAI_ONLY | {"parallel_tool_calls"},
            ),
        ),
        ProviderSpec(
            name="lmstudio",
            base_url_variable="AGENTS_LMSTUDIO_BASE_URL",
            default_base_url="http://127.0.0.1:1234/v1",
            key_variable="AGENTS_LMSTUDIO_API_KEY",
            model_variable="AGENTS_LMSTUDIO_MODEL",
            default_key="lmstudio",
            # Refuses a tool_choice that is an object.
            quirks=Quirks(
                named_tool_choice="single_tool",
                strict=False,
                dropped_fields=_FOR_OPENAI_ONLY | {"parallel_tool_calls"},
            ),
        ),
        ProviderSpec(
            name="gemini",
            base_url_variable="AGENTS_GEMINI_BASE_URL",
            default_base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_variable="AGENTS_GEMINI_API_KEY",
            model_variable="AGENTS_GEMINI_MODEL",
            default_model="gemini-3.8-flash",
            model_prefix="models/",
            # Refuses every name in a request or a schema that it does not know.
            quirks=Quirks(
                named_tool_choice="single_tool",
                strict=False,
                dropped_fields=_FOR_OPENAI_ONLY
                | {"parallel_tool_calls", "frequency_penalty", "presence_penalty", "logprobs", "top_logprobs"},
                dropped_keywords=frozenset(
                    {"$schema", "$id", "$comment", "additionalProperties", "propertyNames", "patternProperties"}
                ),
            ),
        ),
        ProviderSpec(
            name="anthropic",
            base_url_variable="AGENTS_ANTHROPIC_BASE_URL",
            default_base_url="https://api.anthropic.com/v1",
            key_variable="AGENTS_ANTHROPIC_API_KEY",
            model_variable="AGENTS_ANTHROPIC_MODEL",
            list_headers={"anthropic-version": "2023-06-01"},
            key_header="x-api-key",
            # Ignores strict and response_format silently; refuses nothing else that is sent here.
            quirks=Quirks(strict=False, json_schema=False, dropped_fields=_FOR_OPENAI_ONLY, highest_temperature=1.0),
        ),
        ProviderSpec(
            name="openrouter",
            base_url_variable="AGENTS_OPENROUTER_BASE_URL",
            default_base_url="https://openrouter.ai/api/v1",
            key_variable="AGENTS_OPENROUTER_API_KEY",
            model_variable="AGENTS_OPENROUTER_MODEL",
            header_variables={
                "HTTP-Referer": "AGENTS_OPENROUTER_HTTP_REFERER",
                "X-Title": "AGENTS_OPENROUTER_X_TITLE",
            },
            quirks=Quirks(strict=False, dropped_fields=frozenset({"store", "prompt_cache_key"})),
        ),
    )
}
