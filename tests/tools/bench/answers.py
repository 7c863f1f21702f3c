"""What the stand-in answers: one response with a search and two citations, in one piece and as a stream of events.

Made for the measuring alone. Events are what the API sends: one for about every word of the text, and the whole response
in the first two and in the last.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

SIGN = "rehearsal answer"  # in every answer: a reply without it is an error, whatever its shape

_TEXT = (
    f"This is a {SIGN}, made up for measuring. What a search finds would stand here, in two or three sentences that say"
    " what is new, since when, and for whom it matters. ([example.com](https://example.com/1))"
    " ([example.com](https://example.com/2))"
)
_WORDS = re.compile(r"\S+\s*")
# A model says no more than some hundred words a second; what is longer stands for a long text, not for many events.
_MOST_DELTAS = 500

Json = dict[str, Any]


def whole(size_bytes: int) -> bytes:
    return _encoded(_response(_text(size_bytes)))


def streamed(size_bytes: int) -> bytes:
    events = enumerate(_events(_response(_text(size_bytes))))
    numbered = ({"type": event["type"], "sequence_number": number} | event for number, event in events)
    return b"".join(b"event: %b\ndata: %b\n\n" % (event["type"].encode(), _encoded(event)) for event in numbered)


def _encoded(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _text(size_bytes: int) -> str:
    filler = "All of this was made up. "
    return _TEXT + filler * (max(0, size_bytes - len(_TEXT)) // len(filler))


def _response(text: str) -> Json:
    citations = [
        {"type": "url_citation", "start_index": 0, "end_index": 9, "url": url, "title": f"Example {url[-1]}"}
        for url in ("https://example.com/1", "https://example.com/2")
    ]
    part = {"type": "output_text", "text": text, "annotations": citations, "logprobs": []}
    search = {"type": "search", "query": "new in Python", "queries": ["new in Python"], "sources": []}
    return {
        "id": "resp_6ba718d18ecece4221d0398954aaed9484018b338a958362",
        "object": "response",
        "created_at": 1767225600,
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": "o3",
        "output": [
            {"id": "rs_04918ffcd31126f35b61ec785b738266f23f6d40625c65d0", "type": "reasoning", "summary": []},
            {
                "id": "ws_37bc27958c2c0f3569bbe6b1797396f19cdac3e8e1a67e46",
                "type": "web_search_call",
                "status": "completed",
                "action": search,
            },
            {
                "id": "msg_0fb6edecd0fff16573727001ea0f7e6fdb0b049317626cc2",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [part],
            },
        ],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": "medium", "summary": None},
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [{"type": "web_search", "search_context_size": "medium", "user_location": None}],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 600,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 130,
            "output_tokens_details": {"reasoning_tokens": 64},
            "total_tokens": 730,
        },
        "user": None,
        "metadata": {},
    }


def _events(response: Json) -> Iterator[Json]:
    begun = response | {"status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        where = {"output_index": index}
        started = (
            item
            | ({"status": "in_progress"} if "status" in item else {})
            | ({"content": []} if "content" in item else {})
        )
        yield {"type": "response.output_item.added", "item": started} | where
        yield from (event | where | {"item_id": item["id"]} for event in _inner_events(item))
        yield {"type": "response.output_item.done", "item": item} | where
    yield {"type": "response.completed", "response": response}


def _inner_events(item: Json) -> Iterator[Json]:
    if item["type"] == "web_search_call":
        yield from ({"type": f"response.web_search_call.{step}"} for step in ("in_progress", "searching", "completed"))
    for part in item.get("content", []):
        yield {
            "type": "response.content_part.added",
            "content_index": 0,
            "part": part | {"text": "", "annotations": []},
        }
        for delta in _deltas(part["text"]):
            yield {"type": "response.output_text.delta", "content_index": 0, "delta": delta, "logprobs": []}
        for number, annotation in enumerate(part["annotations"]):
            event = {"annotation_index": number, "annotation": annotation, "content_index": 0}
            yield {"type": "response.output_text.annotation.added"} | event
        yield {"type": "response.output_text.done", "content_index": 0, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", "content_index": 0, "part": part}


def _deltas(text: str) -> Iterator[str]:
    words = _WORDS.findall(text)
    step = len(words) // _MOST_DELTAS + 1
    for start in range(0, len(words), step):
        yield "".join(words[start : start + step])
