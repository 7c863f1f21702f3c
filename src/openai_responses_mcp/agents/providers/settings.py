"""From the environment to the settings of one provider. What is missing or wrong is named by its variable, never shown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit

from openai_responses_mcp.agents.providers.table import NO_QUIRKS, PROVIDERS, ProviderName, ProviderSpec, Quirks
from openai_responses_mcp.gate.errors import AgentsError

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
    """Where a model is and how to talk to it there."""

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
    """One provider, as the environment sets it up."""

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
    """The address with its usual end added as far as that is missing, unless it names a version already."""
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
    """What is empty counts as not set."""
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
        return "may not contain a user name or password; keys have variables of their own"
    if parts.query or parts.fragment:
        return "must end with its path, without ? and #"
    if is_key_secret and parts.scheme == "http" and not is_loopback(host):
        return "would send the key in the clear; use https://"
    return None


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
