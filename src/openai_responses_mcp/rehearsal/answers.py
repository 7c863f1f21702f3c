"""Builds the response object the API would give for a question, in its real wire format.

The text says that it comes from a stand-in, in the language of the question; addresses are on example.com.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.rehearsal.markers import Directives, FunctionCall
from openai_responses_mcp.rehearsal.questions import is_about_weather, is_japanese, maybe_date

SOURCES_INCLUDED = "web_search_call.action.sources"

_QUOTE_CHARACTERS = 80
_USUAL_CITATIONS = 2
_TOKYO_SECONDS = 9 * 3600


@dataclass(frozen=True, slots=True)
class Situation:
    """All an answer depends on besides the request itself."""

    question: str
    hints: str
    directives: Directives
    is_searching: bool
    calls: tuple[FunctionCall, ...] = ()
    earlier_question: str | None = None
    tool_outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Phrases:
    stand_in: str
    asked: str
    earlier: str
    tool: str
    found: str
    refusal: str
    commentary: str
    filler: str


_ENGLISH = _Phrases(
    stand_in="This is a rehearsal answer from the built-in stand-in, not a real one.",
    asked=' You asked: "{}".',
    earlier=' Earlier in this conversation you asked: "{}".',
    tool=' The tool returned: "{}".',
    found=" What a search finds as of {} would stand here.",
    refusal="This is a rehearsal: I'm sorry, but I can't help with that.",
    commentary="This is a rehearsal: let me look into that.",
    filler=" This sentence only makes the rehearsal answer longer.",
)
_JAPANESE = _Phrases(
    stand_in="これは内蔵の代役によるリハーサル用の回答であり、本物の回答ではありません。",
    asked="ご質問:「{}」。",
    earlier="この会話の前のご質問:「{}」。",
    tool="ツールの出力:「{}」。",
    found="{} 時点の検索結果がここに入ります。",
    refusal="リハーサルです。申し訳ありませんが、お手伝いできません。",
    commentary="リハーサルです。調べてみます。",
    filler="この文はリハーサル用の回答を長くするためのものです。",
)


def new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(24)}"


def build_response(request: Mapping[str, Any], situation: Situation) -> dict[str, Any]:
    """The finished response; its `status` follows the outcome that the question asks for."""
    output, status, error, reason = _build_output(request, situation)
    now = int(time.time())
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": now,
        "status": status,
        "background": request.get("background") or False,
        "completed_at": now if status == "completed" else None,
        "conversation": None,
        "error": error,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": request.get("instructions"),
        "max_output_tokens": request.get("max_output_tokens"),
        "max_tool_calls": request.get("max_tool_calls"),
        "model": request["model"],
        "output": output,
        "parallel_tool_calls": _given(request, "parallel_tool_calls", True),
        "previous_response_id": request.get("previous_response_id"),
        "prompt_cache_key": request.get("prompt_cache_key"),
        "reasoning": {"effort": None, "summary": None} | (request.get("reasoning") or {}),
        "safety_identifier": request.get("safety_identifier"),
        "service_tier": "default",
        "store": request.get("store") is not False,
        "temperature": _given(request, "temperature", 1.0),
        "text": {"format": {"type": "text"}, "verbosity": "medium"} | (request.get("text") or {}),
        "tool_choice": _given(request, "tool_choice", "auto"),
        "tools": request.get("tools") or [],
        "top_logprobs": _given(request, "top_logprobs", 0),
        "top_p": _given(request, "top_p", 1.0),
        "truncation": _given(request, "truncation", "disabled"),
        "usage": _usage(request, situation, output),
        "user": request.get("user"),
        "metadata": request.get("metadata") or {},
    }


def _given(request: Mapping[str, Any], name: str, default: Any) -> Any:
    value = request.get(name)
    return default if value is None else value


_Output = tuple[list[dict[str, Any]], str, dict[str, Any] | None, str | None]


def _build_output(request: Mapping[str, Any], situation: Situation) -> _Output:
    """Output items, status, error, and the reason for an incomplete answer."""
    opening = [_reasoning_item()]
    if situation.is_searching:
        includes_sources = SOURCES_INCLUDED in (request.get("include") or [])
        opening.append(_search_item(situation, includes_sources=includes_sources))
    if situation.calls:
        return [*opening, *map(_function_call_item, situation.calls)], "completed", None, None
    finish = _OUTCOMES[situation.directives.outcome]
    return finish(opening, situation)


def _completed(opening: list[dict[str, Any]], situation: Situation) -> _Output:
    return [*opening, message_item([_text_part(situation)])], "completed", None, None


def _refused(opening: list[dict[str, Any]], situation: Situation) -> _Output:
    part = {"type": "refusal", "refusal": _phrases(situation).refusal}
    return [*opening, message_item([part])], "completed", None, None


def _cut_short(opening: list[dict[str, Any]], situation: Situation) -> _Output:
    message = message_item([_text_part(situation)], status="incomplete")
    return [*opening, message], "incomplete", None, "max_output_tokens"


def _cut_before_text(opening: list[dict[str, Any]], situation: Situation) -> _Output:
    return opening, "incomplete", None, "max_output_tokens"


def _failed(opening: list[dict[str, Any]], situation: Situation) -> _Output:
    asked = situation.directives
    message = asked.message or "The model failed to answer, as this rehearsal asked for."
    return opening, "failed", {"code": asked.code or "server_error", "message": message}, None


def _without_text(opening: list[dict[str, Any]], situation: Situation) -> _Output:
    return opening, "completed", None, None


def _with_unknown_items(opening: list[dict[str, Any]], situation: Situation) -> _Output:
    part = _text_part(situation)
    part["annotations"].insert(0, {"type": "rehearsal_annotation", "mark": {"index": 0}})
    unknown = {"type": "rehearsal_item", "id": new_id("ri"), "payload": [None, 1, {"text": "not an answer"}]}
    return [unknown, *opening, message_item([part]), dict(unknown)], "completed", None, None


def _with_commentary(opening: list[dict[str, Any]], situation: Situation) -> _Output:
    aside = {"type": "output_text", "text": _phrases(situation).commentary, "annotations": [], "logprobs": []}
    commentary = message_item([aside]) | {"phase": "commentary"}
    final = message_item([_text_part(situation)]) | {"phase": "final_answer"}
    return [commentary, *opening, final], "completed", None, None


_OUTCOMES: dict[str | None, Callable[[list[dict[str, Any]], Situation], _Output]] = {
    None: _completed,
    "refusal": _refused,
    "incomplete": _cut_short,
    "incomplete-empty": _cut_before_text,
    "failed": _failed,
    "no-text": _without_text,
    "unknown-item": _with_unknown_items,
    "commentary": _with_commentary,
}


def _reasoning_item() -> dict[str, Any]:
    return {"id": new_id("rs"), "type": "reasoning", "summary": []}


def message_item(content: list[dict[str, Any]], status: str = "completed") -> dict[str, Any]:
    return {"id": new_id("msg"), "type": "message", "status": status, "role": "assistant", "content": content}


def _function_call_item(call: FunctionCall) -> dict[str, Any]:
    ids = {"id": new_id("fc"), "call_id": new_id("call")}
    return {**ids, "type": "function_call", "status": "completed", "name": call.name, "arguments": call.arguments}


def _search_item(situation: Situation, *, includes_sources: bool) -> dict[str, Any]:
    query = _quote(situation.question)
    action: dict[str, Any] = {"type": "search", "query": query, "queries": [query]}
    if includes_sources:
        action["sources"] = _sources(situation)
    return {"id": new_id("ws"), "type": "web_search_call", "status": "completed", "action": action}


def _sources(situation: Situation) -> list[dict[str, str]]:
    urls = [{"type": "url", "url": _example_url(number)} for number in range(1, _citation_count(situation) + 2)]
    api = [{"type": "api", "name": "oai-weather"}]
    dates = ("published_at", "published_date", "date")
    choices = {
        "none": [],
        "api": api,
        "url": urls,
        "dated": [
            {"type": "url", "url": _example_url(number), name: f"2026-01-0{number}"}
            for number, name in enumerate(dates, 1)
        ],
    }
    usual = urls + api if is_about_weather(situation.question) else urls
    return choices.get(situation.directives.sources or "", usual)


def _text_part(situation: Situation) -> dict[str, Any]:
    text, annotations = _answer_text(situation)
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def _answer_text(situation: Situation) -> tuple[str, list[dict[str, Any]]]:
    asked, numbers = situation.directives, range(1, _citation_count(situation) + 1)
    if asked.text is not None:
        text = asked.text
        return text, [_citation(number, 0, len(text)) for number in numbers]
    text = _sized(_usual_text(situation), asked.size, _phrases(situation).filler)
    annotations = []
    for number in numbers:
        link = f"([example.com]({_example_url(number)}))"
        annotations.append(_citation(number, len(text) + 1, len(text) + 1 + len(link)))
        text += f" {link}"
    return text, annotations


def _usual_text(situation: Situation) -> str:
    phrases = _phrases(situation)
    text = phrases.stand_in + phrases.asked.format(_quote(situation.question))
    if situation.earlier_question is not None:
        text += phrases.earlier.format(_quote(situation.earlier_question))
    text += "".join(phrases.tool.format(_quote(output)) for output in situation.tool_outputs)
    if situation.is_searching:
        text += phrases.found.format(maybe_date(situation.question, situation.hints) or _today_in_tokyo())
    return text


def _sized(text: str, size: int | None, filler: str) -> str:
    if size is None:
        return text
    missing = max(0, size - len(text.encode("utf-8", "replace")))
    text += filler * (missing // len(filler.encode()) + 1) if missing else ""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def _citation_count(situation: Situation) -> int:
    asked = situation.directives.citations
    if asked is not None:
        return asked
    return _USUAL_CITATIONS if situation.is_searching else 0


def _citation(number: int, start: int, end: int) -> dict[str, Any]:
    where = {"start_index": start, "end_index": end}
    return {"type": "url_citation", **where, "url": _example_url(number), "title": f"Rehearsal example {number}"}


def _example_url(number: int) -> str:
    return f"https://example.com/rehearsal/{number}"


def _phrases(situation: Situation) -> _Phrases:
    return _JAPANESE if is_japanese(situation.question) else _ENGLISH


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTE_CHARACTERS else line[:_QUOTE_CHARACTERS] + "…"


def _today_in_tokyo() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + _TOKYO_SECONDS))


def _usage(request: Mapping[str, Any], situation: Situation, output: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    asked = len(str(request.get("instructions") or "")) + len(situation.question) + len(situation.hints)
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    written = sum(len(part.get("text", "")) for part in parts)
    input_tokens, output_tokens = asked // 4 + 1, written // 4 + 65
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": input_tokens + output_tokens,
    }
