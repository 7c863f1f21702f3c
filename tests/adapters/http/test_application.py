"""The HTTP application alone: limits, OAuth metadata and shutdown. The tests themselves reply to requests."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2

from openai_responses_mcp.adapters.http.access import AllowedHosts, Callers, Issuer, IssuerKeys, Unauthorized
from openai_responses_mcp.adapters.http.application import HttpLimits, McpOverHttp
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import Received, Transport
from tests.adapters.http.test_access import FakeIssuer, token
from tests.e2e.http_process import BOTH, INITIALIZE, call, enveloped, request, routed
from tests.fakes import WAIT_SECONDS, FakeLogger

URL = "http://127.0.0.1:8080/mcp"
ISSUER = Issuer("https://login.example", "https://answers.example/mcp")


class Served:
    """Keeps every request that arrives; only the test replies."""

    def __init__(self, limits: HttpLimits = HttpLimits(), issuer: Issuer | None = None) -> None:  # noqa: B008
        self.received: asyncio.Queue[Received] = asyncio.Queue()
        self.serving, self.transports = list[Any](), list[Transport]()
        self.closed = 0
        public_url = None if issuer is None else issuer.audience
        self.mcp = McpOverHttp(
            self._serve,
            AllowedHosts("http://127.0.0.1:8080", public_url),
            Callers({}, IssuerKeys(issuer) if issuer else None),
            FakeLogger(),
            issuer=issuer,
            limits=limits,
        )
        self.has_pinged = asyncio.Event()
        self.http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=self._app), timeout=WAIT_SECONDS)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if b": ping" in message.get("body", b""):
                self.has_pinged.set()
            await send(message)

        await self.mcp.app(scope, receive, sent)

    async def _serve(self, transport: Transport) -> None:
        seen: list[Received] = []
        self.serving.append(asyncio.current_task())
        self.transports.append(transport)
        try:
            while (received := await transport.receive()) is not None:
                seen.append(received)
                self.received.put_nowait(received)
        except TransportClosed:
            self.closed += 1
            for received in seen:
                received.channel.withdraw()

    def post(self, message: Any, headers: dict[str, str] | None = None) -> "asyncio.Task[httpx2.Response]":
        return asyncio.ensure_future(self.http.post(URL, json=message, headers=headers or routed(message)))

    async def session(self) -> dict[str, str]:
        """The headers for requests of a new session."""
        opening = self.post(request(0, "initialize", INITIALIZE), BOTH)
        (await self.next()).channel.reply(b"{}")
        return {**BOTH, "mcp-session-id": (await opening).headers["mcp-session-id"]}

    async def next(self) -> Received:
        return await asyncio.wait_for(self.received.get(), WAIT_SECONDS)


async def test_a_call_beyond_the_limit_gets_503_until_another_ends() -> None:
    served = Served(HttpLimits(most_in_flight=1))
    first = served.post(call(1, "Why?"))
    held = await served.next()
    refused = await served.post(call(2, "Why?"))
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    held.channel.reply(b"{}")
    assert (await first).status_code == 200
    second = served.post(call(3, "Why?"))
    (await served.next()).channel.reply(b"{}")
    assert (await second).status_code == 200


async def test_a_session_beyond_the_limit_gets_503() -> None:
    served = Served(HttpLimits(most_sessions=1))
    await served.session()
    refused = await served.post(request(0, "initialize", INITIALIZE), BOTH)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")


async def test_an_initialize_that_fails_opens_no_session() -> None:
    served = Served(HttpLimits(most_sessions=1))
    for _ in range(3):
        reply = served.post(request(0, "initialize", INITIALIZE), BOTH)
        (await served.next()).channel.reply(b"{}", -32602)
        assert (await reply).status_code == 200


async def test_a_body_that_does_not_end_times_out() -> None:
    served = Served(HttpLimits(body_seconds=0.05))

    async def never_ending() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(WAIT_SECONDS)

    reply = await served.http.post(URL, content=never_ending(), headers=BOTH)
    assert reply.status_code == 408


async def test_a_message_before_the_reply_makes_it_a_stream() -> None:
    served = Served()
    asked = served.post(call(1, "Why?"))
    channel = (await served.next()).channel
    channel.send(b'{"method":"notifications/x"}')
    channel.reply(b'{"id":1}')
    reply = await asked
    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.text == 'event: message\ndata: {"method":"notifications/x"}\n\nevent: message\ndata: {"id":1}\n\n'


async def test_the_metadata_names_the_issuer_and_a_401_names_the_metadata() -> None:
    served = Served(issuer=ISSUER)
    message = enveloped(1, "tools/list")
    headers = {**routed(message), "host": "answers.example"}
    refused = await served.http.post(URL, json=message, headers=headers)
    where = "https://answers.example/.well-known/oauth-protected-resource/mcp"
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, f'Bearer resource_metadata="{where}"')
    for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"):
        found = await served.http.get(f"http://127.0.0.1:8080{path}", headers={"host": "answers.example"})
        assert found.json() == {
            "resource": "https://answers.example/mcp",
            "authorization_servers": ["https://login.example"],
            "bearer_methods_supported": ["header"],
        }
        assert (await served.http.get(f"http://127.0.0.1:8080{path}", headers={"host": "x"})).status_code == 403


async def test_a_token_gets_503_and_not_401_while_its_issuer_is_down() -> None:
    served, issuer = Served(), FakeIssuer()
    issuer.is_down = True
    served.mcp._callers = issuer.callers()
    message = enveloped(1, "tools/list")
    refused = await served.post(message, {**routed(message), "authorization": f"Bearer {token()}"})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert refused.text == "Service Unavailable: the keys of the token's issuer cannot be read\n"


async def test_without_an_issuer_there_is_no_metadata() -> None:
    path = "/.well-known/oauth-protected-resource/mcp"
    assert (await Served().http.get(f"http://127.0.0.1:8080{path}")).status_code == 404


async def test_draining_cancels_calls_that_do_not_end_in_time() -> None:
    served, order = Served(), list[str]()
    asked = served.post(call(1, "Why?"))
    await served.next()
    async with asyncio.timeout(WAIT_SECONDS):
        await served.mcp.drain(0.01, asyncio.Future(), lambda: order.append("over"))
        reply = await asked
    assert (order, served.closed, reply.json()["error"]["code"]) == (["over"], 1, -32800)
    assert (await served.post(call(2, "Why?"))).status_code == 503


async def test_a_call_that_lost_its_connection_counts_as_in_flight_until_it_ends() -> None:
    served = Served(HttpLimits(most_in_flight=1))
    session = await served.session()
    lost = served.post(request(1, "tools/call", {"name": "x"}), session)
    channel = (await served.next()).channel
    lost.cancel()
    assert (await served.post(request(2, "tools/call", {"name": "x"}), session)).status_code == 503
    draining = asyncio.ensure_future(served.mcp.drain(WAIT_SECONDS, asyncio.Future()))
    # Messages without a reply are still accepted: one may be the answer that the call waits for.
    note = {"jsonrpc": "2.0", "method": "notifications/x"}
    assert (await served.post(note, session)).status_code == 202
    assert not draining.done()
    channel.reply(b"{}")
    await asyncio.wait_for(draining, WAIT_SECONDS)


async def test_a_request_that_the_server_leaves_without_a_reply_gets_an_error() -> None:
    served = Served()
    asked = served.post(call(1, "Why?"))
    await served.next()
    served.serving[0].cancel()
    reply = (await asyncio.wait_for(asked, WAIT_SECONDS)).json()
    assert (reply["id"], reply["error"]["code"]) == (1, -32603)


# ---------------------------------------------------------------------------------------------------------------------
# Calls that are silent for long, and tokens that expire


async def test_a_silent_call_of_the_newer_era_gets_json_however_long_it_takes() -> None:
    served = Served(HttpLimits(ping_seconds=0.01))
    asked = served.post(call(1, "Why?"))
    channel = (await served.next()).channel
    served.post(call(2, "Why?", progressToken="t"))
    # Once the later call gets a ping, the first has been silent long enough for one too.
    await asyncio.wait_for(served.has_pinged.wait(), WAIT_SECONDS)
    channel.reply(b'{"id":1}')
    (await served.next()).channel.reply(b'{"id":2}')
    reply = await asked
    assert (reply.headers["content-type"], reply.text) == ("application/json", '{"id":1}')


async def test_a_silent_call_that_wants_progress_gets_pings() -> None:
    served = Served(HttpLimits(ping_seconds=0.01))
    asked = served.post(call(1, "Why?", progressToken="t"))
    channel = (await served.next()).channel
    await asyncio.wait_for(served.has_pinged.wait(), WAIT_SECONDS)
    channel.reply(b'{"id":1}')
    reply = await asked
    assert reply.headers["content-type"] == "text/event-stream"
    assert ": ping\n\n" in reply.text


class ExpiringCallers(Callers):
    """The token is valid until `has_expired` is set."""

    has_expired = False

    async def caller(self, authorizations: Sequence[str]) -> str:
        if self.has_expired:
            raise Unauthorized
        return "ann"


async def test_an_expired_token_ends_the_stream_of_the_session_but_not_a_call() -> None:
    served, callers = Served(HttpLimits(ping_seconds=0.01)), ExpiringCallers({}, None)
    served.mcp._callers = callers
    session = await served.session()
    listening = asyncio.ensure_future(served.http.get(URL, headers=session))
    asked = served.post(request(1, "tools/call", {"name": "x"}), session)
    channel = (await served.next()).channel
    callers.has_expired = True
    async with asyncio.timeout(WAIT_SECONDS):
        while not listening.done():  # The stream ends even if it is never silent.
            served.transports[0].send(b'{"method":"notifications/x"}')
            await asyncio.sleep(0)
    assert (await listening).status_code == 200
    channel.reply(b'{"id":1}')
    assert (await asked).status_code == 200
    assert (await served.post(request(2, "ping"), session)).status_code == 401
