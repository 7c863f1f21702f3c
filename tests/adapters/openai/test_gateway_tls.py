"""The connection to the API over TLS, with its certificate verified."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from openai_responses_mcp.domain.errors import GatewayUnreachable
from openai_responses_mcp.domain.models import ModelReply, ModelRequest
from tests.contracts.openai_gateways import forget_proxies, openai_gateway
from tests.fakes import SLOW_SECONDS
from tests.stand_in.server import StandIn


@asynccontextmanager
async def encrypted(base_url: str, certificate: Path) -> AsyncIterator[str]:
    """The address of a TLS proxy in front of this URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    behind = urlsplit(base_url)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(behind.hostname, behind.port)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    server = await asyncio.start_server(hand_on, "127.0.0.1", ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}{behind.path}"


@pytest.fixture
async def base_url(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    forget_proxies(monkeypatch)
    server = StandIn()
    async with encrypted(await server.start(), certificate) as address:
        yield address
        await server.close()


async def ask(base_url: str) -> ModelReply:
    gateway = openai_gateway(base_url)
    try:
        request = ModelRequest("gpt-5", "Be brief.", "[rehearse: text=Encrypted.]")
        return await asyncio.wait_for(gateway.respond(request), SLOW_SECONDS)
    finally:
        await gateway.close()


async def test_an_api_with_a_trusted_certificate_is_asked(
    base_url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert (await ask(base_url)).text == "Encrypted."


async def test_an_api_with_an_untrusted_certificate_is_unreachable(base_url: str) -> None:
    with pytest.raises(GatewayUnreachable, match=r"(?i)certificate.*verify"):
        await ask(base_url)


async def test_an_api_with_the_certificate_of_another_host_is_unreachable(
    base_url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with pytest.raises(GatewayUnreachable, match=r"(?i)certificate.*verify"):
        await ask(base_url.replace("127.0.0.1", "localhost"))
