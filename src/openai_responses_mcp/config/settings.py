"""The settings: every key with its type, its limits and its default.

Standard library only, so that a start without a configuration file is fast. A limit is written once, as a `Bound` in the
annotation: pydantic enforces it on a YAML document, `from_text` on a variable or a flag, and `wanted` puts it into words.
Named tuples, because they are needed before the first reply and a dataclass takes longer to define. No
`from __future__ import annotations` here: the annotations are read at run time.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from math import inf
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NoReturn, get_args, get_origin

from openai_responses_mcp.domain.texts import Sentence, linked

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class Bound:
    """A limit on a value: `allows` decides; in messages `words` follow the name of the type."""

    def __init__(self, words: Sentence, allows: Callable[[Any], bool]) -> None:
        self.words = words
        self.allows = allows

    def require(self, value: Any) -> Any:
        if not self.allows(value):
            raise ValueError(self.words)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.require, handler(source))


class Range(Bound):
    def __init__(self, ge: int, le: int | None = None) -> None:
        words = Sentence("of at least {least}", least=ge)
        if le is not None:
            words = Sentence("between {least} and {most}", least=ge, most=le)
        # Refuses NaN, which compares as false, and infinity.
        super().__init__(words, lambda value: ge <= value < inf if le is None else ge <= value <= le)


TOKYO = "Asia/Tokyo"

_ADDRESS = re.compile(
    r"https?://([^/?#@\s]*@)?(\[[0-9a-f:.]+\]|[^/?#@:\s\[\]]+)(:[0-9]{1,5})?([/?#]\S*)?", re.IGNORECASE
)

Text = Annotated[str, Bound(Sentence("that is not blank"), lambda text: text.isprintable() and bool(text.strip()))]
Address = Annotated[
    str,
    Bound(
        Sentence("that is an http:// or https:// address with a host"),
        lambda text: text.isprintable() and _ADDRESS.fullmatch(text) is not None,
    ),
]
Count = Annotated[int, Range(ge=1)]
TimeZone = Annotated[
    str,
    Bound(Sentence("that names a time zone, such as Europe/Berlin"), lambda name: name == TOKYO or _is_time_zone(name)),
]
Fields = Annotated[Mapping[str, Any], Bound(Sentence("without NaN and infinity"), lambda fields: _is_json(fields))]

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]
ContextSize = Literal["low", "medium", "high"]
ToolName = Literal["answer", "answer_detailed", "answer_quick", "iris", "answer_result"]
OmittedField = Literal[
    "truncation", "include", "store", "text", "reasoning", "max_output_tokens", "stream", "background"
]
ErrorStyle = Literal["jsonrpc", "tool_result"]
PolicySource = Literal["builtin", "file"]
PolicyMerge = Literal["replace", "prepend", "append"]
_SecondsOrAuto = int | float | Literal["auto"]
HandOver = Annotated[
    _SecondsOrAuto,
    Bound(Sentence("of at least 5, or auto, or null"), lambda value: value == "auto" or 5 <= value < inf),
]


class OpenAISettings(NamedTuple):
    """Where the API is and which variable holds the key for it."""

    api_key_env: Text = "OPENAI_API_KEY"
    base_url: Address = "https://api.openai.com/v1"


class RequestSettings(NamedTuple):
    """How a request is sent and what goes into it."""

    timeout_ms: Count = 300_000
    max_retries: Annotated[int, Range(ge=0, le=10)] = 3
    max_concurrency: Count = 256
    store: bool = True
    max_output_tokens: Count | None = None
    omit: tuple[OmittedField, ...] = ()
    extra: Fields = {}  # noqa: RUF012 - nothing changes it

    @property
    def timeout_seconds(self) -> float:
        return self.timeout_ms / 1000


class Profile(NamedTuple):
    """Which model answers, how hard it thinks and how much it says."""

    model: Text = "gpt-5.2"
    reasoning_effort: Effort = "medium"
    verbosity: Verbosity = "medium"
    background: bool = False


# The tool that takes minutes.
BACKGROUND_BY_DEFAULT = ("answer_detailed",)


class ModelProfiles(NamedTuple):
    """One profile per tool; a tool without one uses `answer`'s."""

    answer: Profile | None = Profile()
    answer_detailed: Profile | None = None
    answer_quick: Profile | None = None


class SystemPolicySettings(NamedTuple):
    """Whose instructions the model gets."""

    source: PolicySource = "builtin"
    path: Text | None = None
    merge: PolicyMerge = "replace"


class PolicySettings(NamedTuple):
    """What an answer has to look like."""

    max_citations: Annotated[int, Range(ge=1, le=10)] = 3
    system: SystemPolicySettings = SystemPolicySettings()


class SearchDefaults(NamedTuple):
    """What a search uses when the call does not say otherwise."""

    recency_days: Annotated[int | float, Range(ge=0)] = 60
    max_results: Annotated[int, Range(ge=1, le=10)] = 5
    domains: tuple[Text, ...] = ()


class UserLocation(NamedTuple):
    """Roughly where the user is, for results from nearby."""

    country: Text | None = None
    city: Text | None = None
    region: Text | None = None
    timezone: Text | None = None


