"""Everything that can go wrong at and on the way to the API is one clear error, in bounded time and memory."""

import asyncio
import contextlib
import socket
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from openai_responses_mcp.adapters.openai.replies import LONGEST_REPLY_BYTES
from openai_responses_mcp.adapters.openai.transport import LONGEST_ERROR_BYTES
from openai_responses_mcp.domain.errors import (
    AnswerWithheld,
    GatewayBroken,
    GatewayError,
    GatewayGarbled,
    GatewayOverloaded,
    GatewayRefused,
    GatewayUnreachable,
    PreviousResponseLost,
)
from openai_responses_mcp.domain.models import ModelReply, ModelRequest
from tests.contracts.openai_gateways import forget_proxies, openai_gateway
from tests.fakes import SLOW_SECONDS
from tests.stand_in.server import StandIn

in_one_piece_and_streamed = pytest.mark.parametrize("streams", [False, True], ids=["in one piece", "streamed"])


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_proxies(monkeypatch)


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    server = StandIn(keep_requests=10)
    yield server
    await server.close()


@pytest.fixture
async def base_url(server: StandIn) -> str:
    return await server.start()


async def ask(
    base_url: str,
    question: str = "Hello",
    *,
    streams: bool = False,
    **fields: Any,
) -> ModelReply:
    request = replace(ModelRequest("gpt-5", "Be brief.", question), **fields)
    gateway = openai_gateway(base_url, streams=streams)
    try:
        return await asyncio.wait_for(gateway.respond(request), SLOW_SECONDS)
    finally:
        await gateway.close()


async def failure(base_url: str, question: str = "Hello", **options: Any) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await ask(base_url, question, **options)
    assert type(caught.value).__module__ == "openai_responses_mcp.domain.errors"
    assert len(str(caught.value)) > 20
    return caught.value


RETRY_AFTERS: dict[str, Callable[[float | None], bool]] = {
    "": lambda seconds: seconds is None,
    "retry_after=0": lambda seconds: seconds == 0,
    "retry_after=0.1": lambda seconds: seconds == 0.1,
    "retry_after=86400": lambda seconds: seconds == 86400,
    "retry_after=-1": lambda seconds: seconds is None,
    "retry_after=junk": lambda seconds: seconds is None,
    "retry_after=Fri, 31 Dec 1999 23:59:59 GMT": lambda seconds: seconds == 0,
    "retry_after=Thu, 31 Dec 2099 23:59:59 GMT": lambda seconds: seconds is not None and seconds > 10**9,
    "header=retry-after-ms: 1500": lambda seconds: seconds == 1.5,
}


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
@in_one_piece_and_streamed
async def test_an_api_in_trouble_is_asked_once_and_its_wish_to_wait_is_passed_on(
    server: StandIn, base_url: str, status: int, streams: bool
) -> None:
    gateway = openai_gateway(base_url, streams=streams)
    for retry_after, fits in RETRY_AFTERS.items():
        request = ModelRequest("gpt-5", "Be brief.", f"[rehearse: status={status}; {retry_after}]")
        with pytest.raises(GatewayOverloaded) as caught:
            await asyncio.wait_for(gateway.respond(request), SLOW_SECONDS)
        assert caught.value.status == status
        assert fits(caught.value.retry_after_seconds), retry_after
    assert server.received == len(RETRY_AFTERS)
    await gateway.close()


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("status=400", "check the model and its settings"),
        ("status=401", "check that it is valid"),
        ("status=403", "check the project's permissions"),
        ("status=404; code=model_not_found", "check model_profiles"),
        ("status=413", "shorten it"),
        ("status=429; code=insufficient_quota", "check its plan and billing"),
        ("status=418", "HTTP 418"),
    ],
)
@in_one_piece_and_streamed
async def test_a_refusal_says_what_to_do(server: StandIn, base_url: str, keys: str, says: str, streams: bool) -> None:
    error = await failure(base_url, f"[rehearse: {keys}]", streams=streams)
    assert type(error) is GatewayRefused
    assert says in str(error)
    assert not error.is_worth_repeating
    assert server.received == 1


@in_one_piece_and_streamed
async def test_an_effort_or_a_model_that_is_not_taken_says_so(base_url: str, streams: bool) -> None:
    error = await failure(base_url, streams=streams, reasoning_effort="minimal")
    assert "cannot be used with reasoning.effort 'minimal'" in str(error)
    error = await failure(base_url, streams=streams, model="no-such-model")
    assert "'no-such-model' does not exist" in str(error)


