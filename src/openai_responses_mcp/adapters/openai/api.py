"""The requests to the API: sent with the SDK, without retries; replies are read as raw bytes.

Exceptions of the SDK become domain errors, also while a reply is read.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cached_property
from urllib.parse import quote

import httpx2
from openai import AsyncOpenAI, RequestOptions

from openai_responses_mcp.adapters.openai.client import NO_SDK_HEADERS, load_late_imports
from openai_responses_mcp.adapters.openai.errors import vendor_errors_translated
from openai_responses_mcp.adapters.openai.replies import ReplyStream, StreamEnded, stream_cut
from openai_responses_mcp.adapters.openai.wire import JsonObject
from openai_responses_mcp.domain.errors import GatewayError, GatewayRefused, ResponseLost
from openai_responses_mcp.domain.texts import Sentence

_NOT_FOUND = 404
_NOTHING_TO_CANCEL = 400
# Anything else could change the path of the request.
_RESPONSE_ID = re.compile(r"[A-Za-z0-9_-]{1,256}")


class ResponsesApi:
    """`make_client` is called once, with the first request or in `prepare`."""

    def __init__(
        self, make_client: Callable[[], AsyncOpenAI], now: Callable[[], datetime], mask: Callable[[str], str]
    ) -> None:
        self._make_client = make_client
        self._now = now
        self._mask = mask

    @asynccontextmanager
    async def posted(self, body: JsonObject) -> AsyncIterator[ReplyStream]:
        """The reply to a question."""
        with self._translated():
            async with _open(await self._post("/responses", body)) as stream:
                yield stream

    @asynccontextmanager
    async def streamed(self, response_id: str, after: int | None) -> AsyncIterator[ReplyStream]:
        """The events of a background response that follow event number `after`. Raises `ResponseLost`."""
        query: dict[str, object] = {"stream": "true"} if after is None else {"stream": "true", "starting_after": after}
        with self._not_found_translated(response_id), self._translated():
            async with _open(await self._get(_path_of(response_id), query)) as stream:
                yield stream

    async def retrieve(self, response_id: str) -> object:
        """The response object as it is now. Raises `ResponseLost`."""
        with self._not_found_translated(response_id), self._translated():
            async with _open(await self._get(_path_of(response_id))) as stream:
                try:
                    return await stream.final_response()
                except StreamEnded as exc:  # A proxy sent an empty stream, although none was requested.
                    raise stream_cut() from exc

    async def cancel(self, response_id: str) -> None:
        """No error if the response has already finished. Raises `ResponseLost`."""
        try:
            with self._not_found_translated(response_id), self._translated():
                async with _open(await self._post(f"{_path_of(response_id)}/cancel")) as stream:
                    await stream.read_to_end()
        except GatewayRefused as exc:
            if exc.status != _NOTHING_TO_CANCEL:
                raise

    async def model_shutdown_date(self, model: str) -> str | None:
        with self._translated():
            async with _open(await self._get(f"/models/{quote(model, safe='')}")) as stream:
                return shutdown_date(await stream.beginning())

    async def count_tokens(self, body: JsonObject) -> None:
        """Raises if the API rejects the request. The count itself is not used."""
        with self._translated():
            async with _open(await self._post(COUNTING_PATH, body)):
                pass

    def prepare(self) -> None:
        """Do in advance what only the first request needs, in a thread without an event loop.

        A failure here is ignored: the first request will fail in the same way, and say so.
        """
        self._mask("")  # The mask is made with its first use.
        with contextlib.suppress(GatewayError), self._translated():
            asyncio.run(load_late_imports(self._client))

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            await client.close()

    @cached_property
    def _client(self) -> AsyncOpenAI:
        return self._make_client()

    async def _post(self, path: str, body: JsonObject | None = None) -> httpx2.Response:
        return await self._client.post(path, cast_to=httpx2.Response, body=body, stream=True, options=NO_SDK_HEADERS)

    async def _get(self, path: str, query: dict[str, object] | None = None) -> httpx2.Response:
        options: RequestOptions = {**NO_SDK_HEADERS, "params": query or {}}
        return await self._client.get(path, cast_to=httpx2.Response, stream=True, options=options)

    def _translated(self) -> contextlib.AbstractContextManager[None]:
        return vendor_errors_translated(self._now, self._mask)

    @contextlib.contextmanager
    def _not_found_translated(self, response_id: str) -> Iterator[None]:
        try:
            yield
        except GatewayRefused as exc:
            if exc.status != _NOT_FOUND:
                raise
            raise _lost(response_id, exc) from exc


@asynccontextmanager
async def _open(reply: httpx2.Response) -> AsyncIterator[ReplyStream]:
    stream = ReplyStream(reply)
    try:
        yield stream
    finally:
        await stream.close()


def is_response_id(value: object) -> bool:
    return isinstance(value, str) and _RESPONSE_ID.fullmatch(value) is not None


def _path_of(response_id: str) -> str:
    if not is_response_id(response_id):
        raise ResponseLost(Sentence("That is not the id of a response, which looks like resp_68f1c2. Check it."))
    return f"/responses/{response_id}"


def _lost(response_id: str, refusal: GatewayError) -> ResponseLost:
    is_expired = "expire" in str(refusal).lower()
    reason = Sentence("has expired" if is_expired else "is unknown there, belongs to another project, or has expired")
    return ResponseLost(
        Sentence(
            "The API does not have the response {response_id}: it {reason} (responses are kept for 30 days). Ask again.",
            response_id=response_id,
            reason=reason,
        ),
        cause=refusal,
    )


COUNTING_PATH = "/responses/input_tokens"

# The fields that the token count accepts; it rejects the other fields of a question.
COUNTED_FIELDS = (
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "personality", "previous_response_id",
    "reasoning", "text", "tool_choice", "tools", "truncation",
)  # fmt: skip


def counted_body(body: Mapping[str, object]) -> JsonObject:
    return {name: value for name, value in body.items() if name in COUNTED_FIELDS}


def shutdown_date(content: bytes) -> str | None:
    """The day on which the model will be shut down; None for most models and gateways."""
    try:
        model = json.loads(content)
    except (ValueError, RecursionError):
        return None
    day = model.get("shutdown_date") if isinstance(model, dict) else None
    return day if isinstance(day, str) and day.strip() else None
