"""What the domain talks about: questions going in, model requests and replies at the gateway, answers coming out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol


class AnsweringProfile(Protocol):
    """Which model answers, how hard it thinks and how much it says; the settings have them."""

    @property
    def model(self) -> str: ...

    @property
    def reasoning_effort(self) -> str: ...

    @property
    def verbosity(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Question:
    """One question as the client asked it; what it left out is None and is filled in from the defaults."""

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
    """How web search is set up for one request. One that is not live reads stored pages only.

    Without `user_location` the API searches as if from the United States. An empty one names no place at all.
    """

    allowed_domains: tuple[str, ...] = ()
    context_size: str | None = None
    user_location: tuple[tuple[str, str], ...] | None = None
    is_live: bool = True


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything the model is asked with; a None field is not sent."""

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
    """Where something was found: a URL, or a source id with `is_url` false; `date` only if it is the source's own."""

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
    """One response of the model, whichever way it ended; `allowed_domains` are those its search was restricted to."""

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
    """What is happening upstream, in words for a person; `words` are those of the answer that have just come."""

    message: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """A source as the client sees it: always dated, and `date_kind` says whether that is the source's own date."""

    url: str
    published_at: str
    title: str | None = None
    date_kind: Literal["published", "accessed"] = "accessed"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the client gets for a question; `left_out` has the sources from outside the domains it was restricted to.

    `incomplete_reason` is None for an answer that is whole.
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
    """A tool call as an observer sees it; `trace` has the texts in which a client names its own trace.

    `caller` is who asked, where that is known.
    """

    tool: str
    request_id: int | str
    protocol_version: str
    trace: Mapping[str, str]
    caller: str = ""


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A failure that the client hears of: a word for its kind, and its message and code where it has them."""

    kind: str
    message: str | None = None
    code: int | None = None


ProgressListener = Callable[[Progress], None]
StartListener = Callable[[str], None]
