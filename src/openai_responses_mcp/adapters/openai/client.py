"""The SDK's client, set up from configuration and environment (address, headers, proxy, certificates), over aiohttp.

No retries, no redirects, and no deadline but the caller's. A wrong setup raises `GatewayRefused`. Exceptions of aiohttp
pass through; `errors` translates them.
"""

import base64
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from functools import cached_property
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from aiohttp.connector import Connection
from openai import AsyncOpenAI, Omit, RequestOptions
from yarl import URL

from openai_responses_mcp import __version__
from openai_responses_mcp.adapters.openai.errors import words_of
from openai_responses_mcp.domain.errors import GatewayRefused
from openai_responses_mcp.domain.texts import Sentence

# Headers in which the SDK would describe this machine. The API does not need them.
NO_SDK_HEADERS: RequestOptions = {
    "headers": {
        "X-Stainless-Arch": Omit(),
        "X-Stainless-Async": Omit(),
        "X-Stainless-Lang": Omit(),
        "X-Stainless-OS": Omit(),
        "X-Stainless-Package-Version": Omit(),
        "X-Stainless-Runtime": Omit(),
        "X-Stainless-Runtime-Version": Omit(),
        "x-stainless-read-timeout": Omit(),
        "x-stainless-retry-count": Omit(),
    }
}

_USABLE_PROXIES = ("http", "https")


def openai_client(*, base_url: str, api_key: str, max_connections: int) -> AsyncOpenAI:
    try:
        address = URL(base_url)
    except ValueError as exc:
        says = "The request could not be sent ({why}). Check openai.base_url."
        raise GatewayRefused(Sentence(says, why=exc)) from exc
    proxy = proxy_for(address)
    transport = AiohttpTransport(max_connections=max_connections, proxy=proxy, tls=tls_for(address, proxy))
    client = AsyncOpenAI(
        api_key=api_key.strip(),
        base_url=str(address.with_user(None)),
        max_retries=0,
        timeout=None,
        http_client=DirectClient(transport),
        default_headers=_headers(address),
    )
    # From OPENAI_ORG_ID and OPENAI_PROJECT_ID. Empty counts as unset, where the SDK would send an empty header.
    client.organization = client.organization or None
    client.project = client.project or None
    _refuse_unusable(client.default_headers)
    return client


