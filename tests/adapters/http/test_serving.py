"""The HTTP server around an application: slow clients, certificates, and addresses that cannot be used."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from openai_responses_mcp.adapters.http.serving import AddressInUse, HttpServer, Tls, listening_socket
from tests.fakes import WAIT_SECONDS


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    text = f"{scope['client'][0]} {scope['scheme']}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})


@asynccontextmanager
async def served(make: Callable[[], HttpServer]) -> AsyncIterator[int]:
    """Yields the port."""
    listening, server = listening_socket("127.0.0.1", 0), make()
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    yield listening.getsockname()[1]
    server.should_exit = True
    await asyncio.wait_for(serving, WAIT_SECONDS)


async def test_a_client_that_sends_no_complete_head_is_disconnected_and_others_are_served() -> None:
    async with asyncio.timeout(WAIT_SECONDS), served(lambda: HttpServer(application, head_seconds=0.2)) as port:
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for _, writer in slow:
            writer.write(b"POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        async with httpx2.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"http://127.0.0.1:{port}/")).status_code == 200
        for reader, writer in slow:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(1)
            writer.close()


async def test_a_second_request_without_a_complete_head_is_disconnected_too() -> None:
    async with asyncio.timeout(WAIT_SECONDS), served(lambda: HttpServer(application, head_seconds=0.2)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"127.0.0.1 http")
        writer.write(b"GET / HTTP/1.1\r\nHo")
        rest = b""
        with suppress(ConnectionError):
            rest = await reader.read()
        assert b"200" not in rest
        writer.close()


@pytest.mark.parametrize(("trusted", "shown"), [((), "127.0.0.1 http"), (("127.0.0.1",), "10.9.8.7 https")])
async def test_forwarded_headers_count_only_from_a_trusted_proxy(trusted: tuple[str, ...], shown: str) -> None:
    headers = {"x-forwarded-for": "10.9.8.7", "x-forwarded-proto": "https"}
    server, http = served(lambda: HttpServer(application, trusted_proxies=trusted)), httpx2.AsyncClient(trust_env=False)
    async with server as port, http:
        assert (await http.get(f"http://127.0.0.1:{port}/", headers=headers)).text == shown


async def test_the_given_certificate_is_used_for_tls(certificate: Path) -> None:
    trusting = ssl.create_default_context(cafile=certificate)
    server = served(lambda: HttpServer(application, tls=Tls(str(certificate), str(certificate))))
    async with server as port, httpx2.AsyncClient(trust_env=False, verify=trusting) as http:
        assert (await http.get(f"https://127.0.0.1:{port}/")).text == "127.0.0.1 https"


def test_an_invalid_certificate_is_an_error_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    for path in (tmp_path / "none.pem", tmp_path / "missing.pem"):
        with pytest.raises(OSError):  # noqa: PT011 - ssl and the system have words of their own
            HttpServer(application, tls=Tls(str(path), str(path)))


def test_an_address_that_cannot_be_used_is_reported() -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        for host, port in (("127.0.0.1", taken.getsockname()[1]), ("no.such.host.invalid", 80)):
            with pytest.raises(AddressInUse, match="cannot be used"):
                listening_socket(host, port)
