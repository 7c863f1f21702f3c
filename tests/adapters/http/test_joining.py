"""All exchanges of one caller as one client: ids never mix, and a closed exchange is cancelled."""

import asyncio
import json
from typing import Any

import pytest

from openai_responses_mcp.adapters.http.joining import ClientsOfCallers, JoinedExchanges
from openai_responses_mcp.adapters.http.posts import Headers
from openai_responses_mcp.adapters.http.sessions import HttpExchange, HttpSession
from openai_responses_mcp.adapters.http.streams import Outbox
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import Received, Transport
from tests.fakes import WAIT_SECONDS

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def an_exchange(
    request_id: int | str, caller: str = "ann", method: str = "tools/call", headers: Headers = (), **params: Any
) -> HttpExchange:
    body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return HttpExchange(json.dumps(body).encode(), request_id, caller, headers)


def sent_to(outbox: Outbox) -> list[Any]:
    found, after = [], 0
    while (message := outbox.next_after(after)) is not None:
        found.append(json.loads(message.body))
        after = message.number
    return found


async def taken(joined: JoinedExchanges) -> tuple[Any, Received]:
    received = await asyncio.wait_for(joined.receive(), WAIT_SECONDS)
    assert received is not None
    assert isinstance(received.body, bytes)
    return json.loads(received.body), received


async def test_the_same_ids_in_two_exchanges_do_not_collide() -> None:
    joined = JoinedExchanges()
    exchanges = [an_exchange("x", name=name, _meta={"progressToken": "t", "other": 1}) for name in ("a", "b")]
    serving = [asyncio.create_task(joined.serve(one)) for one in exchanges]
    found = [await taken(joined) for _ in exchanges]
    assert [message["id"] for message, _ in found] == [1, 2]
    assert [message["params"]["_meta"] for message, _ in found] == [
        {"progressToken": number, "other": 1} for number in (1, 2)
    ]
    for message, received in reversed(found):
        progress = {"progressToken": message["id"], "progress": 1}
        received.channel.send(json.dumps({"method": "notifications/progress", "params": progress}).encode())
        received.channel.send(b'{"method":"notifications/message"}')
        received.channel.reply(json.dumps({"id": message["id"], "result": message["params"]["name"]}).encode(), None)
    await asyncio.wait_for(asyncio.gather(*serving), WAIT_SECONDS)
    for exchange, name in zip(exchanges, ("a", "b"), strict=True):
        assert sent_to(exchange.outbox) == [
            {"method": "notifications/progress", "params": {"progressToken": "t", "progress": 1}},
            {"method": "notifications/message"},
            {"id": "x", "result": name},
        ]


async def test_closing_an_exchange_cancels_its_request() -> None:
    joined, exchange = JoinedExchanges(), an_exchange(7)
    serving = asyncio.create_task(joined.serve(exchange))
    message, received = await taken(joined)
    exchange.close()
    await asyncio.wait_for(serving, WAIT_SECONDS)
    cancelled, _ = await taken(joined)
    assert cancelled == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": message["id"]},
    }
    received.channel.withdraw()
    assert sent_to(exchange.outbox)[0]["error"]["code"] == -32800


async def test_a_message_reaches_the_exchange_that_it_names_or_is_dropped() -> None:
    joined, exchange = JoinedExchanges(), an_exchange("listening")
    serving = asyncio.create_task(joined.serve(exchange))
    message, _ = await taken(joined)
    number = message["id"]
    joined.send(json.dumps({"method": "a", "params": {"_meta": {SUBSCRIPTION: number}}}).encode())
    joined.send(json.dumps({"method": "b", "params": {"requestId": number}}).encode())
    joined.send(json.dumps({"method": "c", "params": {"requestId": number + 1}}).encode())
    joined.send(b'{"method":"d"}')
    assert sent_to(exchange.outbox) == [
        {"method": "a", "params": {"_meta": {SUBSCRIPTION: "listening"}}},
        {"method": "b", "params": {"requestId": "listening"}},
    ]
    exchange.close()
    await asyncio.wait_for(serving, WAIT_SECONDS)


async def test_a_message_that_is_no_request_passes_unchanged() -> None:
    joined, exchange = JoinedExchanges(), HttpExchange(b"no json", None, "ann")
    serving = asyncio.create_task(joined.serve(exchange))
    received = await asyncio.wait_for(joined.receive(), WAIT_SECONDS)
    assert received is not None
    assert received.body == b"no json"
    received.channel.reply(b'{"id":null}')
    await asyncio.wait_for(serving, WAIT_SECONDS)
    assert sent_to(exchange.outbox) == [{"id": None}]