async def load_late_imports(client: AsyncOpenAI) -> None:
    """Send a request that gets no answer: the SDK does many imports only with its first request."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = "http://{}:{}".format(*unused.getsockname())
        transport = AiohttpTransport(max_connections=1, proxy=None, tls=None)
        async with DirectClient(transport) as http:
            with suppress(aiohttp.ClientConnectionError):
                await client.with_options(api_key="none", base_url=address, http_client=http).post(
                    "/responses", cast_to=httpx2.Response, body={}, stream=True, options=NO_SDK_HEADERS
                )


def _headers(address: URL) -> dict[str, str]:
    headers = {"User-Agent": f"openai-responses-mcp/{__version__}"}
    if address.user is not None:
        # A user and a password in the address of a gateway are sent instead of the key.
        credentials = f"{address.user}:{address.password or ''}"
        headers["Authorization"] = f"Basic {base64.b64encode(credentials.encode()).decode()}"
    return headers


def _refuse_unusable(headers: Mapping[str, object]) -> None:
    for name, value in headers.items():
        if isinstance(value, str) and not (value.isascii() and value.isprintable()):
            raise GatewayRefused(
                Sentence(
                    "The request could not be sent (the header {name} contains characters that are not allowed)."
                    " Check the environment, in particular OPENAI_ORG_ID and OPENAI_PROJECT_ID.",
                    name=name,
                )
            )


def proxy_for(address: URL) -> str | None:
    with _setup_errors_translated():
        proxies = getproxies()
        proxy = proxies.get(address.scheme) or proxies.get("all")
        if not proxy or proxy_bypass(address.host or ""):
            return None
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        kind = URL(proxy).scheme
        if kind not in _USABLE_PROXIES:
            raise ValueError(f"the proxy for {address.scheme} is a {kind} proxy; only HTTP proxies can be used")
        return proxy


def tls_for(address: URL, proxy: str | None) -> ssl.SSLContext | None:
    """None if neither connection is encrypted, because loading certificates is slow."""
    if "https" not in (address.scheme, URL(proxy or "").scheme):
        return None
    with _setup_errors_translated():
        return httpx2.create_ssl_context()


@contextmanager
def _setup_errors_translated() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as exc:
        raise GatewayRefused(
            Sentence(
                "No connection to the API can be set up ({why})."
                " Check SSL_CERT_FILE, SSL_CERT_DIR and the proxy variables.",
                why=words_of(exc),
            )
        ) from exc


LONGEST_ERROR_BYTES = 64 * 1024
# Long enough to type the next question. The pool notices connections that the other side has closed.
KEEP_ALIVE_SECONDS = 30.0
_CHUNK_BYTES = 256 * 1024
# Each chunk is decompressed as a whole, and a few kilobytes may become megabytes.
_COMPRESSED_CHUNK_BYTES = 16 * 1024


class DirectClient(httpx2.AsyncClient):
    """Hands requests straight to the transport, without the cookies, redirects, credentials and hooks of httpx2."""

    def __init__(self, transport: "AiohttpTransport") -> None:
        super().__init__(transport=transport, timeout=None, trust_env=False)
        self._own_transport = transport
        self._own_headers = [("Accept-Encoding", self.headers["Accept-Encoding"])]

    def build_request(
        self, method: str, url: httpx2.URL | str, *, headers: Any = None, timeout: object = None, **parts: Any
    ) -> httpx2.Request:
        return httpx2.Request(method, url, headers=[*self._own_headers, *(headers or ())], **parts)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        return await self._own_transport.handle_async_request(request)


class AiohttpTransport(httpx2.AsyncBaseTransport):
    def __init__(self, *, max_connections: int, proxy: str | None, tls: ssl.SSLContext | None) -> None:
        self._max_connections = max_connections
        self._proxy = proxy
        self._tls = tls

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._session.request(
            request.method,
            URL(str(request.url), encoded=True),
            headers=request.headers,
            data=request.content or None,
            proxy=self._proxy,
            allow_redirects=False,
        )
        response = httpx2.Response(answer.status, headers=answer.raw_headers, stream=_Body(answer), request=request)
        if not response.is_success:
            response = await _shortened(response)
        # Ignore the charset in the reply: some names select codecs that fail in unexpected ways.
        response.encoding = "utf-8"
        return response

    async def aclose(self) -> None:
        if "_session" in self.__dict__:
            await self._session.close()

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        """Made with the first request, because it belongs to the running event loop."""
        connector = _CleanConnector(
            limit=self._max_connections, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=self._tls or True
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),
            auto_decompress=False,
        )


class _CleanConnector(aiohttp.TCPConnector):
    """Never reuses a connection on which unexpected bytes arrived: they would be read as the next reply."""

    async def connect(self, *arguments: Any, **options: Any) -> Connection:
        while True:
            connection = await super().connect(*arguments, **options)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()


class _Body(httpx2.AsyncByteStream):
    """A body that is read to its end frees the connection for reuse. Closing it earlier closes the connection."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = _COMPRESSED_CHUNK_BYTES if "Content-Encoding" in self._answer.headers else _CHUNK_BYTES
        while chunk := await self._answer.content.read(size):
            yield chunk

    async def aclose(self) -> None:
        self._answer.close()


async def _shortened(response: httpx2.Response) -> httpx2.Response:
    """The reply with only the beginning of its body, decompressed. An error needs no more."""
    body = b""
    async with aclosing(response), aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            body += chunk[: LONGEST_ERROR_BYTES - len(body)]
            if len(body) >= LONGEST_ERROR_BYTES:
                break
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _BODY_HEADERS]
    return httpx2.Response(response.status_code, headers=headers, content=body, request=response.request)


_BODY_HEADERS = (b"content-encoding", b"content-length", b"transfer-encoding")