@pytest.mark.parametrize(
    ("response_id", "says"), [("resp_unknown", "is not known to the API"), ("resp_expired_1", "has expired")]
)
@in_one_piece_and_streamed
async def test_a_lost_conversation_says_how_it_was_lost(
    base_url: str, response_id: str, says: str, streams: bool
) -> None:
    error = await failure(base_url, streams=streams, previous_response_id=response_id)
    assert type(error) is PreviousResponseLost
    assert says in str(error)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("truncated", GatewayBroken), ("huge", GatewayGarbled), ("empty", GatewayGarbled), ("null", GatewayGarbled),
        ("list", GatewayGarbled), ("string", GatewayGarbled), ("html", GatewayGarbled), ("bad-utf8", GatewayGarbled),
        ("not-json", GatewayGarbled), ("wrong-shape", GatewayGarbled), ("wrong-output", GatewayGarbled),
        ("wrong-item", GatewayGarbled), ("wrong-content", GatewayGarbled), ("wrong-text", GatewayGarbled),
        ("wrong-status", GatewayGarbled),
    ],
)  # fmt: skip
async def test_a_body_that_is_no_answer_is_one_clear_error(base_url: str, body: str, kind: type[GatewayError]) -> None:
    assert type(await failure(base_url, f"latest [rehearse: body={body}]")) is kind


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("empty", "(not JSON at character 0)"),
        ("html", "(not JSON at character 0)"),
        ("not-json", "(not JSON at character 1)"),
        ("bad-utf8", "(not UTF-8 at byte "),
    ],
)
async def test_a_reply_that_cannot_be_read_says_so_without_the_words_of_python(
    base_url: str, body: str, says: str
) -> None:
    assert says in str(await failure(base_url, f"[rehearse: body={body}]", streams=False))


@pytest.mark.parametrize("field", ["annotations", "usage", "id", "model", "sources"])
async def test_what_an_answer_can_do_without_may_be_wrong(base_url: str, field: str) -> None:
    assert (await ask(base_url, f"latest [rehearse: body=wrong-{field}]")).text


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        ("cut", GatewayBroken), ("cut-in-event", GatewayBroken), ("error-event", GatewayBroken),
        ("done-without-completed", GatewayBroken), ("empty", GatewayBroken), ("bad-json", GatewayGarbled),
        ("bad-utf8", GatewayGarbled), ("non-object", GatewayGarbled),
    ],
)  # fmt: skip
async def test_a_stream_without_a_whole_answer_is_one_clear_error(
    base_url: str, stream: str, kind: type[GatewayError]
) -> None:
    assert type(await failure(base_url, f"[rehearse: stream={stream}]", streams=True)) is kind


@pytest.mark.parametrize("stream", ["twice", "garbage-event"])
async def test_a_stream_with_too_much_in_it_gives_the_answer_once(base_url: str, stream: str) -> None:
    reply = await ask(base_url, f"[rehearse: stream={stream}; text=Once.]", streams=True)
    assert reply.text == "Once."


@pytest.mark.parametrize("drop", ["before", "mid", "reset"])
@in_one_piece_and_streamed
async def test_a_connection_that_breaks_is_not_worth_repeating(base_url: str, drop: str, streams: bool) -> None:
    error = await failure(base_url, f"[rehearse: drop={drop}]", streams=streams)
    assert type(error) is GatewayBroken
    assert not error.is_worth_repeating


@in_one_piece_and_streamed
async def test_replies_that_ended_otherwise_are_read(base_url: str, streams: bool) -> None:
    reply = await ask(base_url, "[rehearse: outcome=refusal]", streams=streams)
    assert reply.refusal is not None
    reply = await ask(base_url, "[rehearse: outcome=incomplete]", streams=streams)
    assert reply.incomplete_reason == "max_output_tokens"
    reply = await ask(base_url, "[rehearse: outcome=commentary; text=Final.]", streams=streams)
    assert reply.text == "Final."
    error = await failure(base_url, "[rehearse: outcome=failed; message=It broke.]", streams=streams)
    assert type(error) is AnswerWithheld
    assert "It broke." in str(error)


@in_one_piece_and_streamed
async def test_a_redirect_is_not_followed(server: StandIn, base_url: str, streams: bool) -> None:
    elsewhere = StandIn()
    place = await elsewhere.start()
    error = await failure(base_url, f"[rehearse: redirect={place}/responses]", streams=streams)
    assert type(error) is GatewayRefused
    assert (error.status, server.received, elsewhere.received) == (307, 1, 0)
    await elsewhere.close()