class SearchSettings(NamedTuple):
    """How the web is searched."""

    defaults: SearchDefaults = SearchDefaults()
    restrict_to_domains: bool = False
    context_size: ContextSize | None = None
    user_location: UserLocation | None = None
    live: bool = True
    timezone: TimeZone = TOKYO


class ServerSettings(NamedTuple):
    """What clients, and the people who run the server, see of it."""

    debug: bool = False
    debug_file: Text | None = None
    show_config_on_start: bool = False
    tools: Annotated[
        tuple[ToolName, ...],
        Bound(Sentence("with at least one name and none twice"), lambda names: 0 < len(names) == len(set(names))),
    ] = ("answer", "answer_detailed", "answer_quick")
    error_style: ErrorStyle = "jsonrpc"
    response_id_text: bool = True
    max_message_bytes: Count = 16 * 1024 * 1024
    hand_over_after_s: HandOver | None = "auto"


class HttpLimitSettings(NamedTuple):
    """How much one caller may ask for."""

    calls_per_minute: Count | None = None
    calls_at_once: Count | None = None
    tokens_per_day: Count | None = None


class HttpSettings(NamedTuple):
    """Who may ask over HTTP, and how much."""

    public_url: Address | None = None
    tokens_env: Text | None = None
    issuer: Address | None = None
    audience: Text | None = None
    limits: HttpLimitSettings = HttpLimitSettings()
    trusted_proxies: tuple[Text, ...] = ()


class Settings(NamedTuple):
    """The whole configuration, section by section."""

    openai: OpenAISettings = OpenAISettings()
    request: RequestSettings = RequestSettings()
    model_profiles: ModelProfiles = ModelProfiles()
    policy: PolicySettings = PolicySettings()
    search: SearchSettings = SearchSettings()
    server: ServerSettings = ServerSettings()
    http: HttpSettings = HttpSettings()

    @property
    def tools_in_background(self) -> tuple[str, ...]:
        """The tools whose questions run there. None if the API keeps no responses, or the field is omitted."""
        if not self.request.store or {"background", "stream"} & {*self.request.omit}:
            return ()
        profiles = self.model_profiles._asdict().items()
        return tuple(
            name
            for name, profile in profiles
            if (name in BACKGROUND_BY_DEFAULT if profile is None else profile.background)
        )


def kind_at(path: tuple[str | int, ...]) -> Any:
    """The annotation at a key path; KeyError if there is none. A number is a list item."""
    kind: Any = Settings
    for step in path:
        kind = _present(get_args(_bare(kind))[0] if isinstance(step, int) else _field_kinds(kind)[step])
    return kind


def is_section(thing: Any) -> bool:
    """True for the groups of settings above and their instances."""
    return hasattr(thing, "_fields")


def key_paths(kind: Any = Settings, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key, sections before their keys."""
    for name, inner in _field_kinds(kind).items():
        yield (*path, name)
        yield from key_paths(_present(inner), (*path, name))


def wanted(kind: Any) -> str:
    """What a value of this kind must be, to follow "must be"."""
    if names := _names(kind):
        return Sentence("one of {names}", names=", ".join(names))
    bare = _bare(kind)
    noun = _NOUNS.get(bare) or (_MAPPING if is_section(bare) else Sentence("a list"))
    return linked("{first} {second}", [noun, *(rule.words for rule in _rules(kind))])


def from_text(kind: Any, text: str) -> Any:
    """The value of a variable or a flag; ValueError if it is not `wanted`."""
    if names := _names(kind):
        return names[names.index(text)] if text in names else _refuse(text)
    value = _READERS[_bare(kind)](text)
    for rule in _rules(kind):
        rule.require(value)
    return value


def _whole_number(text: str) -> int:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else _refuse(text)


def _number(text: str) -> float:
    return float(text) if re.fullmatch(r"[+-]?[0-9]{1,18}\.[0-9]{1,18}", text) else _whole_number(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _is_time_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _is_json(value: Any) -> bool:
    """Infinity and NaN are the only values of a YAML file that JSON does not have."""
    if isinstance(value, Mapping | list):
        return all(map(_is_json, value.values() if isinstance(value, Mapping) else value))
    return not isinstance(value, float) or -inf < value < inf


_MAPPING = Sentence("a mapping of keys")
_NOUNS: dict[Any, str] = {
    bool: Sentence("true or false"),
    int: Sentence("a whole number"),
    int | float: Sentence("a number"),
    _SecondsOrAuto: Sentence("a number"),
    str: Sentence("text"),
    Mapping[str, Any]: _MAPPING,
}
_READERS: dict[Any, Callable[[str], Any]] = {int: _whole_number, int | float: _number, str: str}


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _present(kind: Any) -> Any:
    """The kind without its `| None`."""
    kinds = get_args(kind)
    return next(inner for inner in kinds if inner is not NoneType) if NoneType in kinds else kind


def _rules(kind: Any) -> tuple[Bound, ...]:
    return getattr(kind, "__metadata__", ())


def _names(kind: Any) -> tuple[str, ...]:
    """The names to choose from; none for a kind that is not a choice."""
    return get_args(kind) if get_origin(kind) is Literal else ()


def _field_kinds(kind: Any) -> dict[str, Any]:
    return dict(kind.__annotations__) if is_section(kind) else {}
