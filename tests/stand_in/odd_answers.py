"""Answers as only tests ask for them: of a size, with chosen sources, with function calls, with odd endings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from openai_responses_mcp.rehearsal.answers import (
    Situation,
    example_citation,
    example_url,
    quote,
    usual_sources,
    usual_text,
    with_links,
    write_opening,
)
from openai_responses_mcp.rehearsal.wire import (
    Item,
    build_response,
    deltas,
    message_item,
    part_events,
    text_part,
    usual_item_events,
)
from tests.stand_in.function_calls import function_call_events, function_call_item
from tests.stand_in.markers import Directives, FunctionCall

_REFUSAL = "This is a rehearsal: I'm sorry, but I can't help with that."
_FILLER = " This sentence only makes the rehearsal answer longer."


class Draft(NamedTuple):
    """An answer before it is known how it ends."""

    opening: list[Item]
    text: Item


@dataclass(frozen=True, slots=True)
class OddAnswer:
    output: list[Item]
    status: str = "completed"
    error: dict[str, Any] | None = None
    incomplete_reason: str | None = None

    def response(self, request: dict[str, Any], asked: str) -> dict[str, Any]:
        response = build_response(request, self.output, asked)
        details = {"reason": self.incomplete_reason} if self.incomplete_reason else None
        ended = response["completed_at"] if self.status == "completed" else None
        return response | {
            "status": self.status,
            "error": self.error,
            "incomplete_details": details,
            "completed_at": ended,
        }


def write_odd_answer(
    situation: Situation, directives: Directives, calls: Sequence[FunctionCall], tool_outputs: Sequence[str]
) -> OddAnswer:
    count = directives.citations
    if count is None:
        count = 2 if situation.is_searching else 0
    opening = write_opening(situation, _sources(directives.sources, count))
    if calls:
        return OddAnswer([*opening, *map(function_call_item, calls)])
    if directives.outcome == "failed":
        message = directives.message or "The model failed to answer, as this rehearsal asked for."
        return OddAnswer(opening, "failed", {"code": directives.code or "server_error", "message": message})
    return OUTCOMES[directives.outcome](Draft(opening, _text(situation, directives, tool_outputs, count)))


def _text(situation: Situation, directives: Directives, tool_outputs: Sequence[str], count: int) -> Item:
    if directives.text is not None:
        end = len(directives.text)
        return text_part(directives.text, [example_citation(number, 0, end) for number in range(1, count + 1)])
    text = usual_text(situation) + "".join(f' The tool returned: "{quote(output)}".' for output in tool_outputs)
    return with_links(text if directives.size is None else _of_size(text, directives.size), count)


def _of_size(text: str, size: int) -> str:
    missing = max(0, size - len(text.encode("utf-8", "replace")))
    text += _FILLER * (missing // len(_FILLER) + 1) if missing else ""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def _sources(choice: str | None, cited: int) -> list[dict[str, str]]:
    if choice is None:
        return usual_sources(cited)
    dates = ("published_at", "published_date", "date")
    return [
        {"type": "url", "url": example_url(number), name: f"2026-01-0{number}"} for number, name in enumerate(dates, 1)
    ]


def _refused(draft: Draft) -> OddAnswer:
    return OddAnswer([*draft.opening, message_item([{"type": "refusal", "refusal": _REFUSAL}])])


def _cut_short(draft: Draft) -> OddAnswer:
    message = message_item([draft.text], status="incomplete")
    return OddAnswer([*draft.opening, message], "incomplete", incomplete_reason="max_output_tokens")


OUTCOMES: dict[str | None, Callable[[Draft], OddAnswer]] = {
    None: lambda draft: OddAnswer([*draft.opening, message_item([draft.text])]),
    "refusal": _refused,
    "incomplete": _cut_short,
}


def item_events(index: int, item: Item) -> Iterator[Item]:
    """Those that ship, and those of refusals and function calls."""
    if item["type"] == "function_call":
        yield from function_call_events(index, item)
    elif item["type"] == "message" and item["content"][0]["type"] == "refusal":
        (part,) = item["content"]
        added, done = usual_item_events(index, item | {"content": []})
        yield added
        where = {"item_id": item["id"], "output_index": index, "content_index": 0}
        yield from part_events(part, {"refusal": ""}, _refusal_events(part), where)
        yield done | {"item": item}
    else:
        yield from usual_item_events(index, item)


def _refusal_events(part: Item) -> Iterator[Item]:
    for delta in deltas(part["refusal"]):
        yield {"type": "response.refusal.delta", "delta": delta}
    yield {"type": "response.refusal.done", "refusal": part["refusal"]}
