"""`guard --http`: the composition root of a guard for many clients. One store and one set of rules, a server for each.

A server is started on demand and restarted after it ends: its open calls fail, but the client stays connected, and its
next message starts another server. In the eras with a handshake the guard repeats it, so the client notices nothing. An
idle server is stopped. A call over its caller's limit is answered here and never reaches a relay.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from openai_responses_mcp.adapters.child_process import StderrLines
from openai_responses_mcp.adapters.http.joining import ClientsOfCallers
from openai_responses_mcp.adapters.log.line_sink import SilentLogger
from openai_responses_mcp.commands.serve_http import (
    ConfigError,
    checked_tokens,
    http_options,
    http_settings,
    serve_until_stopped,
)
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.jsonrpc import Request
from openai_responses_mcp.domain.ports import Channel, Received, Transport
from openai_responses_mcp.domain.usage import CallerLimits, OverLimit, UsageBook
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.composition import (
    CannotStart,
    ServerSide,
    given_replies,
    rules_before_start,
    start_server,
    tell_of_other_tools,
)
from openai_responses_mcp.guard.lifetime import UNUSABLE, words_for_end
from openai_responses_mcp.guard.messages import ClientWays, JsonObject
from openai_responses_mcp.guard.opened_gate import OpenedGate, new_run_id
from openai_responses_mcp.guard.peers import tool_error
from openai_responses_mcp.guard.relay import CONNECTION_CLOSED, Relay
from openai_responses_mcp.guard.servers import GuardOptions, OverHttp

if TYPE_CHECKING:
    from openai_responses_mcp.guard.call_keeper import CallKeeper

PROGRAM = "openai-responses-mcp guard"
_SECONDS_TO_END = 5.0
_SECONDS_TO_LEAVE = 0.5


async def guard_over_http(
    options: GuardOptions,
    over_http: OverHttp,
    environ: Mapping[str, str],
    stopped: "asyncio.Future[int]",
    lines: StderrLines,
) -> int:
    """Runs until `stopped` is done. Returns the exit code."""
    try:
        http = http_options(over_http.where, over_http.drain, over_http.tls_cert, over_http.tls_key)
        settings = http_settings(over_http.config, environ)
        tokens = checked_tokens(http, settings, environ)
        rules = await asyncio.to_thread(rules_before_start, options, environ)
        # The tokens of the callers are nothing for the guarded server, nor for the log.
        environ = {name: value for name, value in environ.items() if name != settings.tokens_env}
        known = {**environ, **{f"HTTP_TOKEN_{number}": token for number, token in enumerate(tokens.values())}}
        gate = await asyncio.to_thread(OpenedGate, options, known, lines, rules)
    except (ValueError, ConfigError, CannotStart, AgentsError) as exc:
        lines.tell(str(exc))
        return UNUSABLE

    guard_id = new_run_id()

    def connect(client: Transport, server: Transport, ways: ClientWays, caller: str, session_id: str) -> Relay:
        async def load(relay: Relay) -> "CallKeeper":
            return gate.keeper(relay, new_run_id(guard_id), caller, session_id)

        return Relay(client, server, load, lines.tell, given_replies(options, rules, known), ways)

    servers = KeptServers(
        partial(start_server, options, environ, lines, rules),
        connect,
        partial(tell_of_other_tools, rules=rules),
        over_http.most_servers,
    )
    limits, usage = CallerLimits(*settings.limits), gate.usage()

    async def serve_client(client: Transport, key: str, caller: str) -> None:
        limited = client if limits == CallerLimits() else LimitedClient(client, caller, limits, usage)
        await servers.serve(limited, key, caller)

    clients = ClientsOfCallers(serve_client)
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def stay() -> None:
        await gate.stay(guard_id, f"over HTTP, {await listening}: ")

    staying = asyncio.create_task(stay())
    try:
        return await serve_until_stopped(
            http,
            settings,
            tokens,
            clients.serve,
            _TellingLogger(lines.tell),
            stopped,
            on_listening=listening.set_result,
            admit=servers.admit,
            on_reply=servers.free_unused,
            program=PROGRAM,
        )
    except ConfigError as exc:
        lines.tell(str(exc))
        return UNUSABLE
    finally:
        await clients.close(_SECONDS_TO_END)
        staying.cancel()
        await asyncio.wait({staying}, timeout=_SECONDS_TO_LEAVE)


class _TellingLogger(SilentLogger):
    """Warnings and errors become lines on stderr."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell

    def warning(self, event: str, **facts: object) -> None:
        self._tell(" ".join([event, *(f"{name}={fact}" for name, fact in facts.items())]))

    def error(self, event: str, **facts: object) -> None:
        self.warning(event, **facts)


