"""The Responses API on the wire: a model request to a request body, a response object to a model reply.

Items of an unknown `type` are skipped. If a part that every answer needs has the wrong shape, the reply is refused.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from itertools import islice
from typing import Any

from openai_responses_mcp.domain.errors import AnswerWithheld, GatewayGarbled, ResponseCancelled
from openai_responses_mcp.domain.models import (
    ModelReply,
    ModelRequest,
    Progress,
    SearchTool,
    Source,
    Usage,
)
from openai_responses_mcp.domain.texts import Sentence, without_surrogates

JsonObject = dict[str, Any]

_DATE_FIELDS = ("published_at", "published_date", "date")
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])")
_MOST_QUERIES = 3
_LONGEST_QUOTE = 80
# No real reply has this many, and reading more would block the event loop.
_MOST_ITEMS = 2_000
_LONGEST_REASON = 2_000


def request_body(
    request: ModelRequest, omit: Iterable[str] = (), extra: Mapping[str, object] | None = None
) -> JsonObject:
    """Fields in `omit` are left out, those in `extra` are added. No field is in both."""
    tools = [_search_tool(request.search)]
    if request.use_code_interpreter:
        tools.append({"type": "code_interpreter", "container": {"type": "auto"}})
    body: JsonObject = {
        "model": request.model,
        "instructions": request.instructions,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": without_surrogates(request.input_text)}]}
        ],
        "tools": tools,
        "include": ["web_search_call.action.sources"],
        "truncation": "auto",
        "store": request.store,
        "text": request.verbosity and {"verbosity": request.verbosity},
        "reasoning": request.reasoning_effort and {"effort": request.reasoning_effort},
        "previous_response_id": request.previous_response_id,
        "max_output_tokens": request.max_output_tokens,
        "stream": True,
        "background": request.background or None,
    }
    return {name: value for name, value in body.items() if value is not None and name not in omit} | dict(extra or {})


def _search_tool(search: SearchTool) -> JsonObject:
    tool: JsonObject = {"type": "web_search"}
    if search.allowed_domains:
        tool["filters"] = {"allowed_domains": list(search.allowed_domains)}
    if search.context_size:
        tool["search_context_size"] = search.context_size
    if search.user_location is not None:
        tool["user_location"] = {"type": "approximate", **dict(search.user_location)}
    if not search.is_live:
        tool["external_web_access"] = False
    return tool


def read_reply(response: object) -> ModelReply:
    """Raises `GatewayGarbled`, or `AnswerWithheld` if the response failed or was cancelled."""
    body = _object(response, "the reply")
    _refuse_failure(body)
    items = [_object(item, "an output item") for item in _list(body.get("output"), "output")[:_MOST_ITEMS]]
    messages = _final_messages([item for item in items if item.get("type") == "message"])
    searches = [item for item in items if item.get("type") == "web_search_call"]
    parts = [[_object(part, "a content part") for part in _list(m.get("content"), "content")] for m in messages]
    searched = tuple(_sources(searches))
    return ModelReply(
        text="\n\n".join(filter(None, map(_text, parts))),
        model=_text_or_none(body.get("model")),
        response_id=_text_or_none(body.get("id")),
        cited=tuple(_cited(parts, {source.name: source.date for source in searched})),
        searched=searched,
        search_count=len(searches),
        incomplete_reason=_incomplete_reason(body),
        refusal=_refusal(parts),
        usage=_usage(body.get("usage")),
        allowed_domains=_allowed_domains(body),
    )


def read_state(response: object, mask: Callable[[str], str] = str) -> ModelReply | Progress:
    """The reply of a finished response, or the progress of an unfinished one. Raises as `read_reply`."""
    return progress_of_state(response, mask) or read_reply(response)


def is_under_way(response: object) -> bool:
    """True if the response is queued or in progress."""
    return progress_of_state(response) is not None


def progress_of_state(response: object, mask: Callable[[str], str] = str) -> Progress | None:
    """The progress of an unfinished response, as far as its output shows it; None if the response is finished."""
    body = response if isinstance(response, dict) else {}
    status, output = body.get("status"), body.get("output")
    progress = _STATE_PROGRESS.get(status) if isinstance(status, str) else None
    if progress is None or not isinstance(output, list) or not output:
        return progress
    return _item_progress(output[-1], mask) or progress


def _item_progress(item: object, mask: Callable[[str], str]) -> Progress | None:
    if not isinstance(item, dict):
        return None
    if item.get("type") == "web_search_call" and item.get("action"):
        return _search_progress(item["action"], mask)
    return _ITEM_PROGRESS.get(str(item.get("type")))


def progress_of(event: Mapping[str, Any], mask: Callable[[str], str] = str) -> Progress | None:
    """The progress to show for a stream event; None if there is nothing to show."""
    kind = str(event.get("type"))
    if kind == "response.output_text.delta":
        delta = event.get("delta")
        return Progress(_WRITING, without_surrogates(delta) if isinstance(delta, str) else "")
    if kind in _PROGRESS:
        return _PROGRESS[kind]
    item = event.get("item")
    if not isinstance(item, dict):
        return None
    if kind == "response.output_item.added":
        return _ITEM_PROGRESS.get(str(item.get("type")))
    is_search = kind == "response.output_item.done" and item.get("type") == "web_search_call"
    return _search_progress(item.get("action"), mask) if is_search else None


_WRITING = Sentence("writing the answer")
_THINKING = Progress(Sentence("thinking"))
_SEARCHING = Progress(Sentence("searching the web"))
_QUEUED = Progress(Sentence("waiting in the API's queue"))
_STATE_PROGRESS = {"queued": _QUEUED, "in_progress": Progress(Sentence("working"))}
_PROGRESS = {
    "response.created": _THINKING,
    "response.queued": _QUEUED,
    "response.in_progress": _THINKING,
    "response.web_search_call.searching": _SEARCHING,
}
_ITEM_PROGRESS = {
    "reasoning": _THINKING,
    "web_search_call": _SEARCHING,
    "code_interpreter_call": Progress(Sentence("running code")),
    "message": Progress(_WRITING),
}


def _search_progress(action: object, mask: Callable[[str], str]) -> Progress:
    facts = action if isinstance(action, dict) else {}
    # An action has one query or several. A pattern is searched for within a page.
    queries = [facts["query"]] if facts.get("query") else _texts(facts.get("queries"))
    if queries:
        quoted = ", ".join(f'"{_short(query, mask)}"' for query in queries[:_MOST_QUERIES])
        return Progress(Sentence("searching for {queries}", queries=quoted))
    url = _short(facts["url"], mask) if facts.get("url") else None
    if facts.get("pattern"):
        pattern = _short(facts["pattern"], mask)
        if url is None:
            return Progress(Sentence('looking for "{pattern}"', pattern=pattern))
        return Progress(Sentence('looking for "{pattern}" on {url}', pattern=pattern, url=url))
    return Progress(Sentence("reading the results") if url is None else Sentence("reading {url}", url=url))


def _short(value: object, mask: Callable[[str], str] = str) -> str:
    # Cut first, because masking is slow, but far behind the part that is shown, so that no secret in it is cut in two.
    text = mask(" ".join(without_surrogates(str(value)[:_LONGEST_REASON]).split()))
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def _refuse_failure(body: JsonObject) -> None:
    status = body.get("status", "completed")
    if status in ("completed", "incomplete"):
        return
    if status == "cancelled":
        raise ResponseCancelled(Sentence("The response was cancelled at the API before it was finished. Ask again."))
    if status != "failed":
        raise GatewayGarbled(
            Sentence(
                "The API returned a response that is not finished (status {status}). Ask again.", status=_short(status)
            )
        )
    error = body.get("error")
    facts = error if isinstance(error, dict) else {}
    message = _text_or_none(facts.get("message"))
    reason = (
        Sentence("The API says: {message}", message=message[:_LONGEST_REASON])
        if message
        else Sentence("It gives no reason.")
    )
    raise AnswerWithheld(
        Sentence("The API could not finish the response: ask again. {reason}", reason=reason),
        code=_text_or_none(facts.get("code")),
    )


def _allowed_domains(body: JsonObject) -> tuple[str, ...]:
    """The domains that the search of this response was restricted to."""
    filters = [tool["filters"] for tool in _objects(body.get("tools")) if isinstance(tool.get("filters"), dict)]
    domains = [domain for found in filters for domain in _texts(found.get("allowed_domains"))]
    return tuple(domains[:_MOST_ITEMS])


def _final_messages(messages: list[JsonObject]) -> list[JsonObject]:
    phases = [message.get("phase") for message in messages]
    wanted = "final_answer" if "final_answer" in phases else None
    return [message for message in messages if message.get("phase") == wanted]


def _text(parts: list[JsonObject]) -> str:
    texts = [part.get("text") for part in parts if part.get("type") == "output_text"]
    if not all(isinstance(text, str) for text in texts):
        raise _garbled("text")
    return without_surrogates("".join(map(str, texts)))


def _refusal(messages: list[list[JsonObject]]) -> str | None:
    refusals = [str(part.get("refusal")) for parts in messages for part in parts if part.get("type") == "refusal"]
    return without_surrogates(refusals[0][:_LONGEST_REASON]) if refusals else None


def _cited(messages: list[list[JsonObject]], dates: Mapping[str, str | None]) -> Iterator[Source]:
    annotations = (a for parts in messages for part in parts for a in _objects(part.get("annotations")))
    for annotation in islice(annotations, _MOST_ITEMS):
        url = _text_or_none(annotation.get("url"))
        if annotation.get("type") == "url_citation" and url:
            yield Source(url, _text_or_none(annotation.get("title")), _date_of(annotation) or dates.get(url))


def _sources(searches: list[JsonObject]) -> Iterator[Source]:
    actions = [search.get("action") for search in searches]
    sources = (s for action in actions if isinstance(action, dict) for s in _objects(action.get("sources")))
    for source in islice(sources, _MOST_ITEMS):
        url = _text_or_none(source.get("url"))
        name = url or _text_or_none(source.get("name"))
        if name:
            title = source.get("title") if url else source.get("type")
            yield Source(name, _text_or_none(title), _date_of(source), is_url=url is not None)


def _date_of(facts: JsonObject) -> str | None:
    for value in [facts[field] for field in _DATE_FIELDS if field in facts]:
        day = _ISO_DAY.match(str(value))
        with contextlib.suppress(ValueError):  # No such day, as with 2026-02-31.
            if day:
                return date.fromisoformat(day[0]).isoformat()
    return None


def _incomplete_reason(body: JsonObject) -> str | None:
    if body.get("status") != "incomplete":
        return None
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return _text_or_none(reason) or "unknown"


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) for name in ("input_tokens", "output_tokens", "total_tokens")]
    numbers = [count for count in counts if isinstance(count, int)]
    return Usage(*numbers) if len(numbers) == len(counts) else None


def _object(value: object, what: str) -> JsonObject:
    if not isinstance(value, dict):
        raise _garbled(what)
    return value


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _garbled(what)
    return value


def _objects(value: object) -> Iterator[JsonObject]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _text_or_none(value: object) -> str | None:
    return without_surrogates(value) if isinstance(value, str) and value.strip() else None


def _garbled(what: str) -> GatewayGarbled:
    return GatewayGarbled(
        Sentence("The API's reply has an unexpected shape ({what}). Check openai.base_url, or ask again.", what=what)
    )
