"""One attempt at the Responses API: asked through the SDK's client, bounded in time, in size and in number at once.

The SDK says who we are and decodes streams; retries and redirects are off. A plain question goes straight through the
HTTP client below it, and the reply is read as plain JSON: building requests its way takes as long as sending them,
and its models let wrong shapes through.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from functools import cached_property
from typing import Any
from urllib.parse import quote
from urllib.request import getproxies

import httpx2
from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient, OpenAIError

from openai_responses_mcp.adapters.openai_errors import BodyTooLong, status_error, vendor_errors_translated
from openai_responses_mcp.adapters.openai_wire import progress_of, read_reply, request_body
from openai_responses_mcp.domain.errors import (
    GatewayBroken,
    GatewayError,
    GatewayRefused,
    GatewayTimeout,
    KeyUnusable,
)
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, ProgressListener
from openai_responses_mcp.domain.ports import Clock, LLMGateway

LONGEST_REPLY_BYTES = 32 * 1024 * 1024
# Longer than a person thinks between two questions; the pool notices connections that the other side has closed.
KEEP_ALIVE_SECONDS = 30.0

_FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed")


class OpenAIResponsesGateway(LLMGateway):
    def __init__(
        self,
        *,
        api_key: str,
        api_key_variable: str,
        base_url: str,
        timeout_seconds: float,
        max_concurrency: int,
        omit: Iterable[str],
        clock: Clock,
        mask: Callable[[str], str] = str,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._api_key = api_key.strip()
        self._api_key_variable = api_key_variable
        self._base_url = base_url
        self._timeout_seconds = timeout_seconds
        self._max_concurrency = max_concurrency
        self._places = asyncio.Semaphore(max_concurrency)
        self._omit = tuple(omit)
        self._clock = clock
        self._mask = mask
        self._transport = transport

    async def respond(self, request: ModelRequest, on_progress: ProgressListener | None = None) -> ModelReply:
        self._refuse_unusable_key()
        body = request_body(request, self._omit)
        async with self._places:
            deadline = asyncio.timeout(self._timeout_seconds)
            try:
                async with deadline:
                    with vendor_errors_translated(self._clock.now, self._mask):
                        headers = self._headers
                        asking = self._stream(body, on_progress) if on_progress else self._ask(body, headers)
                        response = await asking
            except TimeoutError as exc:
                raise self._timeout() from exc
        return read_reply(response)

    async def check_model(self, model: str) -> None:
        """Ask the API whether it knows the model, for whoever looks for the cause of trouble. Raises as `respond`."""
        self._refuse_unusable_key()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                with vendor_errors_translated(self._clock.now, self._mask):
                    await self._sdk.get(f"/models/{quote(model, safe='')}", cast_to=httpx2.Response)
        except TimeoutError as exc:
            raise self._timeout() from exc

    def prepare(self) -> None:
        """Pay for the first call in advance, in a thread without an event loop: certificates and late imports.

        What goes wrong here goes wrong again, and is told, with the first call.
        """
        with contextlib.suppress(OSError, ValueError, OpenAIError, GatewayError, httpx2.InvalidURL):
            self._headers  # noqa: B018 -- made, with the clients, when first looked at
            asyncio.run(self._knock_in_vain())

    async def _knock_in_vain(self) -> None:
        """One attempt at a port nobody listens on, because much is imported only when a connection is made."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            host, port = unused.getsockname()
            # A client of its own: the shared one will belong to another event loop.
            async with DefaultAioHttpClient(trust_env=False) as client:
                with contextlib.suppress(httpx2.HTTPError):
                    await client.post(f"http://{host}:{port}", content=b"{}")

    async def close(self) -> None:
        if "_http" in self.__dict__:
            await self._http.aclose()

    @cached_property
    def _sdk(self) -> AsyncOpenAI:
        address = httpx2.URL(self._base_url).copy_with(userinfo=b"")
        return AsyncOpenAI(api_key=self._api_key, base_url=address, max_retries=0, timeout=None, http_client=self._http)

    @cached_property
    def _headers(self) -> dict[str, str]:
        """Who we are: key, organisation, project and what the SDK says of itself."""
        given = {**self._sdk.default_headers, **self._sdk.auth_headers}
        headers = {name: value for name, value in given.items() if isinstance(value, str)}
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                raise GatewayRefused(
                    f"The request could not be sent (no header can carry {name} as it is). Check the environment, in"
                    " particular OPENAI_ORG_ID and OPENAI_PROJECT_ID."
                )
        return headers

    @cached_property
    def _http(self) -> httpx2.AsyncClient:
        """What can go wrong: certificates that cannot be read, a bad address of API or proxy, a SOCKS proxy."""
        try:
            _refuse_socks_proxies()
            return DefaultAioHttpClient(
                auth=_credentials_in(self._base_url),
                timeout=None,
                follow_redirects=False,
                limits=httpx2.Limits(max_connections=self._max_concurrency, keepalive_expiry=KEEP_ALIVE_SECONDS),
                event_hooks={"response": [_bound_body]},
                transport=self._transport,
            )
        except (OSError, ValueError, httpx2.InvalidURL) as exc:
            raise GatewayRefused(
                f"No connection to the API can be set up ({exc}). Check SSL_CERT_FILE, SSL_CERT_DIR and the proxy"
                " variables."
            ) from exc

    async def _ask(self, body: dict[str, Any], headers: dict[str, str]) -> object:
        content = json.dumps(body).encode()
        response = await self._http.post(f"{self._sdk.base_url}responses", content=content, headers=headers)
        if not response.is_success:
            raise status_error(response)
        return json.loads(response.content.decode("utf-8"))

    async def _stream(self, body: dict[str, Any], on_progress: ProgressListener) -> object:
        stream = await self._sdk.post(
            "/responses", cast_to=object, body={**body, "stream": True}, stream=True, stream_cls=AsyncStream[object]
        )
        async with stream:
            async for event in stream:
                if not isinstance(event, dict):
                    raise ValueError("a stream event is no object")
                kind = event.get("type")
                if kind in _FINAL_EVENTS:
                    return event.get("response")
                if kind == "error":
                    raise _stream_error(event)
                progress = progress_of(event, self._mask)
                if progress is not None:
                    on_progress(progress)
        raise GatewayBroken("The stream ended before the answer was complete. Ask again.")

    def _refuse_unusable_key(self) -> None:
        if not self._api_key:
            raise KeyUnusable(f"Missing API key: set {self._api_key_variable}")
        if not (self._api_key.isascii() and self._api_key.isprintable()) or " " in self._api_key:
            raise KeyUnusable(
                f"The API key in {self._api_key_variable} holds a space, a control character or a letter that no key"
                " has. Copy it again."
            )

    def _timeout(self) -> GatewayTimeout:
        return GatewayTimeout(
            f"No complete answer within {self._timeout_seconds:g} s. Ask again, ask for less,"
            " or raise request.timeout_ms (OPENAI_API_TIMEOUT)."
        )