async def test_a_client_that_does_not_read_slows_the_server_down() -> None:
    joined, exchange = JoinedExchanges(), an_exchange(1)
    serving = asyncio.create_task(joined.serve(exchange))
    _, received = await taken(joined)
    exchange.outbox.reader = object()
    received.channel.send(json.dumps({"method": "long", "params": {"x": "x" * 5_000_000}}).encode())
    flushing = asyncio.create_task(joined.flush())
    await asyncio.sleep(0)
    assert not flushing.done()
    exchange.outbox.sent(1)
    await asyncio.wait_for(flushing, WAIT_SECONDS)
    joined.close()
    await joined.flush()
    exchange.close()
    await asyncio.wait_for(serving, WAIT_SECONDS)
    for _ in range(2):
        with pytest.raises(TransportClosed):
            await joined.receive()


async def test_each_session_is_a_client_and_all_exchanges_of_a_caller_share_one() -> None:
    served: list[tuple[str, str]] = []

    async def serve_client(client: Transport, key: str, caller: str) -> None:
        served.append((key.partition(" ")[0], caller))
        while True:
            try:
                received = await client.receive()
            except TransportClosed:
                return
            assert received is not None
            received.channel.reply(b'{"id":1,"result":{}}')

    clients = ClientsOfCallers(serve_client)
    session = HttpSession("ann")
    in_session = asyncio.create_task(clients.serve(session))
    for caller in ("ann", "ann", "bob"):
        await asyncio.wait_for(clients.serve(an_exchange(1, caller)), WAIT_SECONDS)
    session.close()
    await asyncio.wait_for(in_session, WAIT_SECONDS)
    await clients.close(WAIT_SECONDS)
    assert sorted(served) == [("caller", "ann"), ("caller", "bob"), ("session", "ann")]


async def test_a_caller_whose_server_failed_gets_an_error_and_then_a_new_server() -> None:
    is_broken = True

    async def serve_client(client: Transport, key: str, caller: str) -> None:
        received = await client.receive()
        assert received is not None
        if is_broken:
            raise OSError
        received.channel.reply(b'{"id":1,"result":{}}')
        with pytest.raises(TransportClosed):
            await client.receive()

    clients = ClientsOfCallers(serve_client)
    first, second = an_exchange(1), an_exchange(2)
    await asyncio.wait_for(clients.serve(first), WAIT_SECONDS)
    assert sent_to(first.outbox)[0]["error"]["code"] == -32603
    is_broken = False
    await asyncio.wait_for(clients.serve(second), WAIT_SECONDS)
    assert sent_to(second.outbox) == [{"id": 2, "result": {}}]
    await clients.close(WAIT_SECONDS)


LISTED = {
    "tools": [
        {
            "name": "go",
            "inputSchema": {
                "properties": {
                    "where": {"type": "string", "x-mcp-header": "Region"},
                    "deep": {"properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
                }
            },
        }
    ]
}


@pytest.mark.parametrize(
    ("headers", "arguments", "differing"),
    [
        ([("mcp-param-region", "=?base64?5p2x5Lqs?=")], {"where": "東京"}, None),
        ([("mcp-param-count", "42")], {"deep": {"count": 42.0}}, None),
        ([("mcp-param-region", "=?base64?5p2x5Lq?=")], {"where": "東京"}, "mcp-param-region"),
        ([("mcp-param-region", "b")], {"where": "a"}, "mcp-param-region"),
        ([("mcp-param-region", "a"), ("mcp-param-region", "a")], {"where": "a"}, "mcp-param-region"),
        ([("mcp-param-region", "=?base64?!?=")], {}, "mcp-param-region"),
        ([], {"deep": {"count": 1}}, "mcp-param-count"),
    ],
    ids=str,
)
async def test_a_header_that_repeats_an_argument_must_match_it(
    headers: Headers, arguments: Any, differing: str | None
) -> None:
    joined = JoinedExchanges()
    listing = an_exchange(1, method="tools/list")
    calling = an_exchange(2, "ann", "tools/call", headers, name="go", arguments=arguments)
    for exchange in (listing, calling):
        serving = asyncio.create_task(joined.serve(exchange))
        if exchange is calling and differing is not None:
            await asyncio.wait_for(serving, WAIT_SECONDS)
            break
        message, received = await taken(joined)
        received.channel.reply(json.dumps({"id": message["id"], "result": LISTED}).encode())
        await asyncio.wait_for(serving, WAIT_SECONDS)
    expected = None if differing is None else (-32020, f"the header {differing} differs from the body")
    error = sent_to(calling.outbox)[0].get("error")
    assert (error and (error["code"], error["message"])) == expected
