"""One attempt at the Responses API: asked through the SDK, bounded in time, in size and in number at once.

The SDK carries the request and sorts out HTTP errors; its own retries and redirects are off, and the reply is read as
plain JSON, because its models cost more than everything else here and let wrong shapes through.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterable
from functools import cached_property
from typing import Any
from urllib.parse import quote

import httpx2
from openai import AsyncOpenAI, AsyncStream, OpenAIError

from openai_responses_mcp.adapters.openai_errors import BodyTooLong, vendor_errors_translated
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
# The pool looks at every idle connection for every request: with 200 of them a burst takes twice the CPU time.
MOST_IDLE_CONNECTIONS = 20

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
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._api_key = api_key.strip()
        self._api_key_variable = api_key_variable
        self._base_url = base_url
        self._timeout_seconds = timeout_seconds
        self._places = asyncio.Semaphore(max_concurrency)
        self._omit = tuple(omit)
        self._clock = clock
        self._transport = transport

    async def respond(self, request: ModelRequest, on_progress: ProgressListener | None = None) -> ModelReply:
        self._refuse_unusable_key()
        body = request_body(request, self._omit)
        async with self._places:
            deadline = asyncio.timeout(self._timeout_seconds)
            try:
                async with deadline:
                    with vendor_errors_translated(self._clock.now):
                        response = await (self._ask(body) if on_progress is None else self._stream(body, on_progress))
            except TimeoutError as exc:
                raise self._timeout() from exc
        return read_reply(response)

    async def check_model(self, model: str) -> None:
        """Ask the API whether it knows the model, for whoever looks for the cause of trouble. Raises as `respond`."""
        self._refuse_unusable_key()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                with vendor_errors_translated(self._clock.now):
                    await self._client.get(f"/models/{quote(model, safe='')}", cast_to=httpx2.Response)
        except TimeoutError as exc:
            raise self._timeout() from exc

    def prepare(self) -> None:
        """Pay for the first call in advance, in a thread without an event loop: certificates and late imports.

        What goes wrong here goes wrong again, and is told, with the first call.
        """
        with contextlib.suppress(OSError, ValueError, OpenAIError, GatewayError, httpx2.InvalidURL):
            self._client  # noqa: B018 -- made when first looked at
            asyncio.run(self._knock_in_vain())

    async def _knock_in_vain(self) -> None:
        """One attempt at a port nobody listens on: the SDK imports much only when it connects, 20 ms in all."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            host, port = unused.getsockname()
            # A transport of its own, because the shared client may belong to another event loop by then.
            async with AsyncOpenAI(
                api_key="none",
                base_url=f"http://{host}:{port}",
                max_retries=0,
                http_client=httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(), trust_env=False),
            ) as client:
                await client.post("/responses", cast_to=httpx2.Response, body={})

    async def close(self) -> None:
        if "_client" in self.__dict__:
            await self._client.close()

    @cached_property
    def _client(self) -> AsyncOpenAI:
        return AsyncOpenAI(
            api_key=self._api_key, base_url=self._base_url, max_retries=0, timeout=None, http_client=self._http_client()
        )

    def _http_client(self) -> httpx2.AsyncClient:
        """What can go wrong: certificates that cannot be read, a bad proxy address, SOCKS without its package."""
        try:
            return httpx2.AsyncClient(
                timeout=None,
                follow_redirects=False,
                limits=httpx2.Limits(
                    max_connections=None,
                    max_keepalive_connections=MOST_IDLE_CONNECTIONS,
                    keepalive_expiry=KEEP_ALIVE_SECONDS,
                ),
                event_hooks={"response": [_bound_body]},
                transport=self._transport,
            )
        except (OSError, ValueError, ImportError, httpx2.InvalidURL) as exc:
            raise GatewayRefused(
                f"No connection to the API can be set up ({exc}). Check SSL_CERT_FILE, SSL_CERT_DIR and the proxy"
                " variables."
            ) from exc

    async def _ask(self, body: dict[str, Any]) -> object:
        response = await self._client.post("/responses", cast_to=httpx2.Response, body=body)
        return json.loads(response.content.decode("utf-8"))

    async def _stream(self, body: dict[str, Any], on_progress: ProgressListener) -> object:
        stream = await self._client.post(
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
                progress = progress_of(event)
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


async def _bound_body(response: httpx2.Response) -> None:
    response.encoding = "utf-8"  # Whatever it claims: some names of charsets lead to codecs that fail in their own ways.
    if isinstance(response.stream, httpx2.AsyncByteStream):
        packed = httpx2.Response(response.status_code, headers=response.headers, stream=response.stream)
        response.stream = _BoundedStream(packed)
        response.headers.pop("content-encoding", None)


class _BoundedStream(httpx2.AsyncByteStream):
    """A body, unpacked and counted as such: a few kilobytes may unfold into gigabytes."""

    def __init__(self, packed: httpx2.Response) -> None:
        self._packed = packed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async with contextlib.aclosing(self._packed.aiter_bytes()) as chunks:
            async for chunk in chunks:
                count += len(chunk)
                if count > LONGEST_REPLY_BYTES:
                    raise BodyTooLong(f"more than {LONGEST_REPLY_BYTES} bytes")
                yield chunk

    async def aclose(self) -> None:
        await self._packed.aclose()
