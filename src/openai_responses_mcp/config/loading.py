"""The configuration: flags > environment > YAML file > defaults.

The leftmost wins, key by key; a list replaces the whole list. Variables and flags are checked by the rules in
`settings`; only a file loads ruamel and pydantic, which apply the same rules. All problems are reported together, one
line each, before anything else starts.
"""

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from openai_responses_mcp import __version__
from openai_responses_mcp.adapters.bounded_file import read_text, reason_of
from openai_responses_mcp.config.file import (
    MAX_FILE_BYTES,
    RETIRED_KEYS,
    ConfigFile,
    Findings,
    check_file,
    finding_lines,
    mask_for,
    read_file,
)
from openai_responses_mcp.config.settings import (
    BACKGROUND_BY_DEFAULT,
    ModelProfiles,
    OpenAISettings,
    Profile,
    Settings,
    from_text,
    is_section,
    kind_at,
)
from openai_responses_mcp.domain.policy import join_policy, policy_in
from openai_responses_mcp.domain.texts import Sentence, about

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
"""The key that each variable sets. `DEBUG` sets two, and is parsed separately."""

_DEBUG = ("server", "debug")
_DEBUG_FILE = ("server", "debug_file")
_DEBUG_ON = ("1", "true")
_DEBUG_OFF = ("0", "false", "no", "off")

_RETIRED_VARIABLE = "REQUERY_ATTEMPTS"


class Flags(NamedTuple):
    """The settings on the command line."""

    config: str | None = None
    model: str | None = None
    debug: bool = False
    debug_file: str | None = None

    def names(self) -> tuple[str, ...]:
        given = {"--config": self.config, "--model": self.model, "--debug": self.debug_file or self.debug or None}
        return tuple(name for name, value in given.items() if value is not None)


class Sources(NamedTuple):
    """The file that was read, and the variables and flags that took effect."""

    yaml: str | None = None
    env: tuple[str, ...] = ()
    cli: tuple[str, ...] = ()


class Configuration(NamedTuple):
    """The settings, where they come from, warnings, and the instructions for the model."""

    settings: Settings
    sources: Sources
    warnings: tuple[str, ...]
    system_policy: str


class ConfigError(Exception):
    """The configuration cannot be used; `problems` says why, one line each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(flags: Flags, environ: Mapping[str, str], say: Callable[[str], str] = str) -> Configuration:
    """Raises `ConfigError` with every problem there is. `say` puts sentences into the language of the reader."""
    configuration, problems = load_what_can_be_used(flags, environ, say)
    if problems:
        raise ConfigError(problems)
    return configuration


def load_what_can_be_used(
    flags: Flags, environ: Mapping[str, str], say: Callable[[str], str] = str
) -> tuple[Configuration, tuple[str, ...]]:
    """The configuration without the invalid settings, and the problems."""
    findings = Findings()
    file, settings, written = _from_file(flags, environ, findings)
    overrides = _overrides(flags, environ, findings)
    settings = _with_overrides(settings, written, overrides, environ)
    system_policy = _system_policy(settings, file, environ, findings)
    _warn_of_minimal_effort(settings, findings)
    key_variable = file.key_variable if file else OpenAISettings().api_key_env
    problems = finding_lines(findings.problems, environ, key_variable, settings, say)
    warnings = finding_lines(findings.warnings, environ, key_variable, settings, say)
    variables = tuple(dict.fromkeys(source for _, source in overrides.values() if not source.startswith("--")))
    sources = Sources(file.path if file else None, variables, flags.names())
    return Configuration(settings, sources, warnings, system_policy), problems


def show(configuration: Configuration, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The output of `--show-config`: sources and settings, without secrets."""
    settings, sources = configuration.settings, configuration.sources
    mask = mask_for(environ, settings.openai.api_key_env, settings)
    origins = {"defaults": True, "yaml": sources.yaml, "env": list(sources.env), "cli": list(sources.cli)}
    return {"version": __version__, "sources": origins, "effective": _plain(_in_effect(settings), mask)}


def _in_effect(settings: Settings) -> Settings:
    """With every profile as it is used, also one that is not configured."""
    answer, background = settings.model_profiles.answer, settings.tools_in_background
    profiles: dict[str, Profile | None] = {}
    for name, profile in settings.model_profiles._asdict().items():
        used = profile or answer
        profiles[name] = used and used._replace(background=name in background)
    return settings._replace(model_profiles=ModelProfiles(**profiles))


