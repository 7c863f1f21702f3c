import json

import httpx2
import pytest
from openai.types.responses import Response

from tests.stand_in import bodies
from tests.stand_in.conftest import SEARCH, Ask


async def test_a_truncated_body_is_shorter_than_announced(ask: Ask) -> None:
    with pytest.raises(httpx2.RemoteProtocolError):
        await ask("[rehearse: body=truncated]")


@pytest.mark.parametrize("body", ["empty", "html", "bad-utf8", "not-json"])
async def test_some_bodies_are_no_json(ask: Ask, body: str) -> None:
    reply = await ask(f"[rehearse: body={body}]")
    assert reply.status_code == 200
    with pytest.raises(ValueError):  # noqa: PT011 the kinds differ: bad JSON, bad UTF-8
        json.loads(reply.content)


@pytest.mark.parametrize(
    "body",
    [
        "null", "list", "string", "wrong-shape", "wrong-output", "wrong-item", "wrong-content", "wrong-text",
        "wrong-annotations", "wrong-usage", "wrong-id", "wrong-model", "wrong-status", "wrong-sources",
    ],
)  # fmt: skip
async def test_some_bodies_are_json_that_is_no_response(ask: Ask, body: str) -> None:
    reply = await ask(f"latest [rehearse: body={body}]", **SEARCH)
    with pytest.raises(ValueError, match="validation error"):
        Response.model_validate(reply.json(), strict=True)


async def test_a_huge_body_is_a_valid_answer_and_is_never_held_whole(ask: Ask, client: httpx2.AsyncClient) -> None:
    body = {"model": "gpt-5", "input": "[rehearse: body=huge]"}
    length, head, tail = 0, b"", b""
    async with client.stream("POST", "/responses", json=body) as reply:
        async for data in reply.aiter_bytes():
            head, tail = head or data[:100], (tail + data)[-2000:]
            length += len(data)
    assert length > bodies.HUGE_BYTES
    assert head.startswith(b'{"id":"resp_')
    assert tail.endswith(b"}")
