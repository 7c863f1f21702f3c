"""aiohttp as the HTTP transport below the SDK: one session, bounded in connections.

Nothing is followed, unpacked or asked twice here, and the only deadline is the caller's. What aiohttp raises goes
through as it is; `errors` knows what it means.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import cached_property, lru_cache
from typing import Any

import aiohttp
import httpx2
from aiohttp.connector import Connection
from yarl import URL

LONGEST_ERROR_BYTES = 64 * 1024
# Longer than a person thinks between two questions; the pool notices connections that the other side has closed.
KEEP_ALIVE_SECONDS = 30.0
_CHUNK_BYTES = 256 * 1024
# Each is unpacked at once, and a few kilobytes may unfold into megabytes.
_PACKED_CHUNK_BYTES = 16 * 1024


class DirectClient(httpx2.AsyncClient):
    """Hands a request to the transport as it is.

    Cookies, redirects, credentials and hooks of httpx2 are left out: none of them is used here, and looking for them takes
    a good part of a request.
    """

    def __init__(self, transport: "AiohttpTransport") -> None:
        super().__init__(transport=transport, timeout=None, trust_env=False)
        self._below = transport
        self._own_headers = [("Accept-Encoding", self.headers["Accept-Encoding"])]

    def build_request(
        self, method: str, url: httpx2.URL | str, *, headers: Any = None, timeout: object = None, **parts: Any
    ) -> httpx2.Request:
        return httpx2.Request(method, _url_of(url), headers=[*self._own_headers, *(headers or ())], **parts)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        return await self._below.handle_async_request(request)


# Nearly all requests go to one address, and taking it apart takes as long as building the rest.
_url_of = lru_cache(maxsize=8)(httpx2.URL)


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
        # Whatever it claims: some names of charsets lead to codecs that fail in their own ways.
        response.encoding = "utf-8"
        return response

    async def aclose(self) -> None:
        if "_session" in self.__dict__:
            await self._session.close()

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        """Made with the first request, because it belongs to the event loop that runs then."""
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
    """Gives no connection on which something came unasked: it would be read as the next answer."""

    async def connect(self, *arguments: Any, **options: Any) -> Connection:
        while True:
            connection = await super().connect(*arguments, **options)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()


class _Body(httpx2.AsyncByteStream):
    """If it was read to its end, its connection is free again. If not, the connection is closed."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = _PACKED_CHUNK_BYTES if "Content-Encoding" in self._answer.headers else _CHUNK_BYTES
        while chunk := await self._answer.content.read(size):
            yield chunk

    async def aclose(self) -> None:
        self._answer.close()


async def _shortened(response: httpx2.Response) -> httpx2.Response:
    """The reply with only the beginning of its body, unpacked. More of an error is not looked at."""
    body = b""
    async with aclosing(response), aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            body += chunk[: LONGEST_ERROR_BYTES - len(body)]
            if len(body) >= LONGEST_ERROR_BYTES:
                break
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _ABOUT_THE_BODY]
    return httpx2.Response(response.status_code, headers=headers, content=body, request=response.request)


_ABOUT_THE_BODY = (b"content-encoding", b"content-length", b"transfer-encoding")
