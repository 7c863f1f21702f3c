"""The wire: one thread reads stdin, one writes stdout, the event loop owns everything in between.

The reader is at most a few chunks ahead of the loop, and the loop takes no chunk while the client leaves too much
unread. So if one side is slow, the other slows down too, instead of filling the memory.

The loop itself writes what the system takes without a wait. Waking the writer takes longer, which `make bench` shows in
what the guard adds to a call.
"""

import asyncio
import contextlib
import os
import queue
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable

from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import Channel, Logger, Received, Transport

# The size of a pipe. For larger chunks the system maps new memory with every read, which is slow.
CHUNK_BYTES = 64 * 1024
# With a single chunk ahead, a ping behind thousands of calls would wait for seconds.
CHUNKS_AHEAD = 16
MOST_UNREAD_BYTES = 4 * 1024 * 1024
_SECONDS_TO_CLOSE = 1.0


def claim_wire() -> tuple[int, int]:
    """Move stdin and stdout to private descriptors, so that nothing else can read or write the client's bytes.

    Afterwards fd 0 is the null device, and fd 1 is stderr.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # Gets the lowest free number, which is this one.
    wire_in, wire_out = os.dup(0), os.dup(1)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(wire_in, os.O_BINARY)
        msvcrt.setmode(wire_out, os.O_BINARY)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return wire_in, wire_out


class StdioTransport(Transport, Channel):
    """Create it inside the running event loop. It starts reading at once. Every message is answered through it.

    With `reads_to_end`, input is read to its end even after the other side has stopped reading.
    """

    def __init__(
        self,
        wire_in: int,
        wire_out: int,
        framer: StdioFramer,
        logger: Logger,
        on_closed: Callable[[], object] = lambda: None,
        *,
        on_first_send: Callable[[], object] = lambda: None,
        reads_to_end: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._in, self._out = wire_in, wire_out
        self._framer = framer
        self._logger = logger
        self._on_closed = on_closed
        self._on_first_send: Callable[[], object] | None = on_first_send
        self._reads_to_end = reads_to_end
        self._arrived: deque[bytes] = deque()
        self._may_read = threading.Semaphore(CHUNKS_AHEAD)
        self._outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._sent_bytes = 0
        self._written_bytes = 0  # changed only by the writer thread
        self._waiting_for_writer = 0
        self._room = _room_in(wire_out)
        self._has_ended = False
        self._is_closed = False
        self._is_given_up = threading.Event()
        self._something_changed = asyncio.Event()
        self._watch_for_hang_up()
        self._threads = [
            threading.Thread(target=self._read, name="stdin", daemon=True),
            threading.Thread(target=self._write, name="stdout", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    async def receive(self) -> Received | None:
        while True:
            if self._unread_bytes > MOST_UNREAD_BYTES:
                await self._wait_until_unread(MOST_UNREAD_BYTES)
            self._require_readable()
            message = self._framer.next_message()
            if message is not None:
                return Received(message, self)
            if self._has_ended:
                return None
            while not self._arrived:
                self._require_readable()
                await self._wait_for_change()
            self._feed(self._arrived.popleft())

    def send(self, body: bytes) -> None:
        if self._is_closed:
            return
        message = self._framer.frame(body)
        if self._logger.is_debugging:
            mode = "line" if self._framer.is_line_mode else "framed"
            self._logger.debug(f"send ({mode})", bytes=len(body))
            self._logger.debug("send", json=body.decode())
        rest = self._rest_after_writing(message) if self._is_taken_at_once(message) else message
        if rest:
            self._sent_bytes += len(rest)
            self._outgoing.put(rest)
        if self._on_first_send is not None:
            on_first_send, self._on_first_send = self._on_first_send, None
            on_first_send()

    def reply(self, body: bytes, error_code: int | None = None) -> None:
        self.send(body)

    def withdraw(self) -> None:
        pass

    async def flush(self) -> None:
        await self._wait_until_unread(0)
        self._require_open()

    async def close(self) -> bool:
        """End the threads, if the process outlives the connection. False if one is still busy."""
        self._is_closed = True
        self._is_given_up.set()
        with contextlib.suppress(OSError, NotImplementedError):
            self._loop.remove_reader(self._out)
        self._outgoing.put(b"")
        self._may_read.release(CHUNKS_AHEAD)
        for thread in self._threads:
            await asyncio.to_thread(thread.join, _SECONDS_TO_CLOSE)
        return not any(thread.is_alive() for thread in self._threads)

    def _is_taken_at_once(self, message: bytes) -> bool:
        if self._unread_bytes or self._room is None or len(message) > select.PIPE_BUF:
            return False
        return bool(self._room.poll(0))

    def _rest_after_writing(self, message: bytes) -> bytes:
        try:
            return message[os.write(self._out, message) :]
        except OSError:  # The writer gets the same error, and handles it.
            return message

    @property
    def _unread_bytes(self) -> int:
        return self._sent_bytes - self._written_bytes

    async def _wait_until_unread(self, at_most: int) -> None:
        # The writer wakes the loop only if something waits. To miss no wait, this side notes its wait before it counts
        # the unread bytes, and the writer counts before it looks for waits.
        self._waiting_for_writer += 1
        try:
            while self._unread_bytes > at_most and not self._is_closed:
                await self._wait_for_change()
        finally:
            self._waiting_for_writer -= 1

    async def _wait_for_change(self) -> None:
        self._something_changed.clear()
        await self._something_changed.wait()

    def _require_readable(self) -> None:
        if not self._reads_to_end:
            self._require_open()

    def _require_open(self) -> None:
        if self._is_closed:
            raise TransportClosed("the client has closed its end")

    def _feed(self, chunk: bytes) -> None:
        self._logger.debug("stdin", chunk=len(chunk))
        if chunk:
            self._framer.receive(chunk)
        else:
            self._framer.receive_end()
            self._has_ended = True
        self._may_read.release()

    def _read(self) -> None:
        """In a thread. An empty chunk means the end, for whatever reason."""
        chunk = b"more"
        while chunk:
            self._may_read.acquire()
            chunk = _read_some(self._in)
            self._in_loop(self._note_arrived, chunk)

    def _write(self) -> None:
        """In a thread. All waiting messages are written together."""
        while True:
            messages = self._outgoing.get()
            if self._is_given_up.is_set():
                return
            with contextlib.suppress(queue.Empty):
                while len(messages) < CHUNK_BYTES:
                    messages += self._outgoing.get_nowait()
            try:
                _write_all(self._out, messages)
            except OSError:
                self._in_loop(self._note_closed)
                return
            self._written_bytes += len(messages)
            if self._is_given_up.is_set():
                return
            if self._waiting_for_writer:
                self._in_loop(self._something_changed.set)

    def _in_loop(self, note: Callable[..., None], *facts: object) -> None:
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(note, *facts)

    def _note_arrived(self, chunk: bytes) -> None:
        self._arrived.append(chunk)
        self._something_changed.set()

    def _note_closed(self) -> None:
        self._is_closed = True
        self._something_changed.set()
        self._on_closed()

    def _watch_for_hang_up(self) -> None:
        """Notice that the client closed stdout even while nothing is written, if the OS supports that."""
        if hasattr(select, "poll"):
            with contextlib.suppress(OSError, NotImplementedError):  # A file or a terminal has no other end.
                self._loop.add_reader(self._out, self._on_hang_up)

    def _on_hang_up(self) -> None:
        self._loop.remove_reader(self._out)
        poll = select.poll()
        poll.register(self._out, 0)
        # Readable alone is not enough: the client may have closed one half, or may write to our stdout.
        if any(flags & (select.POLLHUP | select.POLLERR) for _, flags in poll.poll(0)):
            self._note_closed()


def _room_in(descriptor: int) -> "select.poll | None":
    """Says whether a pipe or a socket takes `select.PIPE_BUF` bytes without a wait; None for other files."""
    mode = os.fstat(descriptor).st_mode
    if not hasattr(select, "poll") or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return None
    room = select.poll()
    room.register(descriptor, select.POLLOUT)
    return room


def _read_some(descriptor: int) -> bytes:
    try:
        while True:
            try:
                return os.read(descriptor, CHUNK_BYTES)
            except BlockingIOError:  # Another process that shares the pipe has made it non-blocking.
                select.select([descriptor], [], [])
    except OSError:
        return b""


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