def _stream_error(event: dict[str, Any]) -> GatewayBroken:
    """For an event that is itself the error; one with the error inside is raised by the SDK."""
    return GatewayBroken(
        f"The API ended the stream with an error ({event.get('message') or 'no reason given'}). Ask again.",
        code=str(event.get("code") or "") or None,
    )


def _credentials_in(base_url: str) -> tuple[str, str] | None:
    """For a gateway that wants a user and a password; they take the place of the key."""
    url = httpx2.URL(base_url)
    return (url.username, url.password) if url.userinfo else None


def _refuse_socks_proxies() -> None:
    proxies = getproxies()
    for name in ("http", "https", "all"):
        if proxies.get(name, "").startswith("socks"):
            raise ValueError(f"{name.upper()}_PROXY names a SOCKS proxy; only HTTP proxies can be used")


async def _bound_body(response: httpx2.Response) -> None:
    # Whatever it claims: some names of charsets lead to codecs that fail in their own ways.
    response.encoding = "utf-8"
    if not isinstance(response.stream, httpx2.AsyncByteStream):
        return
    if "content-encoding" not in response.headers:
        response.stream = _BoundedStream(response.stream, response.stream.aclose)
        return
    packed = httpx2.Response(response.status_code, headers=response.headers, stream=response.stream)
    response.stream = _BoundedStream(packed.aiter_bytes(), packed.aclose)
    response.headers.pop("content-encoding")


class _BoundedStream(httpx2.AsyncByteStream):
    """A body, counted as it is when unpacked: a few kilobytes may unfold into gigabytes."""

    def __init__(self, chunks: AsyncIterable[bytes], close: Callable[[], Awaitable[None]]) -> None:
        self._chunks = chunks
        self._close = close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._chunks:
            count += len(chunk)
            if count > LONGEST_REPLY_BYTES:
                raise BodyTooLong(f"more than {LONGEST_REPLY_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._close()
