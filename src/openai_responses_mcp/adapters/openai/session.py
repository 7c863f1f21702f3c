"""Requests to the API that are answered in one piece: one HTTP session, bounded in connections and in size.

Straight through aiohttp, which the SDK has below its own layers. With those, the gateway needs twice the CPU time for
a call (0.69 and 0.35 ms, side by side), and loading them takes several times as long as starting the server.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import aiohttp

from openai_responses_mcp.adapters.openai.route import ApiRoute

LONGEST_REPLY_BYTES = 32 * 1024 * 1024
# Longer than a person thinks between two questions; the pool notices connections that the other side has closed.
KEEP_ALIVE_SECONDS = 30.0


class BodyTooLong(ValueError):
    """The API sends more than any answer can be."""

    def __init__(self) -> None:
        super().__init__(f"more than {LONGEST_REPLY_BYTES} bytes")


class ApiReply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class ApiSession:
    """Redirects are not followed, nothing is asked twice, and the only deadline is the caller's."""

    def __init__(self, route: ApiRoute, *, max_connections: int) -> None:
        self._route = route
        self._max_connections = max_connections

    async def request(self, method: str, path: str, content: bytes | None = None) -> ApiReply:
        """Raises what aiohttp raises, `BodyTooLong`, or `GatewayRefused` where the route cannot be gone."""
        url, proxy = self._route.url_of(path), self._route.proxy
        response = await self._session.request(method, url, data=content, proxy=proxy, allow_redirects=False)
        with contextlib.closing(response):  # One that was read to its end has already given its connection back.
            return ApiReply(response.status, response.headers, await _read_bounded(response))

    async def close(self) -> None:
        if "_session" in self.__dict__:
            await self._session.close()

    def prepare(self) -> None:
        """Pay for the first request in advance, in a thread without an event loop: certificates and late imports."""
        for needed in ("headers", "proxy", "tls"):
            getattr(self._route, needed)
        asyncio.run(_ask_in_vain())

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=self._max_connections, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=self._route.tls or True
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=self._route.headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),
        )


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    """Counted as it is when unpacked: a few kilobytes may unfold into gigabytes."""
    chunks, count = [], 0
    while chunk := await response.content.readany():
        count += len(chunk)
        if count > LONGEST_REPLY_BYTES:
            raise BodyTooLong
        chunks.append(chunk)
    return b"".join(chunks)


@contextlib.contextmanager
def deaf_address() -> Iterator[str]:
    """The URL of a port that is taken, but where nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host, port = unused.getsockname()
        yield f"http://{host}:{port}"


async def _ask_in_vain() -> None:
    """Because much is imported only when a connection is made. A session of its own: this is not the server's loop."""
    with deaf_address() as address:
        async with aiohttp.ClientSession() as session:
            with contextlib.suppress(aiohttp.ClientError):
                await session.post(address, data=b"{}")
