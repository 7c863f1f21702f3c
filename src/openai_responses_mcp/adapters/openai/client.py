"""Streamed answers, asked for and taken apart by the SDK, with its retries and redirects off.

Loading the SDK takes longer than anything else here, so this module is imported in a thread, behind the first replies.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Any

import httpx2
from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient

from openai_responses_mcp.adapters.openai.api_errors import Mask, Now
from openai_responses_mcp.adapters.openai.route import ApiRoute
from openai_responses_mcp.adapters.openai.sdk_errors import sdk_errors_translated
from openai_responses_mcp.adapters.openai.session import (
    KEEP_ALIVE_SECONDS,
    LONGEST_REPLY_BYTES,
    BodyTooLong,
    deaf_address,
)
from openai_responses_mcp.adapters.openai.wire import JsonObject, progress_of
from openai_responses_mcp.domain.errors import GatewayBroken, GatewayError
from openai_responses_mcp.domain.models import ProgressListener

_FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed")


class SdkClient:
    """Raises `GatewayError`, when it is made, too."""

    def __init__(
        self,
        route: ApiRoute,
        *,
        max_connections: int,
        now: Now,
        mask: Mask = str,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._now = now
        self._mask = mask
        with sdk_errors_translated(now, mask):
            self._http = DefaultAioHttpClient(
                verify=route.tls or False,  # False only where no TLS is spoken at all.
                proxy=route.proxy,
                trust_env=False,
                timeout=None,
                follow_redirects=False,
                limits=httpx2.Limits(max_connections=max_connections, keepalive_expiry=KEEP_ALIVE_SECONDS),
                event_hooks={"response": [_bound_body]},
                transport=transport,
            )
            self._sdk = AsyncOpenAI(
                api_key=route.api_key,
                base_url=str(route.url),
                max_retries=0,
                timeout=None,
                http_client=self._http,
                default_headers=route.headers,
            )

    async def respond(self, body: JsonObject, on_progress: ProgressListener) -> object:
        """The response object that the stream ends with. Raises `GatewayError`."""
        with sdk_errors_translated(self._now, self._mask):
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

    async def close(self) -> None:
        await self._http.aclose()


def load_what_a_first_request_loads() -> None:
    """In a thread without an event loop, by asking where nobody listens."""

    async def ask_in_vain() -> None:
        with deaf_address() as address:
            client = SdkClient(ApiRoute(base_url=address, api_key="none"), max_connections=1, now=datetime.now)
            with contextlib.suppress(GatewayError):
                await client.respond({}, lambda progress: None)
            await client.close()

    asyncio.run(ask_in_vain())


def _stream_error(event: dict[str, Any]) -> GatewayBroken:
    """For an event that is itself the error; one with the error inside is raised by the SDK."""
    return GatewayBroken(
        f"The API ended the stream with an error ({event.get('message') or 'no reason given'}). Ask again.",
        code=str(event.get("code") or "") or None,
    )


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
                raise BodyTooLong
            yield chunk

    async def aclose(self) -> None:
        await self._close()