@asynccontextmanager
async def answering(*chunks: bytes, times: int = 1, status: int = 200) -> AsyncIterator[str]:
    """An API that answers with these bytes, over and over again."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} As It Is\r\nConnection: close\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            for chunk in chunks * times:
                writer.write(chunk)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1")
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.mark.parametrize(
    ("status", "start", "kind", "most_held"),
    [
        (200, b"data: ", GatewayGarbled, 3 * LONGEST_REPLY_BYTES),
        (200, b'{"a": "', GatewayGarbled, 3 * LONGEST_REPLY_BYTES),
        (500, b'{"a": "', GatewayOverloaded, 100 * LONGEST_ERROR_BYTES),
    ],
)
async def test_a_hundred_megabytes_are_never_held(
    status: int, start: bytes, kind: type[GatewayError], most_held: int
) -> None:
    async with answering(start + b"x" * 1_000_000, times=100, status=status) as base_url:
        tracemalloc.start()
        error = await failure(base_url)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert type(error) is kind
    assert most < most_held
    assert status == 500 or "more than 2 MiB in one" in str(error)


@pytest.mark.parametrize(
    ("event", "kind", "code"),
    [
        (b'{"type":"error","message":"It broke","code":"oops"}', GatewayBroken, "oops"),
        (b'{"type":"error","error":{"message":"It broke","code":"oops"}}', GatewayBroken, "oops"),
        (b'{"error":{"message":"It broke"}}', GatewayBroken, None),
        (b'{"type":"error"}', GatewayBroken, None),
        (b'{"type":"response.completed"}', GatewayGarbled, None),
        (b'{"type":"response.completed","response":[]}', GatewayGarbled, None),
        (b'{"type":["odd"],"item":7}', GatewayBroken, None),
        (b"7", GatewayGarbled, None),
        (b"[" * 100_000, GatewayGarbled, None),
    ],
    ids=lambda value: repr(value)[:50],
)
async def test_any_event_of_a_stream_is_survived(event: bytes, kind: type[GatewayError], code: str | None) -> None:
    async with answering(b"data: " + event + b"\n\n") as base_url:
        error = await failure(base_url, streams=True)
    assert type(error) is kind
    assert error.code == code


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"output":' + b"9" * 5000 + b"}", b"\xef\xbb\xbf{}"])
async def test_any_json_is_survived(body: bytes) -> None:
    async with answering(body) as base_url:
        assert type(await failure(base_url)) is GatewayGarbled


@in_one_piece_and_streamed
async def test_a_name_that_is_not_found_is_worth_repeating(streams: bool) -> None:
    error = await failure("http://api.invalid/v1", streams=streams)
    assert type(error) is GatewayUnreachable
    assert "api.invalid" in str(error)
    assert error.is_worth_repeating


async def test_a_port_nobody_listens_on_is_worth_repeating() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = await failure(f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
    assert type(error) is GatewayUnreachable


async def test_tls_to_a_port_without_it_says_so(base_url: str) -> None:
    error = await failure(base_url.replace("http:", "https:"))
    assert type(error) is GatewayUnreachable
    assert "SSL" in str(error)


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_certificates_that_cannot_be_read_are_named(
    base_url: str, content: str | None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path_factory.mktemp("certificates") / "all.pem"
    if content:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    error = await failure(base_url.replace("http:", "https:"))
    assert type(error) is GatewayRefused
    assert "Check SSL_CERT_FILE" in str(error)
    assert (await ask(base_url)).text, "where nothing is encrypted nobody looks for certificates"


@pytest.mark.parametrize(
    "proxy",
    ["socks5://127.0.0.1:1", "odd://127.0.0.1:1", "http://127.0.0.1:port", "http://127.0.0.1:99999", "http://["],
)
@in_one_piece_and_streamed
async def test_a_proxy_that_cannot_be_used_is_named(
    base_url: str, proxy: str, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    error = await failure(base_url, streams=streams)
    assert type(error) is GatewayRefused
    assert "proxy variables" in str(error)


@in_one_piece_and_streamed
async def test_a_proxy_from_the_environment_is_asked(
    server: StandIn, base_url: str, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", base_url.removesuffix("/v1"))
    assert (await ask("http://api.invalid/v1", streams=streams)).text
    assert server.requests[0].target == "http://api.invalid/v1/responses"


async def test_a_host_that_needs_no_proxy_is_asked_directly(
    server: StandIn, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert (await ask(base_url)).text
    assert server.requests[0].target == "/v1/responses"


async def test_a_proxy_that_is_not_there_is_worth_repeating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert type(await failure("http://api.invalid/v1")) is GatewayUnreachable


async def test_a_date_in_retry_after_is_counted_from_now(base_url: str) -> None:
    error = await failure(base_url, "[rehearse: status=429; retry_after=Thu, 31 Dec 2099 23:59:59 GMT]")
    expected = (datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC) - datetime.now(UTC)).total_seconds()
    assert error.retry_after_seconds == pytest.approx(expected, abs=SLOW_SECONDS)
