"""The configuration: flags > environment > YAML file > defaults.

What stands further left wins, key by key; a list replaces the whole list. Nothing is paid for what is not there: the
text of a variable or a flag is checked by the rules in `settings`, and only a file with something in it brings in ruamel
and pydantic, which keep the same rules. All problems are collected and told together, one line each, before anything
else starts.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from openai_responses_mcp import __version__
from openai_responses_mcp.domain.policy import SYSTEM_POLICY, join_policy
from openai_responses_mcp.settings import (
    ModelProfiles,
    OpenAISettings,
    Profile,
    Settings,
    from_text,
    is_section,
    key_paths,
    kind_at,
    wanted,
)

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from openai_responses_mcp.adapters.yaml_file import KeyPath, YamlDocument

MAX_FILE_BYTES = 1024 * 1024

VARIABLES: dict[str, tuple[str, ...]] = {
    "OPENAI_BASE_URL": ("openai", "base_url"),
    "OPENAI_API_TIMEOUT": ("request", "timeout_ms"),
    "OPENAI_MAX_RETRIES": ("request", "max_retries"),
    "MODEL_ANSWER": ("model_profiles", "answer", "model"),
    "ANSWER_EFFORT": ("model_profiles", "answer", "reasoning_effort"),
    "ANSWER_VERBOSITY": ("model_profiles", "answer", "verbosity"),
    "MODEL_DETAILED": ("model_profiles", "answer_detailed", "model"),
    "MODEL_QUICK": ("model_profiles", "answer_quick", "model"),
    "MAX_CITATIONS": ("policy", "max_citations"),
    "SEARCH_RECENCY_DAYS": ("search", "defaults", "recency_days"),
    "SEARCH_MAX_RESULTS": ("search", "defaults", "max_results"),
}
"""Which key a variable sets. `DEBUG` sets two and has a spelling of its own."""

_DEBUG = ("server", "debug")
_DEBUG_FILE = ("server", "debug_file")
_DEBUG_ON = ("1", "true")
_DEBUG_OFF = ("0", "false", "no", "off")

_RETIRED_KEYS: dict[tuple[str, ...], str] = {
    ("responses",): "answers are always asked for in the same way",
    ("policy", "search_triggers"): "the system policy says when to search",
    ("policy", "prefer_search_when_unsure"): "the system policy says so",
    ("policy", "requery_attempts"): "the model decides how often it searches",
    ("policy", "require_dates_iso"): "dates are always ISO dates",
    ("server", "transport"): "stdio is the only transport",
}
_TRANSPORT = ("server", "transport")
_RETIRED_VARIABLE = "REQUERY_ATTEMPTS"

_UNKNOWN_KEY = "extra_forbidden"  # as pydantic calls it

_API_KEY = re.compile(r"\bsk-[A-Za-z0-9_-]{8,}")
_SECRET_NAME = re.compile(r"(^key|apikey|accesskey|token|secret|password|authorization|bearer|credential)s?$")
_SHORTEST_KEY = 8
_LONGEST_SHOWN_VALUE = 60


class Flags(NamedTuple):
    """The command line, as far as it configures."""

    config: str | None = None
    model: str | None = None
    debug: bool = False
    debug_file: str | None = None

    def names(self) -> tuple[str, ...]:
        given = {"--config": self.config, "--model": self.model, "--debug": self.debug_file or self.debug or None}
        return tuple(name for name, value in given.items() if value is not None)


class Sources(NamedTuple):
    """The file that was read, and the variables and flags that had a say."""

    yaml: str | None = None
    env: tuple[str, ...] = ()
    cli: tuple[str, ...] = ()


class Configuration(NamedTuple):
    """The outcome: the settings, where they come from, what to warn of, and the instructions for the model."""

    settings: Settings
    sources: Sources
    warnings: tuple[str, ...]
    system_policy: str


class ConfigError(Exception):
    """The configuration cannot be used; `problems` says why, one line each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(flags: Flags, environ: Mapping[str, str]) -> Configuration:
    """Raises `ConfigError` with every problem there is."""
    findings = _Findings()
    file = _read_file(flags, environ, findings)
    settings, written = _check_file(file, environ, findings) if file else (Settings(), {})
    overrides = _overrides(flags, environ, findings)
    settings = _with_overrides(settings, written, overrides, environ)
    system_policy = _system_policy(settings, file, environ, findings)
    _warn_of_minimal_effort(settings, findings)
    if findings.problems:
        raise ConfigError(_lines(findings.problems, environ, _key_variable(file), settings))
    warnings = _lines(findings.warnings, environ, _key_variable(file), settings)
    variables = tuple(dict.fromkeys(source for _, source in overrides.values() if not source.startswith("--")))
    sources = Sources(file.path if file else None, variables, flags.names())
    return Configuration(settings, sources, warnings, system_policy)


