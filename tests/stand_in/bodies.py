"""How a whole answer is spoiled: bodies that no client should trip over.

Every fault takes the good response and gives the reply that is sent in its place.
"""

import copy
from collections.abc import AsyncIterator, Callable
from typing import Any

from openai_responses_mcp.rehearsal.wire import encode_json
from tests.stand_in.http_wire import Ending, Reply
from tests.stand_in.pace import drip
from tests.stand_in.replies import JSON_HEADERS, json_reply

HUGE_BYTES = 100 * 1024 * 1024

_CHUNK = b"x" * (256 * 1024)
_PLACE_FOR_TEXT = "rehearsal-text-goes-here"


def spoiled_body(fault: str, response: dict[str, Any]) -> Reply:
    return SPOILED_BODIES[fault](response)


def _truncated(response: dict[str, Any]) -> Reply:
    body = encode_json(response)
    return Reply(headers=JSON_HEADERS, body=body[: len(body) // 2], declared_length=len(body), ending=Ending.CUT)


def _huge(response: dict[str, Any]) -> Reply:
    return Reply(headers=JSON_HEADERS, body=_huge_body(response))


async def _huge_body(response: dict[str, Any]) -> AsyncIterator[bytes]:
    before, _, after = encode_json(_with_text(response, _PLACE_FOR_TEXT)).partition(_PLACE_FOR_TEXT.encode())
    yield before
    for _ in range(HUGE_BYTES // len(_CHUNK)):
        yield _CHUNK
    yield after


def _html(response: dict[str, Any]) -> Reply:
    page = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>rehearsal</body></html>"
    return Reply(headers={"content-type": "text/html"}, body=page)


def _bad_utf8(response: dict[str, Any]) -> Reply:
    body = encode_json(_with_text(response, _PLACE_FOR_TEXT)).replace(_PLACE_FOR_TEXT.encode(), b"\xff\xfe\xc3(")
    return Reply(headers=JSON_HEADERS, body=body)


def _verbatim(body: bytes) -> Callable[[dict[str, Any]], Reply]:
    return lambda response: Reply(headers=JSON_HEADERS, body=body)


def _with_text(response: dict[str, Any], text: str) -> dict[str, Any]:
    spoiled = copy.deepcopy(response)
    spoiled["output"] = [item for item in spoiled["output"] if item["type"] != "message"]
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": "msg_rehearsal", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    spoiled["output"].append(message)
    return spoiled


SPOILED_BODIES: dict[str, Callable[[dict[str, Any]], Reply]] = {
    "truncated": _truncated,
    "empty": _verbatim(b""),
    "null": _verbatim(b"null"),
    "list": _verbatim(b"[]"),
    "html": _html,
    "bad-utf8": _bad_utf8,
    "huge": _huge,
    "drip": lambda response: Reply(headers=JSON_HEADERS, body=drip(encode_json(response))),
    "not-json": _verbatim(b"{rehearsal: this is not JSON"),
    "wrong-usage": lambda response: json_reply(response | {"usage": "rehearsal"}),
}
