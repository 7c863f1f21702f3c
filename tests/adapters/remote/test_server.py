"""A remote server as a transport, against a stand-in on loopback: both eras, sessions, streams, and what can break."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from starlette.responses import RedirectResponse, Response, StreamingResponse

from openai_responses_mcp.adapters.http.serving import Tls
from openai_responses_mcp.adapters.remote import oauth
from openai_responses_mcp.adapters.remote.credentials import Credentials
from openai_responses_mcp.adapters.remote.exchange import Advice, Exchange
from openai_responses_mcp.adapters.remote.wire import remote_address
from openai_responses_mcp.domain.ports import FramingFault
from tests.adapters.remote.stand_in import (
    ENVELOPE,
    INITIALIZE,
    INITIALIZED,
    LONGEST,
    Answering,
    Asked,
    Message,
    StandIn,
    as_json,
    event,
    events,
    remote,
    request,
    result,
    serving,
)
from tests.fakes import WAIT_SECONDS

CANCEL_1 = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}


def always(*responses: Callable[[], Response]) -> Answering:
    """The responses in order; the last one repeats."""
    left = list(responses)

    async def answer(_: Asked) -> Response:
        return (left.pop(0) if len(left) > 1 else left[0])()

    return answer


# The two eras


async def test_messages_of_a_session_pass_byte_for_byte() -> None:
    async with remote() as scene:
        await scene.opened()
        reply = b'{"jsonrpc": "2.0",  "id": 1, "result": {"z": 1.50, "a": "\\u00e9"}}'
        scene.server.answers["tools/call"] = always(lambda: as_json(reply))
        sent = b'{"id": 1, "jsonrpc":"2.0",   "method": "tools/call", "params": {"name": "\\u0061"}}'
        scene.transport.send(sent)
        assert await scene.raw() == reply
        called = scene.server.first("tools/call")
        assert called.body == sent
        assert called.headers["mcp-session-id"] == "session-1"
        assert called.headers["mcp-protocol-version"] == "2025-11-25"
        assert "mcp-session-id" not in scene.server.first("initialize").headers
    assert scene.server.kinds()[-1] == "DELETE"
    assert scene.server.asked[-1].headers["mcp-session-id"] == "session-1"


async def test_headers_repeat_a_request_of_the_new_era_which_has_no_session() -> None:
    schema = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"x-mcp-header": "bad name"}}}
    async with remote() as scene:
        tools = [{"name": "café", "inputSchema": schema}]
        scene.server.answers["tools/list"] = always(lambda: as_json(result(1, tools=tools)))
        scene.send(request(1, "tools/list", _meta=ENVELOPE))
        assert (await scene.next())["id"] == 1
        scene.send(request(2, name="café", arguments={"region": "eu", "n": 3}, _meta=ENVELOPE))
        assert await scene.next() == result(2, of="tools/call")
        headers = scene.server.first("tools/call").headers
        assert (headers["mcp-protocol-version"], headers["mcp-method"]) == ("2026-07-28", "tools/call")
        assert headers["mcp-name"] == "=?base64?Y2Fmw6k=?="
        assert headers["mcp-param-region"] == "eu"
        assert [name for name in headers if name.startswith("mcp-param")] == ["mcp-param-region"]
        assert "mcp-session-id" not in headers
        scene.send({"jsonrpc": "2.0", "method": "notifications/other", "params": {}})
        (noted,) = await scene.server.came("notifications/other")
        assert noted.headers["mcp-protocol-version"] == "2026-07-28"
    assert "DELETE" not in scene.server.kinds()


async def test_messages_after_initialize_wait_for_the_session() -> None:
    async with remote() as scene:
        scene.send(INITIALIZE, INITIALIZED, request(1))
        assert [(await scene.next())["id"] for _ in range(2)] == [0, 1]
        assert scene.server.first("tools/call").headers["mcp-session-id"] == "session-1"
        assert scene.server.kinds()[:2] == ["initialize", "notifications/initialized"]


async def test_a_second_initialize_ends_the_first_session() -> None:
    async with remote() as scene:
        await scene.opened()
        scene.send({**INITIALIZE, "id": "again"})
        assert (await scene.next())["id"] == "again"
        (ended,) = await scene.server.came("DELETE")
        assert ended.headers["mcp-session-id"] == "session-1"


async def test_a_server_without_sessions_gets_only_the_revision() -> None:
    async with remote() as scene:
        shown = result(0, protocolVersion="2025-06-18")
        scene.server.answers["initialize"] = always(lambda: as_json(shown))
        await scene.opened()
        scene.send(request(1))
        assert (await scene.next())["id"] == 1
        headers = scene.server.first("tools/call").headers
        assert headers["mcp-protocol-version"] == "2025-06-18"
        assert "mcp-session-id" not in headers
    assert not {"GET", "DELETE"} & set(scene.server.kinds())


# Notifications and questions of the server


async def test_progress_and_questions_arrive_before_the_reply_and_answers_reach_the_server() -> None:
    async with remote() as scene:
        await scene.opened()
        answered = asyncio.Event()
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
        question = request("q", "elicitation/create", message="?")
        parts = (event(progress), event(question), answered, event(result(1)))
        scene.server.answers["tools/call"] = always(lambda: events(*parts))
        scene.send(request(1))
        assert [await scene.next(), await scene.next()] == [progress, question]
        scene.send(result("unasked"), result("q", action="accept"))
        (reply,) = await scene.server.came("reply")
        assert reply.message == result("q", action="accept")
        answered.set()
        assert await scene.next() == result(1)


async def test_a_broken_session_stream_is_resumed_after_its_last_event() -> None:
    async with remote() as scene:
        changed = {"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}
        never = asyncio.Event()
        too_large = b"data: " + b"x" * (LONGEST + 1) + b"\n\n"
        first = (b"retry: 10\n", event(changed, "e1"), too_large)
        scene.server.answers["GET"] = always(
            lambda: events(*first),
            lambda: Response(status_code=503),
            lambda: events(event(request(1, "roots/list")), never),
        )
        await scene.opened()
        assert await scene.next() == changed
        fault = await asyncio.wait_for(scene.transport.receive(), WAIT_SECONDS)
        assert fault is not None
        assert isinstance(fault.body, FramingFault)
        assert await scene.next() == request(1, "roots/list")
        opened = await scene.server.came("GET", 3)
        assert [one.headers.get("last-event-id") for one in opened[:3]] == [None, "e1", "e1"]


async def test_a_flood_of_messages_is_throttled_without_loss() -> None:
    notes = [
        {"jsonrpc": "2.0", "method": "notifications/x", "params": {"n": n, "fill": "x" * 90_000}} for n in range(80)
    ]
    async with remote() as scene:
        scene.server.answers["tools/call"] = always(lambda: events(*map(event, notes), event(result(1))))
        scene.send(request(1, _meta=ENVELOPE), request(2, "ping", _meta=ENVELOPE))
        await scene.server.came("ping")
        received = [await scene.next() for _ in range(82)]
        assert [one["params"]["n"] for one in received if "params" in one] == list(range(80))
        assert {one.get("id") for one in received} == {None, 1, 2}


# Cancelling


async def test_cancelling_a_request_of_the_new_era_closes_its_response() -> None:
    async with remote() as scene:
        is_closed = asyncio.Event()

        async def waiting(_: Asked) -> Response:
            async def body() -> AsyncIterator[bytes]:
                try:
                    yield b": here\n\n"
                    await asyncio.Event().wait()
                finally:
                    is_closed.set()

            return StreamingResponse(body(), media_type="text/event-stream")

        scene.server.answers["tools/call"] = waiting
        scene.send(request(1, _meta=ENVELOPE))
        await scene.server.came("tools/call")
        scene.send(CANCEL_1)
        await asyncio.wait_for(is_closed.wait(), WAIT_SECONDS)
        scene.send(CANCEL_1, request(2, "ping", _meta=ENVELOPE))
        assert (await scene.next())["id"] == 2
        assert "notifications/cancelled" not in scene.server.kinds()


async def test_cancelling_a_request_of_a_session_notifies_the_server_and_gets_no_reply() -> None:
    async with remote() as scene:
        await scene.opened()
        scene.server.answers["tools/call"] = always(lambda: events(b": here\n\n", asyncio.Event()))
        scene.send(request(1), CANCEL_1)
        (cancelled,) = await scene.server.came("notifications/cancelled")
        assert cancelled.headers["mcp-session-id"] == "session-1"
        assert scene.server.kinds().index("tools/call") < scene.server.kinds().index("notifications/cancelled")
        scene.send(request(2, "ping"))
        assert (await scene.next())["id"] == 2


# Resumption


async def test_a_broken_response_is_resumed_after_its_last_event() -> None:
    async with remote() as scene:
        await scene.opened()
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
        scene.server.answers["tools/call"] = always(lambda: events(b"retry: 5\nid: e1\ndata:\n\n", event(note, "e2")))
        scene.server.answers["GET"] = always(
            lambda: Response(status_code=503), lambda: events(b": on it\n\n"), lambda: events(event(result(1), "e3"))
        )
        scene.send(request(1))
        assert [await scene.next(), await scene.next()] == [note, result(1)]
        assert [one.headers["last-event-id"] for one in (await scene.server.came("GET", 4))[1:]] == ["e2"] * 3
        assert scene.server.kinds().count("tools/call") == 1


@pytest.mark.parametrize("status", [400, 503])
async def test_a_response_that_cannot_be_resumed_is_an_error_and_the_call_is_not_repeated(status: int) -> None:
    async with remote() as scene:
        await scene.opened()
        scene.server.answers["tools/call"] = always(lambda: events(b"retry: 1\nid: e1\ndata:\n\n"))
        scene.server.answers["GET"] = always(lambda: Response(status_code=status))
        scene.send(request(1))
        assert "it is not known whether the request was carried out" in await scene.error()
        assert scene.server.kinds().count("tools/call") == 1


@pytest.mark.parametrize("meta", [{}, {"_meta": ENVELOPE}])
async def test_a_broken_response_without_event_ids_is_an_error(meta: Message) -> None:
    async with remote() as scene:
        await scene.opened()
        scene.server.answers["tools/call"] = always(lambda: events(b": nothing\n\n"))
        scene.send(request(1, **meta))
        assert "ended its reply without an answer" in await scene.error()


# A session that the server has forgotten


def forgetting(*forgotten: str) -> Answering:
    async def answer(asked: Asked) -> Response:
        if asked.headers["mcp-session-id"] in forgotten:
            return as_json({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "no session"}}, 404)
        return as_json(result(asked.message["id"], fresh=True))

    return answer


async def test_a_forgotten_session_is_replaced_and_no_call_is_repeated() -> None:
    async with remote() as scene:
        await scene.opened()
        never = asyncio.Event()
        question = request("q", "roots/list")
        scene.server.answers["slow"] = always(lambda: events(event(question), never))
        scene.send(request("in flight", "slow"))
        assert await scene.next() == question
        scene.server.answers["tools/call"] = forgetting("session-1")
        scene.send(request(1))
        failed, cancelled, changed, last = [await scene.next() for _ in range(4)]
        assert (failed["id"], last["id"]) == ("in flight", 1)
        assert all("has forgotten the session" in one["error"]["message"] for one in (failed, last))
        assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", "q")
        assert changed["method"] == "notifications/tools/list_changed"
        first, second = await scene.server.came("initialize", 2)
        assert second.message["params"] == first.message["params"]
        assert second.message["id"] != first.message["id"]
        noted = await scene.server.came("notifications/initialized", 2)
        assert noted[1].headers["mcp-session-id"] == "session-2"
        # The question belonged to the old session: its answer must not reach the new one.
        scene.send(result("q"), request(2))
        assert await scene.next() == result(2, fresh=True)
        assert "reply" not in scene.server.kinds()
        assert scene.server.kinds().count("slow") == 1
        assert [one.message["id"] for one in scene.server.asked if one.kind == "tools/call"] == [1, 2]


async def test_a_ping_decides_whether_a_400_means_a_forgotten_session() -> None:
    error = {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request"}}
    async with remote() as scene:
        await scene.opened()
        scene.server.answers["tools/call"] = always(lambda: as_json(error, 400))
        scene.send(request(1))
        assert await scene.error() == "Bad Request"
        assert scene.server.kinds().count("initialize") == 1
        scene.server.answers["ping"] = always(lambda: as_json(error, 400))
        scene.send(request(2))
        assert (await scene.next())["method"] == "notifications/tools/list_changed"
        assert "has forgotten the session" in await scene.error()
        scene.server.answers["tools/call"] = always(lambda: as_json({**error, "id": 3}, 400))
        scene.send(request(3))
        assert await scene.error() == "Bad Request"
        assert scene.server.kinds().count("ping") == 2


async def test_a_session_is_replaced_if_its_stream_gets_404() -> None:
    async with remote() as scene:
        never = asyncio.Event()
        scene.server.answers["GET"] = always(lambda: Response(status_code=404), lambda: events(b":\n\n", never))
        scene.send(INITIALIZE)
        await scene.next()
        scene.send(INITIALIZED)
        assert (await scene.next())["method"] == "notifications/tools/list_changed"
        assert (await scene.server.came("GET", 2))[1].headers["mcp-session-id"] == "session-2"


async def test_a_404_for_a_notification_or_a_resumption_also_replaces_the_session() -> None:
    async with remote() as scene:
        await scene.opened()
        scene.server.answers["notifications/roots/list_changed"] = always(lambda: Response(status_code=404))
        scene.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        assert (await scene.next())["method"] == "notifications/tools/list_changed"
        await scene.server.came("GET", 2)
        scene.server.answers["tools/call"] = always(lambda: events(b"retry: 1\nid: e1\ndata:\n\n"))
        scene.server.answers["GET"] = always(lambda: Response(status_code=404))
        scene.send(request(1))
        assert (await scene.next())["method"] == "notifications/tools/list_changed"
        assert "has forgotten the session" in await scene.error()
        await scene.server.came("initialize", 3)


async def test_a_session_that_cannot_be_replaced_is_tried_again_with_the_next_request() -> None:
    async with remote() as scene:
        await scene.opened()
        refused = {"jsonrpc": "2.0", "id": "x", "error": {"code": -32602, "message": "no"}}
        plain = scene.server._answer
        scene.server.answers["tools/call"] = forgetting("session-1")
        scene.server.answers["initialize"] = always(
            lambda: Response(status_code=503), lambda: as_json(refused), lambda: events(event(refused))
        )
        for said in ("has forgotten the session", "refuses to open a new session", "refuses to open a new session"):
            scene.send(request(1))
            assert said in await scene.error()
        assert "no new session could be opened" in scene.shown_lines[0]

        async def as_events(asked: Asked) -> Response:
            response = await plain(asked)
            streamed = events(b": first\n\n", event(json.loads(bytes(response.body))))
            streamed.headers["mcp-session-id"] = response.headers["mcp-session-id"]
            return streamed

        scene.server.answers["initialize"] = as_events
        scene.send(request(2))
        assert [(await scene.next()).get("id") for _ in range(2)] == [None, 2]
        del scene.server.answers["initialize"]
        scene.server.answers["tools/call"] = forgetting("session-2")
        scene.server.answers["notifications/initialized"] = always(lambda: Response(status_code=404))
        scene.send(request(3))
        assert "has forgotten the session" in await scene.error()
        assert "at once" in scene.shown_lines[-1]


# Faults of the server and the network


async def never_ending() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (lambda: Response(status_code=401), "(401): log in with: guard login --url X"),
        (lambda: Response(status_code=404), "There is no MCP server at this address"),
        (lambda: Response(status_code=405), "does not accept POST (405)"),
        (lambda: Response(status_code=429, headers={"retry-after": "7"}), "too many requests (429); call again in 7 s"),
        (lambda: Response("x" * 100_000, 502), "is in trouble (502); call again later"),
        (lambda: Response("<html>", media_type="text/html"), "answered with text/html, not with JSON"),
        (lambda: Response(status_code=202), "sends no answer (202)"),
        (lambda: StreamingResponse(never_ending(), media_type="application/json"), "did not end within"),
        (lambda: as_json(b"{"), "is not the reply to the request"),
        (lambda: as_json(b" " * (LONGEST + 1)), f"larger than {LONGEST} bytes"),
        (lambda: events(b"data: " + b"x" * (LONGEST + 1) + b"\n\n"), f"an event of more than {LONGEST} bytes"),
        (lambda: RedirectResponse("https://other.example/mcp", 307), "redirects to other.example, which is refused"),
        (lambda: RedirectResponse("/mcp", 302), "would drop the message (302)"),
        (lambda: RedirectResponse("/mcp", 307), "redirects in a circle"),
        (lambda: as_json({"error": {"code": 7, "message": "theirs"}}, 400), "theirs"),
        (lambda: as_json(b'{"error": "x"}', 400), "refused the request with status 400"),
        (lambda: Response(b"{}", headers={"content-encoding": "gzip"}, media_type="application/json"), "broke"),
    ],
)
async def test_an_unusable_response_is_an_error_that_says_what_to_do(
    response: Callable[[], Response], said: str
) -> None:
    async with remote() as scene:
        scene.server.answers["tools/call"] = always(response)
        scene.send(request(1, _meta=ENVELOPE))
        failed = await scene.next()
        assert failed["id"] == 1
        assert said in failed["error"]["message"]
        del scene.server.answers["tools/call"]
        scene.send(request(2, _meta=ENVELOPE))
        assert (await scene.next())["id"] == 2


async def test_an_error_from_the_server_passes_byte_for_byte_whatever_the_status() -> None:
    error = b'{"jsonrpc":"2.0", "id":1,"error":{"code":-32601,"message":"unknown","data":[1]}}'
    async with remote() as scene:
        scene.server.answers["tools/call"] = always(lambda: as_json(error, 404))
        scene.send(request(1, _meta=ENVELOPE))
        assert await scene.raw() == error


async def test_a_redirect_within_the_server_is_followed() -> None:
    async with remote() as scene:
        scene.server.answers["tools/call"] = always(
            lambda: RedirectResponse("/mcp/", 308), lambda: as_json(result(1, ok=True))
        )
        scene.send(request(1, _meta=ENVELOPE))
        assert await scene.next() == result(1, ok=True)
        first, second = await scene.server.came("tools/call", 2)
        assert first.body == second.body


async def test_an_unreachable_server_is_an_error_and_the_next_request_tries_again() -> None:
    async with remote(url="http://127.0.0.1:9/mcp") as scene:
        for number in (1, 2):
            scene.send(request(number, _meta=ENVELOPE))
            assert "127.0.0.1:9 cannot be reached" in await scene.error()
        scene.send({"jsonrpc": "2.0", "method": "notifications/other"})
        await scene.transport.end()
        assert "a notification was not delivered" in scene.shown_lines[0]


async def test_keepalive_probes_find_connections_that_died_silently() -> None:
    async with serving(StandIn()) as url:
        address = remote_address(url)
        exchange = Exchange(address, Credentials(address, None, oauth.renew), Advice("guard login"))
        async with exchange.opened("POST", {}, json.dumps(request(1)).encode()) as response:
            connection = response.extensions["network_stream"].get_extra_info("socket")
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 60
        await exchange.close()


async def test_a_request_whose_connection_breaks_is_not_repeated() -> None:
    taken: list[bytes] = []

    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(await reader.readuntil(b"}}"))
        writer.close()

    server = await asyncio.start_server(break_off, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, remote(url=f"http://127.0.0.1:{port}/mcp") as scene:
        scene.send(request(1, _meta={**ENVELOPE, "z": {}}))
        assert "broke" in await scene.error()
        assert len(taken) == 1


async def test_refused_headers_name_their_variables_and_not_their_values() -> None:
    async with remote(fixed={"x-key": "a-secret"}, variables=("MY_KEY",)) as scene:
        scene.server.answers["tools/call"] = always(lambda: Response(status_code=401))
        scene.send(request(1, _meta=ENVELOPE))
        said = await scene.error()
        assert "MY_KEY" in said
        assert "a-secret" not in said
        assert scene.server.first("tools/call").headers["x-key"] == "a-secret"


# Certificates


async def test_nothing_is_sent_to_a_server_with_an_untrusted_certificate(certificate: Path) -> None:
    stand_in = StandIn()
    async with serving(stand_in, Tls(str(certificate), str(certificate))) as url:
        async with remote(url=url) as scene:
            scene.send(request(1, _meta=ENVELOPE))
            said = await scene.error()
            assert "The certificate of 127.0.0.1" in said
            assert "nothing was sent" in said
        async with remote(url=url, tls=lambda: ssl.create_default_context(cafile=certificate)) as scene:
            scene.send(request(2, _meta=ENVELOPE))
            assert (await scene.next())["id"] == 2
    assert [one.message["id"] for one in stand_in.asked] == [2]


async def test_unreadable_certificates_of_this_machine_are_an_error() -> None:
    def fail() -> ssl.SSLContext:
        raise FileNotFoundError(2, "No such file")

    async with remote(tls=fail) as scene:
        scene.send(request(1, _meta=ENVELOPE))
        assert "certificates of this machine cannot be read (No such file)" in await scene.error()


# The end


async def test_ending_delivers_earlier_messages_first() -> None:
    async with remote() as scene:
        await scene.opened()
        scene.send({"jsonrpc": "2.0", "method": "notifications/last"})
        await scene.transport.end()
        assert scene.server.kinds()[-2:] == ["notifications/last", "DELETE"]
        assert await scene.transport.receive() is None


async def test_ending_does_not_wait_for_a_server_that_reads_nothing() -> None:
    async with remote() as scene:
        await scene.opened()
        scene.server.is_reading.clear()
        scene.send({"jsonrpc": "2.0", "method": "notifications/last"})
        await asyncio.wait_for(scene.transport.end(), WAIT_SECONDS)
        assert "did not accept the last messages in time" in scene.shown_lines[-1]
        scene.server.is_reading.set()
