"""One attempt at the Responses API through the SDK, bounded in time and in number at once.

Every question asks for a stream. It is read to its end, also behind its last event: only then can the connection be
used again.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import cached_property
from urllib.parse import quote

import httpx2
from openai import AsyncOpenAI

from openai_responses_mcp.adapters.openai.checks import COUNTING_PATH, counted_body, shutdown_date
from openai_responses_mcp.adapters.openai.client import LEAN, load_late_imports
from openai_responses_mcp.adapters.openai.errors import stream_error, vendor_errors_translated
from openai_responses_mcp.adapters.openai.replies import COMPLETED, ReplyReader
from openai_responses_mcp.adapters.openai.wire import JsonObject, progress_of, read_reply, request_body
from openai_responses_mcp.domain.errors import GatewayBroken, GatewayError, GatewayTimeout, KeyUnusable
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, ProgressListener
from openai_responses_mcp.domain.ports import Clock, LLMGateway

# What follows the last event, which is nothing or next to nothing. A new connection costs about as long.
LONGEST_END_SECONDS = 0.5
LONGEST_END_BYTES = 64 * 1024

_FINAL_EVENTS = (COMPLETED, "response.incomplete", "response.failed")


class OpenAIResponsesGateway(LLMGateway):
    """`make_client` is called once, with the first question or in `prepare`."""

    def __init__(
        self,
        make_client: Callable[[], AsyncOpenAI],
        *,
        api_key: str,
        api_key_variable: str,
        timeout_seconds: float,
        max_concurrency: int,
        omit: Iterable[str],
        clock: Clock,
        mask: Callable[[str], str] = str,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        self._make_client = make_client
        self._api_key = api_key.strip()
        self._api_key_variable = api_key_variable
        self._timeout_seconds = timeout_seconds
        self._places = asyncio.Semaphore(max_concurrency)
        self._omit = tuple(omit)
        self._extra = extra
        self._clock = clock
        self._mask = mask

    async def respond(self, request: ModelRequest, on_progress: ProgressListener | None = None) -> ModelReply:
        self._refuse_unusable_key()
        body = request_body(request, self._omit, self._extra)
        async with self._places:
            response = await self._ask(body, on_progress)
        return read_reply(response)

    async def check_model(self, model: str) -> str | None:
        """The day on which the model will be shut down, if one is announced. Raises as `respond`."""
        self._refuse_unusable_key()
        path = f"/models/{quote(model, safe='')}"
        async with self._attempt():
            reply = await self._client.get(path, cast_to=httpx2.Response, stream=True, options=LEAN)
            return shutdown_date(await _beginning_of(reply))

    async def check_request(self, request: ModelRequest) -> None:
        """Try a request without having it answered, which costs nothing. Raises as `respond`."""
        self._refuse_unusable_key()
        body = counted_body(request_body(request, self._omit, self._extra))
        async with self._attempt():
            reply = await self._client.post(
                COUNTING_PATH, cast_to=httpx2.Response, body=body, stream=True, options=LEAN
            )
            await reply.aclose()  # How many tokens it counted does not matter.

    def prepare(self) -> None:
        """Pay for the first question in advance, in a thread without an event loop.

        What goes wrong here goes wrong again, and is told, with the first question.
        """
        self._mask("")  # Made with the first text to mask.
        with contextlib.suppress(GatewayError), vendor_errors_translated(self._clock.now, self._mask):
            asyncio.run(load_late_imports(self._client))

    async def close(self) -> None:
        """Close the connections; a later question opens new ones."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            await client.close()

    @cached_property
    def _client(self) -> AsyncOpenAI:
        return self._make_client()

    async def _ask(self, body: JsonObject, on_progress: ProgressListener | None) -> object:
        async with self._attempt() as deadline:
            reply = await self._client.post("/responses", cast_to=httpx2.Response, body=body, stream=True, options=LEAN)
            async with aclosing(reply), aclosing(reply.aiter_bytes()) as chunks:
                reader = ReplyReader(reply.headers.get("content-type", ""))
                response = await self._final_response(reader, chunks, on_progress)
                deadline.reschedule(None)  # The answer is there; being late can no longer cost it.
                await self._read_to_end(chunks)
                return response

    async def _final_response(
        self, reader: ReplyReader, chunks: AsyncIterator[bytes], on_progress: ProgressListener | None
    ) -> object:
        """The response object of the event that ends the answer. The events before it are told to the listener."""
        async for chunk in chunks:
            for event in reader.receive(chunk):
                if _ends_answer(event):
                    return event.get("response")
                if on_progress is not None:
                    self._tell(event, on_progress)
            if reader.has_ended:
                break
        for event in reader.end():
            return event["response"]
        raise GatewayBroken("The stream ended before the answer was complete. Ask again.")

    def _tell(self, event: JsonObject, on_progress: ProgressListener) -> None:
        progress = progress_of(event, self._mask)
        if progress is not None:
            on_progress(progress)

    async def _read_to_end(self, chunks: AsyncIterator[bytes]) -> None:
        """Whatever goes wrong now costs the connection, not the answer."""
        count = 0
        with contextlib.suppress(TimeoutError, GatewayError):
            async with asyncio.timeout(LONGEST_END_SECONDS):
                with vendor_errors_translated(self._clock.now, self._mask):
                    async for chunk in chunks:
                        count += len(chunk)
                        if count > LONGEST_END_BYTES:
                            return

    @asynccontextmanager
    async def _attempt(self) -> AsyncIterator[asyncio.Timeout]:
        """Bounded by the wall clock. What vendors raise comes out as an error of the domain."""
        try:
            async with asyncio.timeout(self._timeout_seconds) as deadline:
                with vendor_errors_translated(self._clock.now, self._mask):
                    yield deadline
        except TimeoutError as exc:
            raise GatewayTimeout(
                f"No complete answer within {self._timeout_seconds:g} s. Ask again, ask for less,"
                " or raise request.timeout_ms (OPENAI_API_TIMEOUT)."
            ) from exc

    def _refuse_unusable_key(self) -> None:
        if not self._api_key:
            raise KeyUnusable(f"Missing API key: set {self._api_key_variable}")
        if not (self._api_key.isascii() and self._api_key.isprintable()) or " " in self._api_key:
            raise KeyUnusable(
                f"The API key in {self._api_key_variable} holds a space, a control character or a letter that no key"
                " has. Copy it again."
            )


async def _beginning_of(reply: httpx2.Response) -> bytes:
    """As much of a body as anybody looks at, and the rest never comes."""
    beginning = b""
    async with aclosing(reply), aclosing(reply.aiter_bytes()) as chunks:
        async for chunk in chunks:
            beginning += chunk
            if len(beginning) > LONGEST_END_BYTES:
                break
    return beginning


def _ends_answer(event: JsonObject) -> bool:
    """Raises `GatewayBroken` for an event that ends the stream without one."""
    kind = event.get("type")
    if kind == "error" or event.get("error"):
        raise stream_error(event)
    return kind in _FINAL_EVENTS
