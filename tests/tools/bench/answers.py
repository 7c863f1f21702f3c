"""What the stand-in answers: one response with a search and two citations, in one piece and as a stream of events.

Shaped as in the rehearsal, but with what the API sends while a text grows: an event for about every word.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from openai_responses_mcp.rehearsal.answers import with_links
from openai_responses_mcp.rehearsal.wire import (
    build_response,
    encode_event,
    encode_json,
    message_item,
    numbered,
    reasoning_item,
    search_item,
    stream_events,
)

SIGN = "rehearsal answer"  # in every answer: a reply without it is an error, whatever its shape

_TEXT = (
    f"This is a {SIGN}, made up for measuring. What a search finds would stand here, in two or three sentences that say"
    " what is new, since when, and for whom it matters."
)
_FILLER = " All of this was made up."
_WORDS = re.compile(r"\S+\s*")
# A model says no more than some hundred words a second; what is longer stands for a long text, not for many events.
_MOST_DELTAS = 500

Json = dict[str, Any]


def whole(size_bytes: int) -> bytes:
    return encode_json(_response(size_bytes))


def streamed(size_bytes: int) -> bytes:
    return b"".join(map(encode_event, numbered(_by_word(stream_events(_response(size_bytes))))))


def _response(size_bytes: int) -> Json:
    text = _TEXT + _FILLER * (max(0, size_bytes - len(_TEXT)) // len(_FILLER))
    output = [reasoning_item(), search_item("new in Python", []), message_item([with_links(text, 2)])]
    return build_response({"model": "o3", "tools": [{"type": "web_search"}]}, output, "")


def _by_word(events: Iterable[Json]) -> Iterator[Json]:
    """The same events, with the deltas of the text cut at its words."""
    begun, text = {}, ""
    for event in events:
        if event["type"] == "response.output_text.delta":
            begun, text = event, text + event["delta"]
            continue
        words = _WORDS.findall(text)
        step = len(words) // _MOST_DELTAS + 1
        for start in range(0, len(words), step):
            yield begun | {"delta": "".join(words[start : start + step])}
        text = ""
        yield event
