"""Answers as only tests ask for them: of a size, with chosen sources, with function calls, with odd endings."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from openai_responses_mcp.rehearsal.answers import (
    OUTCOMES,
    Draft,
    Situation,
    example_url,
    phrases_for,
    quote,
    usual_sources,
    usual_text,
    with_links,
    write_opening,
    write_text,
)
from openai_responses_mcp.rehearsal.wire import CannedAnswer, Item, message_item, new_id, text_part
from tests.stand_in.function_calls import function_call_item
from tests.stand_in.markers import Directives, FunctionCall

_FILLER = " This sentence only makes the rehearsal answer longer."


def write_odd_answer(
    situation: Situation, directives: Directives, calls: Sequence[FunctionCall], tool_outputs: Sequence[str]
) -> CannedAnswer:
    opening = write_opening(situation, _sources(situation, directives.sources))
    if calls:
        return CannedAnswer([*opening, *map(function_call_item, calls)])
    text = _text(situation, directives.size, tool_outputs)
    draft = Draft(opening, text, phrases_for(situation.question).refusal)
    return _explained(ALL_OUTCOMES[directives.outcome](draft), directives)


def _explained(answer: CannedAnswer, directives: Directives) -> CannedAnswer:
    if answer.error is None:
        return answer
    given = {"code": directives.code, "message": directives.message}
    return replace(answer, error={**answer.error, **{name: text for name, text in given.items() if text}})


def _text(situation: Situation, size: int | None, tool_outputs: Sequence[str]) -> Item:
    if situation.text is not None:
        return write_text(situation)
    text = usual_text(situation) + "".join(f' The tool returned: "{quote(output)}".' for output in tool_outputs)
    return with_links(text if size is None else _of_size(text, size), situation.citation_count)


def _of_size(text: str, size: int) -> str:
    missing = max(0, size - len(text.encode("utf-8", "replace")))
    text += _FILLER * (missing // len(_FILLER) + 1) if missing else ""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def _sources(situation: Situation, choice: str | None) -> list[dict[str, str]]:
    usual = usual_sources(situation)
    dates = ("published_at", "published_date", "date")
    choices = {
        None: usual,
        "none": [],
        "api": [{"type": "api", "name": "oai-weather"}],
        "url": [source for source in usual if source["type"] == "url"],
        "dated": [
            {"type": "url", "url": example_url(number), name: f"2026-01-0{number}"}
            for number, name in enumerate(dates, 1)
        ],
    }
    return choices[choice]


def _cut_before_text(draft: Draft) -> CannedAnswer:
    return CannedAnswer(draft.opening, "incomplete", incomplete_reason="max_output_tokens")


def _with_unknown_items(draft: Draft) -> CannedAnswer:
    annotations = [{"type": "rehearsal_annotation", "mark": {"index": 0}}, *draft.text["annotations"]]
    unknown = {"type": "rehearsal_item", "id": new_id("ri"), "payload": [None, 1, {"text": "not an answer"}]}
    message = message_item([draft.text | {"annotations": annotations}])
    return CannedAnswer([unknown, *draft.opening, message, dict(unknown)])


def _with_commentary(draft: Draft) -> CannedAnswer:
    commentary = message_item([text_part("This is a rehearsal: let me look into that.")]) | {"phase": "commentary"}
    final = message_item([draft.text]) | {"phase": "final_answer"}
    return CannedAnswer([commentary, *draft.opening, final])


ALL_OUTCOMES: dict[str | None, Callable[[Draft], CannedAnswer]] = OUTCOMES | {
    "incomplete-empty": _cut_before_text,
    "unknown-item": _with_unknown_items,
    "commentary": _with_commentary,
}