def default_paths(environ: Mapping[str, str], platform: str = sys.platform) -> tuple[str, ...]:
    """The first of these that exists is read, unless a flag names another file."""
    place = os.path.join("openai-responses-mcp", "config.yaml")
    folders = [expanded(os.path.join("~", ".config"), environ)]
    stated = environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(stated):  # The standard for this variable ignores relative paths.
        folders.insert(0, stated)
    if platform == "win32" and environ.get("APPDATA"):
        folders.insert(0, environ["APPDATA"])
    return tuple(dict.fromkeys(os.path.join(folder, place) for folder in folders))


def _from_file(
    flags: Flags, environ: Mapping[str, str], findings: Findings
) -> tuple[ConfigFile | None, Settings, dict[str, Any]]:
    """The file if it can be used, its settings, and its data as written."""
    paths = default_paths(environ) if flags.config is None else (expanded(flags.config, environ),)
    existing = [path for path in paths if not _is_missing(path)]
    if not existing and flags.config is not None:
        says = "--config {file}: there is no such file, so the settings in it are not used"
        findings.warning(Sentence(says, file=flags.config))
    if not existing:
        return None, Settings(), {}
    file = read_file(existing[0], findings)
    settings, written = check_file(file, environ, findings) if file else (Settings(), {})
    return file, settings, written


def _is_missing(path: str) -> bool:
    """Other problems of the file are reported when it is read."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


# Variables and flags

# Key path -> value, and the variable or flag that it comes from.
_Overrides = dict[tuple[str, ...], tuple[Any, str]]


def _overrides(flags: Flags, environ: Mapping[str, str], findings: Findings) -> _Overrides:
    """The values of variables and flags; flags win."""
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
        reason = RETIRED_KEYS["policy", "requery_attempts"]
        findings.warning(Sentence("{name} is no longer used ({reason})", name=_RETIRED_VARIABLE, reason=reason))
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
        settings = _with_value(settings, _DEBUG_FILE, expanded(settings.server.debug_file, environ))
    return settings._replace(model_profiles=_profiles(settings.model_profiles.answer, profiles))


def _with_value(node: Any, path: tuple[str, ...], value: Any) -> Any:
    name, *rest = path
    return node._replace(**{name: _with_value(getattr(node, name), tuple(rest), value) if rest else value})


def _profiles(answer: Profile | None, changes: dict[str, dict[str, Any]]) -> ModelProfiles:
    """`answer` with its changes. The other profiles take from it what they do not set, except `background`."""
    if changes.get("answer"):
        answer = (answer or Profile())._replace(**changes["answer"])
    others = {
        name: (answer or Profile())._replace(**{"background": name in BACKGROUND_BY_DEFAULT, **change})
        for name, change in changes.items()
        if change
    }
    return ModelProfiles(**{**others, "answer": answer})


def _system_policy(settings: Settings, file: ConfigFile | None, environ: Mapping[str, str], findings: Findings) -> str:
    system, builtin = settings.policy.system, policy_in(settings.search.timezone)
    if file is None or (system.source == "builtin" and system.path is None):
        return builtin
    name = file.place(("policy", "system", "path"))
    if system.source == "builtin":
        findings.warning(Sentence("{name} is not read unless policy.system.source is file", name=name))
        return builtin
    if system.path is None:
        findings.problem(Sentence("{name} is needed when policy.system.source is file", name=name))
        return builtin
    path = expanded(system.path, environ)
    try:
        return join_policy(builtin, read_text(path, most_bytes=MAX_FILE_BYTES), system.merge)
    except (OSError, ValueError) as exc:
        findings.problem(about(name, Sentence("{file} {reason}", file=path, reason=reason_of(exc))))
        return builtin


def _warn_of_minimal_effort(settings: Settings, findings: Findings) -> None:
    profiles = settings.model_profiles
    for name, profile in profiles._asdict().items():
        if profile is not None and profile.reasoning_effort == "minimal":
            refused = Sentence("the API refuses minimal together with web search; set none or low instead")
            findings.warning(about(f"model_profiles.{name}.reasoning_effort", refused))


def expanded(path: str, environ: Mapping[str, str]) -> str:
    """With `~` replaced by HOME; `~name` and a missing HOME are left to the system."""
    home = environ.get("HOME")
    if home and path[:1] == "~" and path[1:2] in ("", "/", os.sep):
        return home + path[1:]
    return os.path.expanduser(path)


def _plain(value: Any, mask: Callable[[str], str]) -> Any:
    if is_section(value):
        return {name: _plain(inner, mask) for name, inner in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: _plain(inner, mask) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item, mask) for item in value]
    return mask(value) if isinstance(value, str) else value
