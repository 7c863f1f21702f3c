"""What a provider may send: no more than any answer can be, and a stream to its end."""

import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2

LONGEST_REPLY_BYTES = 32 * 1024 * 1024

# A key of a JSON object, never part of what a model says: quotes inside a text are escaped.
_IS_LAST = re.compile(
    r'"finish_reason"\s*:\s*"|"type"\s*:\s*"(?:response\.(?:completed|incomplete|failed)|error)"|^\[DONE\]'
)


class ReplyTooLong(ValueError):
    def __init__(self) -> None:
        super().__init__(f"more than {LONGEST_REPLY_BYTES} bytes")


class StreamCutShort(ValueError):
    def __init__(self) -> None:
        super().__init__("the stream ended before the answer did")


async def bound_body(response: httpx2.Response) -> None:
    """A hook of the HTTP client. Bytes are counted after unpacking: a few kilobytes may become gigabytes."""
    # Whatever charset the reply names: some names lead to codecs that fail in their own ways.
    response.encoding = "utf-8"
    packed = httpx2.Response(response.status_code, headers=response.headers, stream=response.stream)
    response.headers.pop("content-encoding", None)
    response.stream = _BoundedStream(packed.aiter_bytes(), packed.aclose)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, chunks: AsyncIterable[bytes], close: Callable[[], Awaitable[None]]) -> None:
        self._chunks = chunks
        self._close = close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._chunks:
            count += len(chunk)
            if count > LONGEST_REPLY_BYTES:
                raise ReplyTooLong
            yield chunk

    async def aclose(self) -> None:
        await self._close()


class WholeStreams:
    """A decoder of server-sent events that wraps the vendor's: a stream that just stops is no answer.

    The connection of a provider that crashes, or of a proxy before it, often ends in good order.
    """

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    async def aiter_bytes(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        is_whole = False
        async for event in self._decoder.aiter_bytes(chunks):
            is_whole = is_whole or _IS_LAST.search(event.data) is not None
            yield event
        if not is_whole:
            raise StreamCutShort
