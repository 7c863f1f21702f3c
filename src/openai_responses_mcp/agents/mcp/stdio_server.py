"""A server over stdio that ends with everything it has started.

The SDK's own transport leaves the children of a server alone when the server exits in good order, and reads lines of any
length. Here the server gets a process group of its own, which is ended as a whole, and a message has a bound. Children
that leave the group on purpose are out of reach. On Windows the SDK's transport does the same with a job object.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from agents.mcp import MCPServerStdio
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from openai_responses_mcp.agents.mcp.answers import marked_as_answered

LONGEST_MESSAGE_BYTES = 32 * 1024 * 1024
# How long a server has to exit after its input is closed, and again after the signal to end.
GRACE_SECONDS = 2.0
# How long what a server said before it exited is still read.
LAST_WORDS_SECONDS = 0.2
_LOOK_AGAIN_SECONDS = 0.01


class StdioServer(MCPServerStdio):
    """The SDK's object for a server over stdio, on the transport of this module."""

    def create_streams(self) -> AbstractAsyncContextManager[Any]:
        if sys.platform == "win32":  # pragma: no cover
            return stdio_client(self.params)
        return streams_of(self.params)


@asynccontextmanager
async def streams_of(params: StdioServerParameters) -> AsyncIterator[tuple["_Incoming", "_Outgoing"]]:
    """Start the server; end it and its children afterwards, also when the caller is cancelled."""
    # Pipes of our own can be closed while some child of the server still holds their other ends.
    its_input, to_server = os.pipe()
    from_server, its_output = os.pipe()
    incoming, outgoing = await _Incoming.on(from_server), await _Outgoing.on(to_server)
    try:
        process = await asyncio.create_subprocess_exec(
            params.command,
            *params.args,
            stdin=its_input,
            stdout=its_output,
            env={**get_default_environment(), **(params.env or {})},
            cwd=params.cwd,
            start_new_session=True,
        )
    except BaseException:
        await incoming.aclose()
        await outgoing.aclose()
        raise
    finally:
        os.close(its_input)
        os.close(its_output)
    watching = asyncio.create_task(_close_after_exit(process, incoming))
    try:
        yield incoming, outgoing
    finally:
        watching.cancel()
        await _whatever_happens(_end(process, outgoing))
        await incoming.aclose()


async def _close_after_exit(process: asyncio.subprocess.Process, incoming: "_Incoming") -> None:
    """Needed because a child may keep the server's output open after the server has exited."""
    await process.wait()
    await asyncio.sleep(LAST_WORDS_SECONDS)
    await incoming.aclose()


class _Incoming(AbstractAsyncContextManager["_Incoming"]):
    """Messages of the server, one line each. Anything else is passed on as an error."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport) -> None:
        self._reader = reader
        self._transport = transport

    @classmethod
    async def on(cls, descriptor: int) -> "_Incoming":
        reader = asyncio.StreamReader(limit=LONGEST_MESSAGE_BYTES)
        loop, pipe = asyncio.get_running_loop(), os.fdopen(descriptor, "rb", buffering=0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        return cls(reader, transport)

    def __aiter__(self) -> "_Incoming":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            line = await self._reader.readline()
        except ValueError:
            # Longer than any message: there is no telling where the next one begins.
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

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    @classmethod
    async def on(cls, descriptor: int) -> "_Outgoing":
        loop, pipe = asyncio.get_running_loop(), os.fdopen(descriptor, "wb", buffering=0)
        # The protocol is for its flow control; nothing is ever read here.
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
        )
        return cls(asyncio.StreamWriter(transport, protocol, None, loop))

    async def send(self, item: SessionMessage) -> None:
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._writer.write(f"{line}\n".encode())
        await self._writer.drain()

    async def aclose(self) -> None:
        self._writer.close()

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


async def _end(process: asyncio.subprocess.Process, outgoing: _Outgoing) -> None:
    """The end of its input tells a server to exit. The rest of its group is then asked to end, and at last killed."""
    await outgoing.aclose()
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    if _signal_group(process.pid, signal.SIGTERM) and not await _is_group_gone(process.pid):
        _signal_group(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE_SECONDS)


def _signal_group(leader: int, number: int) -> bool:
    """Whether the group has any process left. Those of other users get no signal, but they count."""
    try:
        with suppress(PermissionError):
            os.killpg(leader, number)
    except ProcessLookupError:
        return False
    return True


async def _is_group_gone(leader: int) -> bool:
    for _ in range(round(GRACE_SECONDS / _LOOK_AGAIN_SECONDS)):
        if not _signal_group(leader, 0):
            return True
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    return False


async def _whatever_happens(work: Awaitable[None]) -> None:
    """Runs to its end even if the caller is cancelled meanwhile: otherwise a process would be left behind."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as exc:
            cancelled = exc
    await task
    if cancelled is not None:
        raise cancelled
