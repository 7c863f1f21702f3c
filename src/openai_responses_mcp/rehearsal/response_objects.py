"""Responses and the items of their output, in the API's real wire format."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a response says, and how it ended."""

    output: list[Item]
    status: str = "completed"
    error: Mapping[str, Any] | None = None
    incomplete_reason: str | None = None


def new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(24)}"


def build_response(request: Mapping[str, Any], answer: Answer, asked: str) -> dict[str, Any]:
    """The finished response to a request; the text that was asked counts for its usage."""
    now = int(time.time())
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": now,
        "status": answer.status,
        "background": request.get("background") or False,
        "completed_at": now if answer.status == "completed" else None,
        "conversation": None,
        "error": answer.error,
        "incomplete_details": {"reason": answer.incomplete_reason} if answer.incomplete_reason else None,
        "instructions": request.get("instructions"),
        "max_output_tokens": request.get("max_output_tokens"),
        "max_tool_calls": request.get("max_tool_calls"),
        "model": request["model"],
        "output": answer.output,
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
        "usage": _usage(str(request.get("instructions") or "") + asked, answer.output),
        "user": request.get("user"),
        "metadata": request.get("metadata") or {},
    }


def unfinished(response: Mapping[str, Any], status: str) -> dict[str, Any]:
    """The same response as the API shows it before it has any output."""
    nothing_yet = dict.fromkeys(("completed_at", "error", "incomplete_details", "usage"))
    return {**response, "status": status, **nothing_yet, "output": []}


def reasoning_item() -> Item:
    return {"id": new_id("rs"), "type": "reasoning", "summary": []}


def search_item(query: str, sources: Sequence[Mapping[str, Any]] | None) -> Item:
    """Without sources when they were not asked for."""
    action: Item = {"type": "search", "query": query, "queries": [query]}
    if sources is not None:
        action["sources"] = list(sources)
    return {"id": new_id("ws"), "type": "web_search_call", "status": "completed", "action": action}


def message_item(content: list[Item], status: str = "completed") -> Item:
    return {"id": new_id("msg"), "type": "message", "status": status, "role": "assistant", "content": content}


def text_part(text: str, annotations: Sequence[Item] = ()) -> Item:
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}


def refusal_part(text: str) -> Item:
    return {"type": "refusal", "refusal": text}


def url_citation(url: str, title: str, start: int, end: int) -> Item:
    return {"type": "url_citation", "start_index": start, "end_index": end, "url": url, "title": title}


def _given(request: Mapping[str, Any], name: str, default: Any) -> Any:
    value = request.get(name)
    return default if value is None else value


def _usage(asked: str, output: Sequence[Item]) -> dict[str, Any]:
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    written = sum(len(part.get("text", "")) for part in parts)
    input_tokens, output_tokens = len(asked) // 4 + 1, written // 4 + 65
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": input_tokens + output_tokens,
    }
