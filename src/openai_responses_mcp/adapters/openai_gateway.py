"""One attempt at the Responses API: asked through the SDK, bounded in time, in size and in number at once.

The SDK carries the request and sorts out HTTP errors; its own retries and redirects are off, and the reply is read as
plain JSON, because its models cost more than everything else here and let wrong shapes through.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from functools import cached_property
from typing import Any
from urllib.parse import quote

import httpx2
from openai import AsyncOpenAI, AsyncStream

from openai_responses_mcp.adapters.openai_errors import BodyTooLong, vendor_errors_translated
from openai_responses_mcp.adapters.openai_wire import progress_of, read_reply, request_body
from openai_responses_mcp.domain.errors import GatewayBroken, GatewayTimeout, KeyUnusable
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

    async def close(self) -> None:
        await self._client.close()

    @cached_property
    def _client(self) -> AsyncOpenAI:
        http_client = httpx2.AsyncClient(
            timeout=None,
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_SECONDS),
            event_hooks={"response": [_bound_body]},
            transport=self._transport,
        )
        return AsyncOpenAI(
            api_key=self._api_key, base_url=self._base_url, max_retries=0, timeout=None, http_client=http_client
        )

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
    nested = event.get("error")
    facts = nested if isinstance(nested, dict) else event
    return GatewayBroken(
        f"The API ended the stream with an error: {facts.get('message') or 'no reason given'} Ask again.",
        code=str(facts.get("code") or "") or None,
    )


async def _bound_body(response: httpx2.Response) -> None:
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._stream:
            count += len(chunk)
            if count > LONGEST_REPLY_BYTES:
                raise BodyTooLong(f"more than {LONGEST_REPLY_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