IDLE_SECONDS = 600.0
_LOOKS_WHILE_IDLE = 10
_SECONDS_TO_WRITE = 1.0
_SECONDS_FOR_HANDSHAKE = 30.0


class KeptServers:
    """At most `most` servers at a time. `connect` makes the relay between a client and a server.

    Besides the two transports, it gets what is known about the client, the caller's name, and a session id that stays
    the same when the server is restarted. `attend` runs beside each relay.
    """

    def __init__(
        self,
        start: Callable[[], ServerSide],
        connect: Callable[[Transport, Transport, ClientWays, str, str], Relay],
        attend: Callable[[Relay], Awaitable[None]],
        most: int,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._start = start
        self._connect = connect
        self._attend = attend
        self._most = most
        self._idle_seconds = idle_seconds
        self._admitted: set[str] = set()
        self._running: set[str] = set()

    def admit(self, key: str) -> bool:
        """Reserve a server for the client with this key. False if all servers are taken."""
        if key not in self._admitted and len(self._admitted) >= self._most:
            return False
        self._admitted.add(key)
        return True

    def free_unused(self, key: str) -> None:
        """Give the place back if no server was needed, as for a call over a limit."""
        if key not in self._running:
            self._admitted.discard(key)

    async def serve(self, client: Transport, key: str, caller: str) -> None:
        """Serve one client until it disconnects."""
        ahead, ways, session_id = _Ahead(client), ClientWays(), secrets.token_hex(8)
        handshake: JsonObject | None = None
        try:
            while (first := await ahead.next_one()) is not None:
                self._admitted.add(key)
                self._running.add(key)
                handshake = await self._serve_with_one(ahead, ways, caller, session_id, handshake) or handshake
                if ahead.has(first):
                    # The server ended before it read the message. Another one would do the same.
                    await _refuse(ahead, "The guarded server ended before it took the request")
                self._stopped(key)
        finally:
            self._stopped(key)

    def _stopped(self, key: str) -> None:
        self._running.discard(key)
        self._admitted.discard(key)

    async def _serve_with_one(
        self, client: "_Ahead", ways: ClientWays, caller: str, session_id: str, handshake: JsonObject | None
    ) -> JsonObject | None:
        """Serve the client with one server until either ends. Returns the client's handshake, if there was one."""
        try:
            side = self._start()
        except CannotStart as exc:
            await _refuse(client, str(exc))
            return None
        relay = self._connect(client, side.transport, ways, caller, session_id)
        answering = asyncio.create_task(relay.read_server())
        reading = asyncio.create_task(_read_client(relay, handshake))
        exited, idle = asyncio.create_task(side.process.ended()), asyncio.create_task(self._until_idle(relay))
        ends, attending = (reading, answering, exited, idle), asyncio.ensure_future(self._attend(relay))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            has_left = reading.done()
            reading.cancel()
            code = await side.process.end()
            await asyncio.wait({answering}, timeout=_SECONDS_TO_WRITE)
            await relay.finish(words_for_end(None if has_left else code, await side.last_words()))
            for task in (*ends, attending):
                task.cancel()
            await asyncio.wait((*ends, attending))
            await side.close()
        if not reading.cancelled() and (problem := reading.exception()) is not None:
            await _refuse(client, f"The guarded server did not start again: {str(problem) or type(problem).__name__}")
        return relay.handshake

    async def _until_idle(self, relay: Relay) -> None:
        quiet = 0
        while quiet < _LOOKS_WHILE_IDLE:
            moves = relay.moves
            await asyncio.sleep(self._idle_seconds / _LOOKS_WHILE_IDLE)
            quiet = 0 if relay.is_busy or moves != relay.moves else quiet + 1


async def _read_client(relay: Relay, handshake: JsonObject | None) -> None:
    if handshake is not None:
        async with asyncio.timeout(_SECONDS_FOR_HANDSHAKE):
            await relay.server.ask("initialize", handshake)
        relay.server.send(messages.notification("notifications/initialized", {}))
    await relay.read_client()


async def _refuse(client: "_Ahead", reason: str) -> None:
    """Reply to the pending message with an error, if it is a request."""
    received = await client.receive()
    message = messages.read(received.body) if received is not None and isinstance(received.body, bytes) else None
    if received is not None and isinstance(message, Request):
        received.channel.reply(messages.error_reply(message.id, CONNECTION_CLOSED, reason), CONNECTION_CLOSED)


class _Ahead(Transport):
    """A transport whose next message can be awaited without taking it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._next: Received | None = None
        self._has_ended = False

    async def next_one(self) -> Received | None:
        """None once the client's input has ended or its connection is closed."""
        if self._next is None and not self._has_ended:
            try:
                self._next = await self._transport.receive()
            except TransportClosed:
                self._next = None
            self._has_ended = self._next is None
        return self._next

    def has(self, received: Received) -> bool:
        return self._next is received

    async def receive(self) -> Received | None:
        taken, self._next = await self.next_one(), None
        return taken

    def send(self, body: bytes) -> None:
        self._transport.send(body)

    async def flush(self) -> None:
        with suppress(TransportClosed):
            await self._transport.flush()


# ---------------------------------------------------------------------------------------------------------------------
# Limits of callers


class LimitedClient(Transport):
    """Answers calls over the caller's limits, and passes everything else on."""

    def __init__(self, client: Transport, caller: str, limits: CallerLimits, usage: UsageBook) -> None:
        self._client = client
        self._caller = caller
        self._limits = limits
        self._usage = usage
        self._taking: asyncio.Future[Received | None] | None = None

    async def receive(self) -> Received | None:
        # Counting may take a moment. If the reader ends meanwhile, the call goes to the next one.
        taking = self._taking = self._taking or asyncio.ensure_future(self._take())
        await asyncio.wait({taking})
        self._taking = None
        return taking.result()

    async def _take(self) -> Received | None:
        while (received := await self._client.receive()) is not None:
            message = messages.read(received.body) if isinstance(received.body, bytes) else None
            if not isinstance(message, Request) or message.method != messages.CALL:
                return received
            begun = await self._usage.begin(self._caller, self._limits)
            if not isinstance(begun, OverLimit):
                return received._replace(channel=_CountedChannel(received.channel, begun, self._usage))
            result = tool_error(message.params, begun.sentence)
            received.channel.reply(messages.result_reply(message.id, result))
        return None

    def send(self, body: bytes) -> None:
        self._client.send(body)

    async def flush(self) -> None:
        await self._client.flush()


class _CountedChannel(Channel):
    """Reports the end of the call to the usage book, once."""

    _ending: "set[asyncio.Future[None]]" = set()  # noqa: RUF012 - keeps the tasks of all channels until they are done

    def __init__(self, channel: Channel, call_id: str, usage: UsageBook) -> None:
        self._channel = channel
        self._call_id: str | None = call_id
        self._usage = usage

    def send(self, body: bytes) -> None:
        self._channel.send(body)

    def reply(self, body: bytes, error_code: int | None = None) -> None:
        self._end()
        self._channel.reply(body, error_code)

    def withdraw(self) -> None:
        self._end()
        self._channel.withdraw()

    def _end(self) -> None:
        if self._call_id is not None:
            task = asyncio.ensure_future(self._usage.end(self._call_id))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            self._call_id = None
