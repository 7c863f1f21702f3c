"""The values of the domain: a question comes in, requests and replies pass the gateway, an answer goes out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AnsweringProfile:
    """Which model answers, and how."""

    model: str
    reasoning_effort: str
    verbosity: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a client. None stands for the configured default."""

    text: str
    profile: str = "answer"
    recency_days: float | None = None
    max_results: float | None = None
    domains: tuple[str, ...] | None = None
    style: str | None = None
    previous_response_id: str | None = None
    search_context_size: str | None = None
    reasoning_effort: str | None = None
    model: str | None = None
    use_code_interpreter: bool = False


@dataclass(frozen=True, slots=True)
class SearchTool:
    """Web search for one request. A search that is not live reads stored pages only.

    Without `user_location` the API searches as if from the United States. An empty one avoids that.
    """

    allowed_domains: tuple[str, ...] = ()
    context_size: str | None = None
    user_location: tuple[tuple[str, str], ...] | None = None
    is_live: bool = True


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to the model. A field that is None is not sent."""

    model: str
    instructions: str
    input_text: str
    search: SearchTool = SearchTool()
    reasoning_effort: str | None = None
    verbosity: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: int | None = None
    store: bool = True
    use_code_interpreter: bool = False
    background: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A URL, or a source id with `is_url` false. `date` is the source's own date."""

    name: str
    title: str | None = None
    date: str | None = None
    is_url: bool = True


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the API counts them."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One response of the model, complete or not. Its search was restricted to `allowed_domains`."""

    text: str
    model: str | None = None
    response_id: str | None = None
    cited: tuple[Source, ...] = ()
    searched: tuple[Source, ...] = ()
    search_count: int = 0
    incomplete_reason: str | None = None
    refusal: str | None = None
    usage: Usage | None = None
    allowed_domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """What is happening at the API, for a person. `words` are new words of the answer."""

    message: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """A source as the client sees it. `date_kind` says whether the date is the source's own."""

    url: str
    published_at: str
    title: str | None = None
    date_kind: Literal["published", "accessed"] = "accessed"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question. `left_out` names sources outside the allowed domains.

    `incomplete_reason` is None for a complete answer.
    """

    text: str
    used_search: bool
    citations: tuple[Citation, ...]
    model: str
    response_id: str | None = None
    usage: Usage | None = None
    search_count: int = 0
    left_out: tuple[str, ...] = ()
    incomplete_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """A tool call as an observer sees it. `trace` has the client's trace headers, `caller` who asked, if known."""

    tool: str
    request_id: int | str
    protocol_version: str
    trace: Mapping[str, str]
    caller: str = ""


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A failure that the client gets: its kind, and its message and code if it has them."""

    kind: str
    message: str | None = None
    code: int | None = None


ProgressListener = Callable[[Progress], None]
StartListener = Callable[[str], None]
