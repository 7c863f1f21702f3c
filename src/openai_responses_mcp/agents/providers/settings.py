"""The six providers: a table with the address and limits of each, and the settings of one from the environment.

A quirk is worked around if the outcome is the same or is checked here anyway. Otherwise using the feature is
`AGENTS-E-COMPAT-UNSUPPORTED`. Errors name the variable that is missing or wrong, and never show its value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import urlsplit

from openai_responses_mcp.adapters.remote.wire import is_loopback
from openai_responses_mcp.gate.errors import AgentsError

ProviderName = Literal["openai", "ollama", "lmstudio", "gemini", "anthropic", "openrouter"]
ListFailure = Literal["http_error", "timeout", "network_error", "invalid_payload", "empty_response"]
ListSource = Literal["live", "configured", "default", "none"]


class ModelList(list[str]):
    """Names of models. If `source` is not `live`, `reason` says why the provider's own list is missing."""

    def __init__(
        self, models: list[str], source: ListSource = "live", reason: ListFailure | None = None, detail: str = ""
    ) -> None:
        super().__init__(models)
        self.source = source
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Quirks:
    """Which parts of a request a provider supports.

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
    """One row of the table. `default_key` is for servers that need a key but do not check it."""

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
            # Ignores tool_choice: the model decides whether to call a tool.
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
            # Refuses unknown fields and schema keywords.
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


# ---------------------------------------------------------------------------------------------------------------------
# From the environment

CHOICE_VARIABLE = "AGENTS_MODEL_PROVIDER"
TIMEOUT_VARIABLE = "AGENTS_REQUEST_TIMEOUT_MS"
DEFAULT_PROVIDER: ProviderName = "openai"
DEFAULT_TIMEOUT_MS = 60_000
TIMEOUTS_MS = range(1_000, 120_001)
LONGEST_MODEL_NAME = 128
OFFICIAL_OPENAI_HOST = "api.openai.com"

Api = Literal["chat_completions", "responses"]

_VERSION = re.compile(r"v[0-9]+[a-z0-9]*")


@dataclass(frozen=True, slots=True)
class CompatModelConfig:
    """The address of a model, and how to talk to it."""

    base_url: str
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    api_key: str = field(default="none", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    quirks: Quirks = NO_QUIRKS
    api: Api = "chat_completions"
    provider: str = "compatible"
    key_variable: str = "the variable of its key"
    base_url_variable: str = "the variable of its address"
    model_variable: str = "the variable of its model"

    def __post_init__(self) -> None:
        base_url_problem = _address_problem(self.base_url)
        if base_url_problem:
            raise config_error(f"base_url {base_url_problem}")
        if type(self.timeout_ms) is not int or self.timeout_ms not in TIMEOUTS_MS:
            raise config_error(f"timeout_ms ({TIMEOUT_VARIABLE}) is a whole number from 1000 to 120000")

    @property
    def timeout_seconds(self) -> float:
        return self.timeout_ms / 1000


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """A provider with its settings from the environment."""

    spec: ProviderSpec
    config: CompatModelConfig
    model: str | None

    def model_name(self, given: str | None) -> str:
        name: object = given if given is not None else self.model
        if name is None:
            raise config_error(f"No model is chosen: set {self.spec.model_variable} or give its name", self.spec)
        if not isinstance(name, str) or not 1 <= len(name.strip()) <= LONGEST_MODEL_NAME:
            message = f"A model's name ({self.spec.model_variable}) has 1 to {LONGEST_MODEL_NAME} characters"
            raise config_error(message, self.spec)
        return name.strip()


def config_error(message: str, spec: ProviderSpec | None = None, **facts: object) -> AgentsError:
    provider = {} if spec is None else {"provider": spec.name}
    return AgentsError("AGENTS-E-PROVIDER-CONFIG", message, details={**provider, **facts})


def chosen_provider(name: str | None, environ: Mapping[str, str]) -> ProviderSpec:
    wanted = name if name is not None else environ.get(CHOICE_VARIABLE, "").strip() or DEFAULT_PROVIDER
    found = next((spec for spec in PROVIDERS.values() if spec.name == wanted), None)
    if found is None:
        known = ", ".join(get_args(ProviderName))
        raise config_error(f"A provider ({CHOICE_VARIABLE}) is one of {known}")
    return found


def settings_from(spec: ProviderSpec, environ: Mapping[str, str]) -> ProviderSettings:
    key = _value(spec.key_variable, environ) or spec.default_key
    if key is None:
        raise config_error(f"{spec.name} needs a key: set {spec.key_variable}", spec, variable=spec.key_variable)
    if not key.isascii() or not key.isprintable() or " " in key:
        message = f"The key in {spec.key_variable} has characters that no key has; copy it again"
        raise config_error(message, spec, variable=spec.key_variable)
    base_url = _base_url(spec, environ)
    is_official = urlsplit(base_url).hostname == OFFICIAL_OPENAI_HOST
    headers = {header: _value(variable, environ) for header, variable in spec.header_variables.items()}
    config = CompatModelConfig(
        base_url=base_url,
        timeout_ms=timeout_ms_from(environ),
        api_key=key,
        headers={header: value for header, value in headers.items() if value},
        quirks=spec.quirks,
        api="responses" if spec.name == "openai" and is_official else "chat_completions",
        provider=spec.name,
        key_variable=spec.key_variable,
        base_url_variable=spec.base_url_variable,
        model_variable=spec.model_variable,
    )
    return ProviderSettings(spec, config, _value(spec.model_variable, environ) or spec.default_model)


def timeout_ms_from(environ: Mapping[str, str]) -> int:
    written = _value(TIMEOUT_VARIABLE, environ)
    if written is None:
        return DEFAULT_TIMEOUT_MS
    number = int(written) if written.isascii() and written.isdigit() and len(written) < 10 else 0
    if number not in TIMEOUTS_MS:
        raise config_error(f"{TIMEOUT_VARIABLE} is a whole number from 1000 to 120000", variable=TIMEOUT_VARIABLE)
    return number


def completed_base_url(base_url: str, usual: str) -> str:
    """The address with the missing part of its usual path, unless it already names a version."""
    base_url = base_url.rstrip("/")
    there = [part for part in urlsplit(base_url).path.split("/") if part]
    suffix = [part for part in urlsplit(usual).path.split("/") if part]
    if there and _VERSION.fullmatch(there[-1]) and there[-1] not in suffix:
        return base_url
    overlap = next(size for size in range(len(suffix), -1, -1) if there[len(there) - size :] == suffix[:size])
    return "/".join([base_url, *suffix[overlap:]])


def _base_url(spec: ProviderSpec, environ: Mapping[str, str]) -> str:
    written = _value(spec.base_url_variable, environ)
    if written is None:
        return spec.default_base_url
    problem = _address_problem(written, is_key_secret=spec.default_key is None)
    if problem:
        raise config_error(f"{spec.base_url_variable} {problem}", spec, variable=spec.base_url_variable)
    return completed_base_url(written, spec.default_base_url)


def _value(variable: str, environ: Mapping[str, str]) -> str | None:
    """None if it is empty or not set."""
    return environ.get(variable, "").strip() or None


def _address_problem(address: object, *, is_key_secret: bool = False) -> str | None:
    try:
        text = address if isinstance(address, str) else ""
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https") or not host or not text.isprintable() or " " in text:
        return "must be an http:// or https:// address with a host"
    if parts.username is not None or parts.password is not None:
        return "may not contain a user name or password; set the key in its variable"
    if parts.query or parts.fragment:
        return "must end with its path, without ? and #"
    if is_key_secret and parts.scheme == "http" and not is_loopback(host):
        return "would send the key in the clear; use https://"
    return None
