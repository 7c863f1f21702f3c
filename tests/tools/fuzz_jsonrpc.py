"""Coverage-guided fuzzing of JSON-RPC: whatever a message holds, it is answered once, started as a call, or ignored."""

import asyncio
import json
import sys
from typing import Any, NoReturn

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

with atheris.instrument_imports(include=["openai_responses_mcp.server"]):
    from openai_responses_mcp.domain.jsonrpc import BadMessage, Notification, Request
    from openai_responses_mcp.server.dispatch import Dispatcher
from openai_responses_mcp.domain.cancellation import CallsInFlight
from openai_responses_mcp.domain.ports import Received
from openai_responses_mcp.server.jsonrpc import decode
from tests.fakes import FakeLogger, FakeTransport

TOOLS = ("answer", "answer_detailed", "answer_quick", "iris")
ENVELOPE = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
)
SEEDS = (
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":"1","method":"initialize","params":null}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"answer","arguments":{"query":"why"}}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%b}}' % ENVELOPE,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{%b}}' % ENVELOPE,
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":{"\\ud800":NaN,"a":1e999}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'[{"id":true},{"id":1.0},{"id":null}]',
)
WORDS = (b'"jsonrpc":"2.0"', b'"id":', b'"method":', b'"params":', b'"tools/call"', b'"ping"', b'"requestId":1',
         b'"progressToken":1', b"null", b"\\ud800", b"\\u2028", b"1e999", b"-0", b"NaN", ENVELOPE)  # fmt: skip
LONGEST_INPUT = 2_000


async def _never() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError


async def replies_to(body: bytes) -> tuple[list[Any], int]:
    """What is sent at once, and how many calls are then in flight."""
    transport, logger = FakeTransport(), FakeLogger()
    calls = CallsInFlight(logger)
    dispatcher = Dispatcher(calls, logger, TOOLS, _never, None)
    dispatcher.handle(Received(body, transport))
    count = len(calls)
    dispatcher.abort()
    if any(b"\n" in sent or b"\xe2\x80\xa8" in sent for sent in transport.sent):
        raise AssertionError("a reply has a line end in it")
    return [json.loads(sent) for sent in transport.sent], count


def test_one(data: bytes) -> None:
    incoming = decode(data)
    replies, calls = LOOP.run_until_complete(replies_to(data))
    wanted = isinstance(incoming, Request | BadMessage)
    if incoming is not None and not isinstance(incoming, Request | BadMessage | Notification):
        raise AssertionError(f"decoded to {type(incoming)}")
    if len(replies) + calls != wanted:
        raise AssertionError(f"{len(replies)} replies, {calls} calls, {wanted=}")
    if replies and isinstance(incoming, Request | BadMessage) and replies[0]["id"] != incoming.id:
        raise AssertionError("the reply has another id")


LOOP = asyncio.new_event_loop()


def main() -> None:
    atheris.Setup(sys.argv, test_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
