"""The way to the API as it really is: encrypted, with a certificate that is checked."""

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from openai_responses_mcp.domain.errors import GatewayUnreachable
from openai_responses_mcp.domain.models import ModelReply, ModelRequest
from tests.contracts.openai_gateways import forget_proxies, openai_gateway
from tests.fakes import SLOW_SECONDS
from tests.stand_in.server import StandIn


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For loopback, signed by itself, made up for an hour; its key is in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "loopback.pem"
    encoding, no_password = serialization.Encoding.PEM, serialization.NoEncryption()
    path.write_bytes(
        made.public_bytes(encoding) + key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, no_password)
    )
    return path


@asynccontextmanager
async def encrypted(base_url: str, certificate: Path) -> AsyncIterator[str]:
    """The address of a server that decrypts and hands on to the given one."""
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


async def test_an_api_with_a_certificate_that_is_trusted_is_asked(
    base_url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert (await ask(base_url)).text == "Encrypted."


async def test_an_api_with_a_certificate_that_nobody_vouches_for_is_not(base_url: str) -> None:
    with pytest.raises(GatewayUnreachable, match=r"(?i)certificate.*verify"):
        await ask(base_url)


async def test_an_api_with_the_certificate_of_another_host_is_not(
    base_url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with pytest.raises(GatewayUnreachable, match=r"(?i)certificate.*verify"):
        await ask(base_url.replace("127.0.0.1", "localhost"))
