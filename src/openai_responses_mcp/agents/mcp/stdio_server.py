"""A stdio server that is stopped together with its child processes.

The SDK's own transport leaves a server's children running when the server exits cleanly, and reads lines of any length.
Here the server has a process group, which is stopped as a whole, and messages are bounded. Children that leave the
group on purpose are not stopped. On Windows the SDK's transport does the same with a job object.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from agents.mcp import MCPServerStdio
from mcp import MCPError
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)

from openai_responses_mcp.adapters.child_process import ChildProcess

LONGEST_MESSAGE_BYTES = 32 * 1024 * 1024
# How long a server has to exit after its input is closed, after SIGTERM and after SIGKILL.
GRACE_SECONDS = (2.0, 2.0, 2.0)
# How long output is read after the server has exited.
LAST_WORDS_SECONDS = 0.2


class StdioServer(MCPServerStdio):
    """The SDK's object for a server over stdio, on the transport of this module."""

    def create_streams(self) -> AbstractAsyncContextManager[Any]:
        if sys.platform == "win32":  # pragma: no cover
            return stdio_client(self.params)
        return streams_of(self.params)


@asynccontextmanager
async def streams_of(params: StdioServerParameters) -> AsyncIterator[tuple["_Incoming", "_Outgoing"]]:
    """Start the server; stop it and its children afterwards, also if the caller is cancelled."""
    child = ChildProcess(
        [params.command, *params.args],
        {**get_default_environment(), **(params.env or {})},
        cwd=params.cwd,
        shares_stderr=True,
        grace_seconds=GRACE_SECONDS,
    )
    async with AsyncExitStack() as stack:
        stack.callback(child.close)
        stack.push_async_callback(lambda: _whatever_happens(child.end()))
        incoming = await stack.enter_async_context(await _Incoming.of(child))
        outgoing = await stack.enter_async_context(await _Outgoing.to(child))
        stack.callback(asyncio.create_task(_close_after_exit(child, incoming)).cancel)
        yield incoming, outgoing


async def _close_after_exit(child: ChildProcess, incoming: "_Incoming") -> None:
    """Needed because a child that has left the group may keep the server's output open."""
    await child.ended()
    await asyncio.sleep(LAST_WORDS_SECONDS)
    await incoming.aclose()


class _Incoming(AbstractAsyncContextManager["_Incoming"]):
    """Messages from the server, one per line. Any other line is returned as an error."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport) -> None:
        self._reader = reader
        self._transport = transport

    @classmethod
    async def of(cls, child: ChildProcess) -> "_Incoming":
        reader = asyncio.StreamReader(limit=LONGEST_MESSAGE_BYTES)
        loop, pipe = asyncio.get_running_loop(), os.fdopen(child.wires[0], "rb", buffering=0, closefd=False)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        return cls(reader, transport)

    def __aiter__(self) -> "_Incoming":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            line = await self._reader.readline()
        except ValueError:
            # Too long: the start of the next message cannot be found.
            line = b""
        if not line:
            raise StopAsyncIteration
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as exc:
            return exc
        return SessionMessage(marked_as_answered(message))

    async def receive(self) -> SessionMessage | Exception:
        return await anext(self)

    async def aclose(self) -> None:
        self._transport.close()

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class _Outgoing(AbstractAsyncContextManager["_Outgoing"]):
    """Messages to the server."""

    def __init__(self, writer: asyncio.StreamWriter, child: ChildProcess) -> None:
        self._writer = writer
        self._child = child

    @classmethod
    async def to(cls, child: ChildProcess) -> "_Outgoing":
        loop, pipe = asyncio.get_running_loop(), os.fdopen(child.wires[1], "wb", buffering=0, closefd=False)
        # The protocol is for its flow control; nothing is ever read here.
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
        )
        return cls(asyncio.StreamWriter(transport, protocol, None, loop), child)

    async def send(self, item: SessionMessage) -> None:
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._writer.write(f"{line}\n".encode())
        await self._writer.drain()

    async def aclose(self) -> None:
        if not self._writer.is_closing():
            # Not close(): that waits for a server that does not read.
            self._writer.transport.abort()
        self._child.close_input()

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


async def _whatever_happens(work: Awaitable[object]) -> None:
    """Finish the work even if the caller is cancelled; otherwise a process would be left running."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as exc:
            cancelled = exc
    await task
    if cancelled is not None:
        raise cancelled


# ---------------------------------------------------------------------------------------------------------------------
# Did the server answer with an error, or did the transport raise it because no answer came?
#
# Both arrive as the same exception with the same numbers: servers use −32000 for their own errors, and the SDK uses
# it when a connection breaks. The difference matters. A call that was answered must not be retried; if it was not
# answered, it is unknown whether it ran. Our own transport marks errors from the server. The SDK's transports can only be
# recognised by their texts.

# How errors of the SDK's own begin, and what they mean.
NO_ANSWER: tuple[tuple[int, str, str], ...] = (
    (CONNECTION_CLOSED, "Connection closed", "the connection broke"),
    (CONNECTION_CLOSED, "SSE stream ended", "the connection broke"),
    (CONNECTION_CLOSED, "SSE stream failed", "the connection broke"),
    (REQUEST_TIMEOUT, "Request '", "no answer in time"),
    (INTERNAL_ERROR, "Server returned an error response", "an HTTP error instead of an answer"),
    (INVALID_REQUEST, "Unexpected content type", "an answer that is neither JSON nor a stream"),
    (PARSE_ERROR, "Failed to parse", "an answer that cannot be read"),
)
_AMBIGUOUS = frozenset(code for code, _, _ in NO_ANSWER)

_ANSWERED = object()


def marked_as_answered(message: JSONRPCMessage) -> JSONRPCMessage:
    """The message, with a mark if it is an error that the SDK could have raised itself."""
    if not isinstance(message, JSONRPCError) or message.error.code not in _AMBIGUOUS:
        return message
    error = ErrorData(code=message.error.code, message=message.error.message, data=_ANSWERED)
    return message.model_copy(update={"error": error})


def why_no_answer(error: MCPError) -> str | None:
    """None when the server did answer."""
    if error.data is _ANSWERED:
        return None
    return next((why for code, text, why in NO_ANSWER if error.code == code and error.message.startswith(text)), None)
