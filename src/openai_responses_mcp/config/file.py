"""The YAML file: read within limits and checked against the settings, every problem with its line and key.

Only a file brings in ruamel and pydantic.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from openai_responses_mcp.adapters.bounded_file import read_text, reason_of
from openai_responses_mcp.config.settings import OpenAISettings, Settings, is_section, key_paths, kind_at, wanted
from openai_responses_mcp.domain.texts import Sentence, about, one_line

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from openai_responses_mcp.adapters.yaml_file import KeyPath, YamlDocument

MAX_FILE_BYTES = 1024 * 1024

RETIRED_KEYS: dict[tuple[str, ...], str] = {
    ("responses",): Sentence("answers are always asked for in the same way"),
    ("policy", "search_triggers"): Sentence("the system policy says when to search"),
    ("policy", "prefer_search_when_unsure"): Sentence("the system policy says so"),
    ("policy", "requery_attempts"): Sentence("the model decides how often it searches"),
    ("policy", "require_dates_iso"): Sentence("dates are always ISO dates"),
    ("server", "transport"): Sentence("stdio is the only transport"),
}
_TRANSPORT = ("server", "transport")

# Request field that the server sets -> what to use instead of request.extra.
SERVER_FIELDS: dict[str, str] = {
    "background": Sentence("use model_profiles.answer.background"),
    "include": Sentence("use request.omit to leave it out"),
    "input": Sentence("it holds the question"),
    "instructions": Sentence("use policy.system"),
    "max_output_tokens": Sentence("use request.max_output_tokens"),
    "model": Sentence("use model_profiles"),
    "previous_response_id": Sentence("it comes with the question"),
    "reasoning": Sentence("use model_profiles.answer.reasoning_effort"),
    "store": Sentence("use request.store"),
    "stream": Sentence("leave it out"),
    "text": Sentence("use model_profiles.answer.verbosity"),
    "tools": Sentence("use search"),
    "truncation": Sentence("use request.omit to leave it out"),
}
_EXTRA = ("request", "extra")

_SWITCHED_OFF_BY_NULL = {("model_profiles", "answer"), ("server", "hand_over_after_s")}

# As pydantic calls them.
_UNKNOWN_KEY = "extra_forbidden"
_KINDS_OF_A_VALUE = ("int", "float", "literal['auto']")

# As text, which `re` compiles with the first use: most starts read no file.
_API_KEY = r"\bsk-[A-Za-z0-9_-]{8,}"
_NAMES_OF_KEYS = r"(^key|apikey|accesskey|token|secret|password|authorization|bearer|credential)s?$"
_SHORTEST_KEY = 8


# Problems and warnings. Their lines are made at the end, when it is known what to mask.

_LONGEST_SHOWN_VALUE = 60


# What it says, and the value that is wrong, if there is one to show.
ConfigFinding = tuple[Sentence, tuple[Any, ...]]


class Findings:
    def __init__(self) -> None:
        self.problems: list[ConfigFinding] = []
        self.warnings: list[ConfigFinding] = []

    def problem(self, text: Sentence, *found: Any) -> None:
        self.problems.append((text, found))

    def warning(self, text: Sentence) -> None:
        self.warnings.append((text, ()))

    def misfit(self, name: str, kind: Any, found: Any) -> None:
        """A wrong value, from the file, a variable or a flag."""
        self.problem(Sentence("{name} must be {kind}", name=name, kind=wanted(kind)), found)


def finding_lines(
    findings: list[ConfigFinding],
    environ: Mapping[str, str],
    key_variable: str,
    settings: Settings,
    say: Callable[[str], str],
) -> tuple[str, ...]:
    """`say` puts a sentence into the language of the reader."""
    if not findings:
        return ()
    mask = mask_for(environ, key_variable, settings)
    lines = []
    for text, found in findings:
        line = mask(say(text))
        for value in found:
            line = say(Sentence("{problem} (found {found})", problem=line, found=_shown(value, mask)))
        lines.append(one_line(line))
    return tuple(lines)


def _shown(value: Any, mask: Callable[[str], str]) -> str:
    """Masked before it is cut, so that no part of a key is shown. Nested data could contain a key and is not shown."""
    import json

    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) for item in items):
        return Sentence("a list") if isinstance(value, list) else Sentence("a mapping")
    text = mask(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _LONGEST_SHOWN_VALUE else text[:_LONGEST_SHOWN_VALUE] + "..."


def mask_for(environ: Mapping[str, str], key_variable: str, settings: Settings) -> Callable[[str], str]:
    from openai_responses_mcp.domain.masking import SecretMask, secrets_in

    return SecretMask(secrets_in(environ, key_variable=key_variable, base_url=settings.openai.base_url))


# The file

# The output of --show-config can be used as a file: the settings are under `effective`, after lines with warnings.
_ENVELOPE = {"version", "sources", "effective"}
_EFFECTIVE = ("effective",)
_WARNINGS = r"\A(?:openai-responses-mcp: [^\n]*\n)+(?=\{)"


class ConfigFile(NamedTuple):
    """A file that is valid YAML. `data` are the settings in it, found under the keys `within`."""

    path: str
    data: dict[str, Any]
    document: "YamlDocument"
    within: tuple[str, ...] = ()

    def place(self, key: "KeyPath") -> str:
        """File, line and name of a key."""
        return f"{self.path}:{self.line_of(key)}: {_dotted(key)}"

    def line_of(self, key: "KeyPath") -> int:
        return self.document.line_of((*self.within, *key))

    @property
    def key_variable(self) -> str:
        """The name of the variable with the API key, known before the file has been checked."""
        section = self.data.get("openai")
        name = section.get("api_key_env") if isinstance(section, dict) else None
        return name if isinstance(name, str) and not re.search(_API_KEY, name) else OpenAISettings().api_key_env


def read_file(path: str, findings: Findings) -> ConfigFile | None:
    """None when the file cannot be used."""
    try:
        return _parse(path, read_text(path, most_bytes=MAX_FILE_BYTES), findings)
    except (OSError, ValueError) as exc:
        findings.problem(about(path, reason_of(exc)))
        return None


def _parse(path: str, text: str, findings: Findings) -> ConfigFile | None:
    from openai_responses_mcp.adapters.yaml_file import YamlProblem, read_yaml

    try:
        document = read_yaml(re.sub(_WARNINGS, lambda warnings: "\n" * warnings[0].count("\n"), text))
    except YamlProblem as exc:
        findings.problem(about(f"{path}:{exc.line}", exc.text))
        return None
    if not isinstance(document.data, dict | None):
        must = Sentence("the file must be {kind}", kind=wanted(Settings))
        findings.problem(about(f"{path}:1", must))
        return None
    data = document.data or {}
    if set(data) == _ENVELOPE and isinstance(data["effective"], dict):
        return ConfigFile(path, data["effective"], document, _EFFECTIVE)
    return ConfigFile(path, data, document)


def check_file(file: ConfigFile, environ: Mapping[str, str], findings: Findings) -> tuple[Settings, dict[str, Any]]:
    """The settings, and the data as written in the file; both without keys that have problems."""
    texts = list(_texts_in(file.data))
    secrets = [path for path, text in texts if _is_secret(path, text, environ.get(file.key_variable, ""))]
    for path in secrets:
        says = "{name} holds an API key, and keys come from the environment only: set {variable}"
        findings.problem(Sentence(says, name=file.place(path), variable=file.key_variable))
    from openai_responses_mcp.domain.masking import MASK

    for path in [path for path, text in texts if file.within and MASK in text]:
        findings.problem(Sentence("{name} was masked when it was shown: write it out again", name=file.place(path)))
    written = _without_nulls(file.data)
    _drop_retired(written, file, findings)
    _drop_listed_sections(written, file, findings)
    errors, settings = _validate(written)
    for path, error in sorted(errors.items(), key=lambda item: file.line_of(item[0])):
        if any(secret[: len(path)] == path for secret in secrets):
            continue
        if error["type"] == _UNKNOWN_KEY:
            unknown = Sentence("unknown key {name}{near}", name=_dotted(path), near=_nearest(path))
            findings.problem(about(f"{file.path}:{file.line_of(path)}", unknown))
        else:
            findings.misfit(file.place(path), kind_at(path), error["input"])
    if errors:
        written = _without(written, [*errors, *secrets])
        errors, settings = _validate(written)
    for name in settings.request.extra:
        if name in SERVER_FIELDS:
            says, place = "{name} is set by the server itself: {instead}", file.place((*_EXTRA, name))
            findings.problem(Sentence(says, name=place, instead=SERVER_FIELDS[name]))
    return (Settings(), {}) if errors else (settings, written)


def _without(written: dict[str, Any], paths: "list[KeyPath]") -> dict[str, Any]:
    """A copy without these keys. A list with a wrong item is dropped."""
    import copy

    kept = copy.deepcopy(written)
    for path in paths:
        *around, last = takewhile(lambda step: isinstance(step, str), path)
        section: Any = kept
        for step in around:
            section = section.get(step, {}) if isinstance(section, dict) else {}
        if isinstance(section, dict):
            section.pop(last, None)
    return kept


def _validate(written: dict[str, Any]) -> "tuple[dict[KeyPath, ErrorDetails], Settings]":
    import json

    from pydantic import TypeAdapter, ValidationError

    try:
        # As JSON, because only then does strict mode accept a list for a tuple and an object for a section.
        return {}, TypeAdapter(Settings).validate_json(json.dumps(written), strict=True)
    except ValidationError as exc:
        return {_path_of(error): error for error in exc.errors(include_url=False)}, Settings()


def _path_of(error: "ErrorDetails") -> "KeyPath":
    """The key of the error. A value of a union type gets one error per type; they count as one."""
    path = error["loc"]
    return path[:-1] if error["type"] != _UNKNOWN_KEY and path[-1] in _KINDS_OF_A_VALUE else path


def _nearest(path: "KeyPath") -> str:
    """The nearest key of the same section, else of all."""
    from difflib import get_close_matches

    everywhere = {known[-1]: known for known in key_paths()}
    there = {known[-1]: known for known in key_paths() if known[:-1] == path[:-1]}
    for names in (there, everywhere):
        for name in get_close_matches(str(path[-1]).lower(), names, n=1):
            return Sentence(" (did you mean {near}?)", near=_dotted(names[name]))
    return ""


def _texts_in(value: Any, path: "KeyPath" = ()) -> "Iterator[tuple[KeyPath, str]]":
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts_in(item, (*path, step))
    elif isinstance(value, str):
        yield path, value


def _is_secret(path: "KeyPath", text: str, key: str) -> bool:
    """It looks like an API key, is named like one, or is the one in use."""
    if re.search(_API_KEY, text) or (len(key) >= _SHORTEST_KEY and key in text):
        return True
    names = [step for step in path if isinstance(step, str)]
    if not text.strip() or not names or tuple(names) in key_paths():
        return False
    return re.search(_NAMES_OF_KEYS, names[-1].lower().replace("_", "").replace("-", "")) is not None


def _without_nulls(section: dict[str, Any], path: tuple[str, ...] = ()) -> dict[str, Any]:
    """A copy without keys that have no value, except those that null switches off."""
    return {
        name: _without_nulls(value, (*path, name)) if isinstance(value, dict) else value
        for name, value in section.items()
        if value is not None or (*path, name) in _SWITCHED_OFF_BY_NULL
    }


def _drop_retired(written: dict[str, Any], file: ConfigFile, findings: Findings) -> None:
    for path, reason in RETIRED_KEYS.items():
        section = written if len(path) == 1 else written.get(path[0])
        if not isinstance(section, dict) or path[-1] not in section:
            continue
        value = section.pop(path[-1])
        name = file.place(path)
        if path == _TRANSPORT and value != "stdio":
            findings.problem(Sentence("{name} must be stdio", name=name), value)
        else:
            findings.warning(Sentence("{name} is no longer used ({reason})", name=name, reason=reason))


def _drop_listed_sections(
    written: dict[str, Any], file: ConfigFile, findings: Findings, path: tuple[str, ...] = ()
) -> None:
    """Pydantic would fill a section from a list, by position; here that is a wrong value."""
    sections = [known for known in key_paths() if known[:-1] == path and is_section(kind_at(known))]
    for section in sections:
        value = written.get(section[-1])
        if isinstance(value, dict):
            _drop_listed_sections(value, file, findings, section)
        elif isinstance(value, list):
            findings.misfit(file.place(section), kind_at(section), value)
            del written[section[-1]]


def _dotted(path: "KeyPath") -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
