"""Coverage-guided fuzzing of what the API may reply: an answer or one of our failures, never anybody else's exception.

The first byte says how the rest is served: as a status with a header, as a body, or as a stream of events.
"""

import asyncio
import dataclasses
import json
import sys
from collections.abc import AsyncIterator

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]
import httpx2
from openai import AsyncOpenAI

with atheris.instrument_imports(include=["openai_responses_mcp.adapters"]):
    from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
    from openai_responses_mcp.adapters.openai.wire import progress_of, read_reply

from openai_responses_mcp.adapters.clocks import TokyoClock
from openai_responses_mcp.domain.errors import GatewayError
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, Progress
from openai_responses_mcp.server.jsonrpc import encode
from tests.fakes import FakeLogger

ITEM = (
    b'{"type":"message","phase":"final_answer","content":[{"type":"output_text","text":"x","annotations":'
    b'[{"type":"url_citation","url":"https://a.example","title":"t","date":"2026-02-31"}]}]}'
)
SEARCH = b'{"type":"web_search_call","action":{"query":"q","sources":[{"type":"api","name":"n","published_at":"2026-01-01"}]}}'
USAGE = b'"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}'
REPLY = b'{"id":"r","model":"m","status":"completed","output":[%b,%b],%b}' % (ITEM, SEARCH, USAGE)
ERROR = b'{"error":{"message":"no","type":"t","code":"c","param":"previous_response_id"}}'

DIRECT, BODY, STREAM, STATUS = 0, 1, 2, 3
SEEDS = (
    bytes([DIRECT]) + REPLY,
    bytes([DIRECT]) + b'{"status":"incomplete","incomplete_details":{"reason":"max"},"output":[{"type":"refusal"}]}',
    bytes([DIRECT]) + b'{"status":"failed","error":{"message":"m","code":"c"}}',
    bytes([DIRECT]) + b'{"type":"response.output_item.done","item":%b}' % SEARCH,
    bytes([BODY]) + REPLY,
    bytes([STREAM])
    + b'data: {"type":"response.created"}\n\ndata: {"type":"response.completed","response":%b}\n\n' % REPLY,
    bytes([STREAM]) + b'event: error\ndata: {"type":"error","code":"c","message":"m"}\n\n',
    bytes([STREAM]) + b"data: " + ERROR + b"\n\ndata: [DONE]\n\n",
    bytes([STATUS]) + b"retry-after\n17\n" + ERROR,
    bytes([STATUS]) + b"retry-after\nWed, 21 Oct 2015 07:28:00 GMT\n{}",
    bytes([STATUS]) + b"content-type\ntext/html; charset=utf-16\n" + ERROR,
)
WORDS = (b'"type":', b'"message"', b'"output":[', b'"content":[', b'"output_text"', b'"text":', b'"annotations":[',
         b'"url_citation"', b'"url":', b'"action":', b'"sources":[', b'"status":', b'"usage":', b'"error":', b"data: ",
         b"event: ", b"\n\n", b"retry-after\n", b"retry-after-ms\n", b"content-type\n", b"charset=", b"\\ud800", b"NaN",
         b"1e999", b'"refusal"', b'"phase":', b"null")  # fmt: skip
LONGEST_INPUT = 3_000

REQUEST = ModelRequest("gpt-5", "policy", "question")
STATUSES = (400, 401, 404, 429, 500, 503, 301)


class Served(httpx2.AsyncByteStream):
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body[: len(self._body) // 2]
        yield self._body[len(self._body) // 2 :]


def reply_to(data: bytes) -> httpx2.Response:
    if data[0] % 4 != STATUS:
        kind = b"text/event-stream" if data[0] % 4 == STREAM else b"application/json"
        return httpx2.Response(200, headers=[(b"content-type", kind)], stream=Served(data[1:]))
    name, _, rest = data[1:].partition(b"\n")
    value, _, body = rest.partition(b"\n")
    # As an HTTP client hands headers on: no line ends, no control characters.
    fits = name.replace(b"-", b"").isalnum() and all(byte >= 32 and byte != 127 for byte in value)
    headers = [(name, value)] if fits else []
    return httpx2.Response(STATUSES[data[0] // 4 % len(STATUSES)], headers=headers, stream=Served(body))


def client_of(data: bytes) -> AsyncOpenAI:
    """The real SDK over a transport that gives one reply to whatever is asked."""
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: reply_to(data)), follow_redirects=False)
    return AsyncOpenAI(api_key="made-up-key", base_url="http://api.example/v1", max_retries=0, http_client=http)


def read_directly(data: bytes) -> None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict):
        check_progress(progress_of(value))
    try:
        check_reply(read_reply(value))
    except GatewayError as exc:
        check_failure(exc)


async def ask(data: bytes) -> None:
    gateway = OpenAIResponsesGateway(
        lambda: client_of(data),
        api_key="made-up-key",
        api_key_variable="KEY",
        timeout_seconds=5.0,
        max_concurrency=1,
        omit=(),
        clock=TokyoClock(),
        logger=FakeLogger(is_debugging=False),
    )
    try:
        check_reply(await gateway.respond(REQUEST, check_progress))
    except GatewayError as exc:
        check_failure(exc)
    finally:
        await gateway.close()


def check_reply(reply: ModelReply) -> None:
    sources = [dataclasses.asdict(source) for source in (*reply.cited, *reply.searched)]
    usage = dataclasses.asdict(reply.usage) if reply.usage else None
    encode({"text": reply.text, "sources": sources, "usage": usage, "id": reply.response_id})


def check_progress(progress: Progress | None) -> None:
    if progress is not None:
        encode({"message": progress.message})


def check_failure(error: GatewayError) -> None:
    """What the client is told, in debug mode too, can be sent."""
    if not str(error).strip():
        raise AssertionError("a failure that says nothing")
    encode({"message": str(error), "status": error.status, "code": error.code, "type": error.kind, "body": error.body})


def test_one(data: bytes) -> None:
    if not data:
        return
    if data[0] % 4 == DIRECT:
        read_directly(data[1:])
    else:
        LOOP.run_until_complete(ask(data))


LOOP = asyncio.new_event_loop()


def main() -> None:
    atheris.Setup(sys.argv, test_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