def show(configuration: Configuration, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What `--show-config` prints: where the settings come from and what they are, without secrets."""
    settings, sources = configuration.settings, configuration.sources
    mask = _mask_for(environ, settings.openai.api_key_env, settings)
    origins = {"defaults": True, "yaml": sources.yaml, "env": list(sources.env), "cli": list(sources.cli)}
    return {"version": __version__, "sources": origins, "effective": _plain(settings, mask)}


def default_paths(environ: Mapping[str, str], platform: str = sys.platform) -> tuple[str, ...]:
    """Where the file is looked for when no flag names one; the first that exists is read."""
    at_home = _expanded(os.path.join("~", ".config", "openai-responses-mcp", "config.yaml"), environ)
    roaming = environ.get("APPDATA")
    if platform == "win32" and roaming:
        return os.path.join(roaming, "openai-responses-mcp", "config.yaml"), at_home
    return (at_home,)


# What was found on the way; lines are made of it at the end, when it is known what they must not show


class _Finding(NamedTuple):
    """A problem or a warning; `found` holds the value that is wrong, if there is one to show."""

    text: str
    found: tuple[Any, ...] = ()


class _Findings:
    def __init__(self) -> None:
        self.problems: list[_Finding] = []
        self.warnings: list[_Finding] = []

    def problem(self, text: str, *found: Any) -> None:
        self.problems.append(_Finding(text, found))

    def warning(self, text: str) -> None:
        self.warnings.append(_Finding(text))

    def misfit(self, name: str, kind: Any, found: Any) -> None:
        """The one form in which a wrong value is told, wherever it comes from."""
        self.problem(f"{name} must be {wanted(kind)}", found)


# The file


class _File(NamedTuple):
    """A file that could be read as YAML; `data` is empty when nothing is in it."""

    path: str
    data: dict[str, Any]
    document: "YamlDocument"

    def place(self, key: "KeyPath") -> str:
        return f"{self.path}:{self.document.line_of(key)}"


def _read_file(flags: Flags, environ: Mapping[str, str], findings: _Findings) -> _File | None:
    paths = default_paths(environ) if flags.config is None else (_expanded(flags.config, environ),)
    for path in paths:
        try:
            return _parse(path, _read_text(path), findings)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as exc:
            findings.problem(f"{path}: {_reason(exc)}")
            return None
    if flags.config is not None:
        findings.warning(f"--config {flags.config}: there is no such file; going on without it")
    return None


def _read_text(path: str) -> str:
    """Raises OSError when there is nothing to read, ValueError when it is not a text of bearable size."""
    if os.path.isdir(path):
        raise ValueError("is a directory, not a file")
    with open(path, "rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError("is larger than 1 MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None


def _reason(exc: OSError | ValueError) -> str:
    return f"cannot be read ({exc.strerror})" if isinstance(exc, OSError) else str(exc)


def _parse(path: str, text: str, findings: _Findings) -> _File | None:
    from openai_responses_mcp.adapters.yaml_file import YamlProblem, read_yaml

    try:
        document = read_yaml(text)
    except YamlProblem as exc:
        findings.problem(f"{path}:{exc.line}: {exc.text}")
        return None
    if not isinstance(document.data, dict | None):
        findings.problem(f"{path}:1: the file must be {wanted(Settings)}")
        return None
    return _File(path, document.data or {}, document)


def _check_file(file: _File, environ: Mapping[str, str], findings: _Findings) -> tuple[Settings, dict[str, Any]]:
    """The settings that the file makes, and what is written in it; the defaults and nothing when it has problems."""
    key_variable = _key_variable(file)
    secrets = _secrets_in(file.data, environ.get(key_variable, ""))
    for path in secrets:
        text = f"{_dotted(path)} holds an API key, and keys come from the environment only: set {key_variable}"
        findings.problem(f"{file.place(path)}: {text}")
    written = _without_nulls(file.data)
    _drop_retired(written, file, findings)
    _drop_listed_sections(written, file, findings)
    errors, settings = _validate(written)
    for path, error in sorted(errors.items(), key=lambda item: file.document.line_of(item[0])):
        if not any(secret[: len(path)] == path for secret in secrets):
            _tell(path, error, file, findings)
    return (Settings(), {}) if errors else (settings, written)


def _validate(written: dict[str, Any]) -> "tuple[dict[KeyPath, ErrorDetails], Settings]":
    import json

    from pydantic import TypeAdapter, ValidationError

    try:
        # Through JSON, because only there does strict mode take a list for a tuple and an object for a section.
        return {}, TypeAdapter(Settings).validate_json(json.dumps(written), strict=True)
    except ValidationError as exc:
        return {_path_of(error): error for error in exc.errors(include_url=False)}, Settings()


def _path_of(error: "ErrorDetails") -> "KeyPath":
    """Where the error is. What may be a whole number or a fraction is reported once as each: that is one error."""
    path = error["loc"]
    return path[:-1] if error["type"] != _UNKNOWN_KEY and path[-1] in ("int", "float") else path


def _tell(path: "KeyPath", error: "ErrorDetails", file: _File, findings: _Findings) -> None:
    if error["type"] == _UNKNOWN_KEY:
        findings.problem(f"{file.place(path)}: unknown key {_dotted(path)}{_nearest(path)}")
    else:
        findings.misfit(f"{file.place(path)}: {_dotted(path)}", kind_at(path), error["input"])


def _nearest(path: "KeyPath") -> str:
    """Looks among the keys that may stand there first, then among all."""
    from difflib import get_close_matches

    everywhere = {known[-1]: known for known in key_paths()}
    there = {known[-1]: known for known in key_paths() if known[:-1] == path[:-1]}
    for names in (there, everywhere):
        for name in get_close_matches(str(path[-1]).lower(), names, n=1):
            return f" (did you mean {_dotted(names[name])}?)"
    return ""


def _secrets_in(value: Any, key: str, path: "KeyPath" = ()) -> "list[KeyPath]":
    """Where the file holds what looks like an API key, is named like one, or is the one in use."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for step, item in items for found in _secrets_in(item, key, (*path, step))]
    if not isinstance(value, str) or not value.strip():
        return []
    is_key = _API_KEY.search(value) or (len(key) >= _SHORTEST_KEY and key in value)
    return [path] if is_key or _is_named_like_a_secret(path) else []


def _is_named_like_a_secret(path: "KeyPath") -> bool:
    names = [step for step in path if isinstance(step, str)]
    if not names or tuple(names) in key_paths():
        return False
    return _SECRET_NAME.search(names[-1].lower().replace("_", "").replace("-", "")) is not None


def _without_nulls(section: dict[str, Any], path: tuple[str, ...] = ()) -> dict[str, Any]:
    """A copy in which a key without a value is absent; only `answer` can be taken away by setting it to null."""
    return {
        name: _without_nulls(value, (*path, name)) if isinstance(value, dict) else value
        for name, value in section.items()
        if value is not None or (*path, name) == ("model_profiles", "answer")
    }


def _drop_retired(written: dict[str, Any], file: _File, findings: _Findings) -> None:
    for path, reason in _RETIRED_KEYS.items():
        section = written if len(path) == 1 else written.get(path[0])
        if not isinstance(section, dict) or path[-1] not in section:
            continue
        value = section.pop(path[-1])
        name = f"{file.place(path)}: {_dotted(path)}"
        if path == _TRANSPORT and value != "stdio":
            findings.misfit(name, Literal["stdio"], value)
        else:
            findings.warning(f"{name} is no longer used ({reason})")


def _drop_listed_sections(
    written: dict[str, Any], file: _File, findings: _Findings, path: tuple[str, ...] = ()
) -> None:
    """Pydantic would fill a section from a list, by position; here that is a wrong value like any other."""
    sections = [known for known in key_paths() if known[:-1] == path and is_section(kind_at(known))]
    for section in sections:
        value = written.get(section[-1])
        if isinstance(value, dict):
            _drop_listed_sections(value, file, findings, section)
        elif isinstance(value, list):
            findings.misfit(f"{file.place(section)}: {_dotted(section)}", kind_at(section), value)
            del written[section[-1]]


def _key_variable(file: _File | None) -> str:
    """The name of the variable with the API key, known before the file has been checked."""
    section = file.data.get("openai") if file else None
    name = section.get("api_key_env") if isinstance(section, dict) else None
    return name if isinstance(name, str) and not _API_KEY.search(name) else OpenAISettings().api_key_env


# Variables and flags

# Key path -> value, and the variable or flag that it comes from.
_Overrides = dict[tuple[str, ...], tuple[Any, str]]


def _overrides(flags: Flags, environ: Mapping[str, str], findings: _Findings) -> _Overrides:
    """What variables and flags say, flags last, so that they win."""
    spelled = [(name, path, environ.get(name, "").strip()) for name, path in VARIABLES.items()]
    texts = [(name, path, text) for name, path, text in spelled if text]
    if flags.model is not None:
        texts.append(("--model", VARIABLES["MODEL_ANSWER"], flags.model))
    overrides: _Overrides = {}
    for name, path, text in texts:
        try:
            overrides[path] = (from_text(kind_at(path), text), name)
        except ValueError:
            findings.misfit(name, kind_at(path), text)
    if environ.get(_RETIRED_VARIABLE, "").strip():
        findings.warning(f"{_RETIRED_VARIABLE} is no longer used ({_RETIRED_KEYS['policy', 'requery_attempts']})")
    return overrides | _debug_overrides(flags, environ)


def _debug_overrides(flags: Flags, environ: Mapping[str, str]) -> _Overrides:
    overrides: _Overrides = {}
    text = environ.get("DEBUG", "").strip()
    if text:
        overrides[_DEBUG] = (text.lower() not in _DEBUG_OFF, "DEBUG")
    if text and text.lower() not in _DEBUG_ON + _DEBUG_OFF:
        overrides[_DEBUG_FILE] = (text, "DEBUG")
    if flags.debug or flags.debug_file:
        overrides[_DEBUG] = (True, "--debug")
    if flags.debug_file:
        overrides[_DEBUG_FILE] = (flags.debug_file, "--debug")
    return overrides


def _with_overrides(
    settings: Settings, written: dict[str, Any], overrides: _Overrides, environ: Mapping[str, str]
) -> Settings:
    profiles = {name: dict(profile or {}) for name, profile in written.get("model_profiles", {}).items()}
    for path, (value, _) in overrides.items():
        if path[0] == "model_profiles":
            profiles.setdefault(path[1], {})[path[2]] = value
        else:
            settings = _with_value(settings, path, value)
    if settings.server.debug_file is not None:
        settings = _with_value(settings, _DEBUG_FILE, _expanded(settings.server.debug_file, environ))
    return settings._replace(model_profiles=_profiles(settings.model_profiles.answer, profiles))


def _with_value(node: Any, path: tuple[str, ...], value: Any) -> Any:
    name, *rest = path
    return node._replace(**{name: _with_value(getattr(node, name), tuple(rest), value) if rest else value})


def _profiles(answer: Profile | None, changes: dict[str, dict[str, Any]]) -> ModelProfiles:
    """`answer` as changed, and the other profiles: what is said of them, and `answer` in the rest."""
    if changes.get("answer"):
        answer = (answer or Profile())._replace(**changes["answer"])
    others = {name: (answer or Profile())._replace(**change) for name, change in changes.items() if change}
    return ModelProfiles(**{**others, "answer": answer})


# The rest


def _system_policy(settings: Settings, file: _File | None, environ: Mapping[str, str], findings: _Findings) -> str:
    system = settings.policy.system
    if file is None or (system.source == "builtin" and system.path is None):
        return SYSTEM_POLICY
    name = f"{file.place(('policy', 'system', 'path'))}: policy.system.path"
    if system.source == "builtin":
        findings.warning(f"{name} is not read unless policy.system.source is file")
        return SYSTEM_POLICY
    if system.path is None:
        findings.problem(f"{name} is needed when policy.system.source is file")
        return SYSTEM_POLICY
    path = _expanded(system.path, environ)
    try:
        return join_policy(SYSTEM_POLICY, _read_text(path), system.merge)
    except (OSError, ValueError) as exc:
        findings.problem(f"{name}: {path} {_reason(exc)}")
        return SYSTEM_POLICY


def _warn_of_minimal_effort(settings: Settings, findings: _Findings) -> None:
    profiles = settings.model_profiles
    for name, profile in profiles._asdict().items():
        if profile is not None and profile.reasoning_effort == "minimal":
            findings.warning(
                f"model_profiles.{name}.reasoning_effort: the API refuses minimal together with web search; "
                "set none or low instead"
            )


def _expanded(path: str, environ: Mapping[str, str]) -> str:
    """`~` as the given environment sees it; `~name` and a missing HOME are left to the system."""
    home = environ.get("HOME")
    if home and path[:1] == "~" and path[1:2] in ("", "/", os.sep):
        return home + path[1:]
    return os.path.expanduser(path)


def _dotted(path: "KeyPath") -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _plain(value: Any, mask: Callable[[str], str]) -> Any:
    if is_section(value):
        return {name: _plain(inner, mask) for name, inner in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(item, mask) for item in value]
    return mask(value) if isinstance(value, str) else value


def _lines(
    findings: list[_Finding], environ: Mapping[str, str], key_variable: str, settings: Settings
) -> tuple[str, ...]:
    if not findings:
        return ()
    mask = _mask_for(environ, key_variable, settings)
    return tuple(_line(finding, mask) for finding in findings)


def _line(finding: _Finding, mask: Callable[[str], str]) -> str:
    text = mask(finding.text) + "".join(f" (found {_shown(value, mask)})" for value in finding.found)
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _shown(value: Any, mask: Callable[[str], str]) -> str:
    """Masked before it is cut, so that no half of a key is left over; nested data could hide one and is not shown."""
    import json

    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) for item in items):
        return "a list" if isinstance(value, list) else "a mapping"
    text = mask(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _LONGEST_SHOWN_VALUE else text[:_LONGEST_SHOWN_VALUE] + "..."


def _mask_for(environ: Mapping[str, str], key_variable: str, settings: Settings) -> Callable[[str], str]:
    from openai_responses_mcp.domain.masking import SecretMask, secrets_in

    return SecretMask(secrets_in(environ, key_variable=key_variable, base_url=settings.openai.base_url))
