"""Every fault of the API or the network becomes one clear error, in bounded time and memory."""

import asyncio
import contextlib
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.adapters.openai.client import LONGEST_ERROR_BYTES
from openai_responses_mcp.adapters.openai.replies import LONGEST_REPLY_BYTES
from openai_responses_mcp.domain.errors import (
    GatewayBroken,
    GatewayError,
    GatewayGarbled,
    GatewayOverloaded,
    GatewayRefused,
    GatewayUnreachable,
)
from openai_responses_mcp.domain.models import ModelReply, ModelRequest
from tests.contracts.openai_gateways import forget_proxies, openai_gateway
from tests.fakes import SLOW_SECONDS
from tests.stand_in.server import StandIn


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


async def ask(base_url: str, question: str = "Hello", *, streams: bool = True, **fields: Any) -> ModelReply:
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


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("not-json", "(not JSON at character 1)"),
        ("bad-utf8", "(not UTF-8 at byte "),
    ],
)
async def test_an_unreadable_reply_is_described_without_python_terms(base_url: str, body: str, says: str) -> None:
    assert says in str(await failure(base_url, f"[rehearse: body={body}]", streams=False))


@asynccontextmanager
async def answering(*chunks: bytes, times: int = 1, status: int = 200) -> AsyncIterator[str]:
    """An API that replies with these bytes, repeated."""

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
async def test_a_reply_of_a_hundred_megabytes_is_never_held_in_memory(
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


async def test_an_error_or_malformed_event_in_a_stream_is_a_gateway_error() -> None:
    cases: list[tuple[bytes, type[GatewayError], str | None]] = [
        (b'{"type":"error","message":"It broke","code":"oops"}', GatewayBroken, "oops"),
        (b'{"type":"response.completed","response":[]}', GatewayGarbled, None),
        (b'{"type":["odd"],"item":7}', GatewayBroken, None),
    ]
    for event, kind, code in cases:
        async with answering(b"data: " + event + b"\n\n") as base_url:
            error = await failure(base_url)
        assert type(error) is kind
        assert error.code == code


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_an_unreadable_certificate_file_is_a_refusal_that_names_ssl_cert_file(
    base_url: str, content: str | None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path_factory.mktemp("certificates") / "all.pem"
    if content:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    error = await failure(base_url.replace("http:", "https:"))
    assert type(error) is GatewayRefused
    assert "Check SSL_CERT_FILE" in str(error)
    assert (await ask(base_url)).text, "without TLS no certificates are read"


@pytest.mark.parametrize(
    "proxy",
    ["socks5://127.0.0.1:1", "http://127.0.0.1:port", "http://["],
)
async def test_an_unusable_proxy_is_a_refusal_that_names_the_proxy_variables(
    base_url: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    error = await failure(base_url)
    assert type(error) is GatewayRefused
    assert "proxy variables" in str(error)


async def test_requests_go_through_the_proxy_from_the_environment(
    server: StandIn, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", base_url.removesuffix("/v1"))
    assert (await ask("http://api.invalid/v1")).text
    assert server.requests[0].target == "http://api.invalid/v1/responses"


async def test_an_unreachable_proxy_is_an_unreachable_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert type(await failure("http://api.invalid/v1")) is GatewayUnreachable
