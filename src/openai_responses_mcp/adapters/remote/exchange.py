"""One HTTP exchange with a remote MCP server: credentials, redirects, and errors that say what to do.

A request that may have been carried out is not sent twice. It is repeated only after a refusal for missing credentials
(401) and after a redirect within the same origin. A connection that breaks later is reported.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, NamedTuple

import httpx2

from openai_responses_mcp.adapters.remote.credentials import Credentials
from openai_responses_mcp.adapters.remote.wire import RemoteAddress, RemoteFault

_CONNECT_SECONDS = 20.0
_WRITE_SECONDS = 60.0
_MOST_CONNECTIONS = 1000
_MOST_REDIRECTS = 3
_LONGEST_ERROR_BYTES = 64 * 1024
_SECONDS_FOR_ERROR = 5.0
_LONGEST_DETAIL = 200

# A call may be silent for hours. These probes end it about a minute after the other machine or the network is gone.
# Looked up by name, because not every system has all of them.
_KEEPALIVE_OPTIONS = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPALIVE": 30,  # the same, on macOS
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 60_000,  # milliseconds, for a request that was sent and never acknowledged
}


class Advice(NamedTuple):
    """What a user can do if the server refuses: log in, or check the variables of `--header-env`."""

    login_command: str
    variables: tuple[str, ...] = ()

    @property
    def for_refused(self) -> str:
        if self.variables:
            return f"check the value of {', '.join(self.variables)}, named with --header-env"
        return f"log in with: {self.login_command}"


class Exchange:
    """Create and use it inside one event loop."""

    def __init__(
        self,
        address: RemoteAddress,
        credentials: Credentials,
        advice: Advice,
        tls: Callable[[], ssl.SSLContext] = httpx2.create_ssl_context,
    ) -> None:
        self.address = address
        self._credentials = credentials
        self._advice = advice
        self._tls = tls

    @asynccontextmanager
    async def opened(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        on_sent: Callable[[], object] = lambda: None,
        silent_seconds: float | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """The response, with its body still to be read. Raises `RemoteFault`, also if reading it fails.

        A call has no time limit, but with `silent_seconds` the server must not be silent for longer.
        """
        sent, timeouts = asyncio.Event(), httpx2.Timeout(_CONNECT_SECONDS, read=silent_seconds, write=_WRITE_SECONDS)

        async def trace(name: str, facts: Mapping[str, Any]) -> None:
            if name.endswith("connect_tcp.complete"):
                _set_keepalive(facts["return_value"].get_extra_info("socket"))
            elif name.endswith("send_request_body.complete"):
                sent.set()
                on_sent()

        try:
            self._client  # noqa: B018 -- created here to report certificates that cannot be read
        except OSError as exc:
            raise RemoteFault(f"The certificates of this machine cannot be read ({exc.strerror or exc})") from exc
        try:
            given = await self._credentials.headers()
            response = await self._send(method, {**headers, **given}, body, timeouts, trace)
            if response.status_code == 401 and (better := await self._credentials.renewed(given)):
                await response.aclose()
                response = await self._send(method, {**headers, **better}, body, timeouts, trace)
            try:
                yield response
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as exc:
            raise RemoteFault(self._text_for(exc, was_sent=sent.is_set())) from exc

    async def _send(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        timeouts: httpx2.Timeout,
        trace: Callable[[str, Mapping[str, Any]], Awaitable[None]],
    ) -> httpx2.Response:
        request = self._client.build_request(
            method,
            self.address.url,
            headers=headers,
            content=body or None,
            timeout=timeouts,
            extensions={"trace": trace},
        )
        for _ in range(_MOST_REDIRECTS + 1):
            response = await self._client.send(request, stream=True, follow_redirects=False)
            next_request = response.next_request
            if next_request is None:
                return response
            await response.aclose()
            if not _is_same_origin(request.url, next_request.url):
                raise RemoteFault(
                    f"{self.address.host} redirects to {next_request.url.host}, which is refused;"
                    " if that is the server, give its URL with --url",
                    response.status_code,
                )
            if next_request.method != method:
                raise RemoteFault(
                    f"{self.address.host} redirects in a way that would drop the message"
                    f" ({response.status_code}); give the URL that it redirects to with --url",
                    response.status_code,
                )
            next_request.extensions = request.extensions  # the trace and the timeouts
            request = next_request
        raise RemoteFault(f"{self.address.host} redirects in a circle; check the URL")

    async def close(self) -> None:
        if "_client" in self.__dict__:
            await self._client.aclose()

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            verify=self._tls(),
            limits=httpx2.Limits(max_connections=_MOST_CONNECTIONS, max_keepalive_connections=20),
            # Loopback needs no proxy.
            trust_env=not self.address.is_loopback,
            headers={"accept-encoding": "identity", "user-agent": "openai-responses-mcp-guard"},
        )

    # -----------------------------------------------------------------------------------------------------------------
    # Errors

    def _text_for(self, exc: Exception, *, was_sent: bool) -> str:
        host, detail = self.address.host, f" ({str(exc)[:_LONGEST_DETAIL] or type(exc).__name__})"
        if was_sent:
            return f"The connection to {host} broke{detail}; it is not known whether the request was carried out"
        if _is_about_certificate(exc):
            return f"The certificate of {host} cannot be trusted{detail}; nothing was sent"
        return f"{host} cannot be reached{detail}; check the URL and the network, then call again"

    def refusal(self, response: httpx2.Response) -> RemoteFault:
        """Why the server refused, and what the user can do."""
        host, status = self.address.host, response.status_code
        wait = response.headers.get("retry-after", "")
        when = f"in {wait} seconds" if wait.isdigit() and len(wait) < 7 else "later"
        texts = {
            401: f"{host} asks for credentials (401): {self._advice.for_refused}",
            403: f"{host} refuses this request (403): {self._advice.for_refused}",
            404: f"There is no MCP server at this address of {host} (404): check the URL",
            405: f"This address of {host} does not accept POST (405): check the URL. Servers of the older transport,"
            " HTTP with SSE, cannot be guarded by their URL",
            429: f"{host} has too many requests (429); call again {when}",
        }
        usual = f"{host} refused the request with status {status}"
        if status >= 500:
            usual = f"{host} is in trouble ({status}); call again {when}"
        return RemoteFault(texts.get(status, usual), status)

    def wrong_type(self, response: httpx2.Response) -> RemoteFault:
        kind = media_type(response) or "an unnamed type"
        return RemoteFault(
            f"{self.address.host} answered with {kind[:60]}, not with JSON or an event stream: check that the URL is"
            " that of an MCP server",
            response.status_code,
        )


async def error_body_of(response: httpx2.Response) -> bytes:
    """The body of an error; empty if it is too long or does not end in time."""
    body = b""
    try:
        async with asyncio.timeout(_SECONDS_FOR_ERROR):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LONGEST_ERROR_BYTES:
                    return b""
    except TimeoutError:
        return b""
    return body


def media_type(response: httpx2.Response) -> str:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def _set_keepalive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE_OPTIONS.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _is_same_origin(first: httpx2.URL, second: httpx2.URL) -> bool:
    return (first.scheme, first.host, first.port) == (second.scheme, second.host, second.port) and not second.userinfo


def _is_about_certificate(exc: BaseException | None) -> bool:
    while exc is not None:
        if isinstance(exc, ssl.SSLCertVerificationError):
            return True
        exc = exc.__cause__ or exc.__context__
    return False
