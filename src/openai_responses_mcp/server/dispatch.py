"""Handles each message: a table of methods that are answered at once, and an asyncio task for each longer call.

Everything runs on one event loop. Each request gets exactly one reply, a cancelled call none: whichever of its task and
its cancellation first removes it from the calls in flight decides. A connection reads messages to the end of its input,
then finishes the calls in flight.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from openai_responses_mcp.domain.cancellation import Call, CallsInFlight
from openai_responses_mcp.domain.errors import CallInFlight, TransportClosed
from openai_responses_mcp.domain.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    BadMessage,
    JsonObject,
    Notification,
    Request,
    is_id,
)
from openai_responses_mcp.domain.ports import Channel, FramingFault, Logger, Received, Transport
from openai_responses_mcp.server.eras import (
    ENVELOPE_REVISION,
    HANDSHAKE_REVISION,
    SERVER_INFO,
    TASKS_EXTENSION,
    CallingClient,
    ClientOfConnection,
    EnvelopeFault,
    HandOver,
    era_of,
)
from openai_responses_mcp.server.jsonrpc import (
    MISSING_CLIENT_CAPABILITY,
    decode,
    encode,
    error_message,
    result_message,
)
from openai_responses_mcp.server.tools import RESULT_TOOL, TOOLS, Tool

if TYPE_CHECKING:
    # Loaded after the first replies, or with the first call.
    from openai_responses_mcp.server.calling import Caller

# The process has a second to end, and other things to do in it.
LONGEST_ABORT_SECONDS = 0.7

INSTRUCTIONS = (
    "Answers questions with sources, searching the web when needed. Use answer for most questions, answer_detailed for"
    " complex ones that need research, answer_quick for simple lookups. Pass previous_response_id to continue a"
    " conversation."
)
_CAPABILITIES: JsonObject = {"tools": {}}
_TASKS: JsonObject = {"extensions": {TASKS_EXTENSION: {}}}

# Gets the caller, which is loaded late, and a function that sends progress.
Work = Callable[["Caller", Callable[[JsonObject], None]], Awaitable[JsonObject]]


class Dispatcher:
    """`handshakes` are the revisions that `initialize` accepts; to any other it answers with the last one."""

    def __init__(
        self,
        calls: CallsInFlight,
        logger: Logger,
        tool_names: Sequence[str],
        load_caller: "Callable[[], Awaitable[Caller]]",
        hand_over: HandOver,
        handshakes: Sequence[str] = (HANDSHAKE_REVISION,),
    ) -> None:
        self._calls = calls
        self._logger = logger
        self._tools = {name: TOOLS[name] for name in tool_names}
        self._load_caller = load_caller
        self._client = ClientOfConnection(hand_over, tuple(tool_names))
        self._handshakes = tuple(handshakes)
        self._tasks: set[asyncio.Task[None]] = set()
        self._methods: dict[str, Callable[[Request, CallingClient], JsonObject]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda request, client: {},
            "tools/list": self._list_tools,
        }
        self._slow_methods: dict[str, Callable[[Request, CallingClient, Channel], None]] = {
            "tools/call": self._start_call,
            "tasks/get": self._start_on_task,
            "tasks/cancel": self._start_on_task,
            "tasks/update": self._start_on_task,
        }

    def handle(self, received: Received) -> None:
        """Answer the message, or start a call. Never raises."""
        body, channel = received.body, received.channel
        if isinstance(body, FramingFault):
            _reply(channel, error_message(None, INVALID_REQUEST, f"Invalid request: {body.reason}"))
            return
        incoming = decode(body)
        if isinstance(incoming, Request):
            self._handle_request(incoming, channel, received.caller)
        elif isinstance(incoming, Notification):
            self._handle_notification(incoming)
        elif isinstance(incoming, BadMessage):
            _reply(channel, error_message(incoming.id, incoming.code, incoming.message))

    async def drain(self) -> None:
        """Wait until every call in flight has been answered."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def abort(self) -> None:
        """Drop every call in flight, unanswered."""
        self._calls.cancel_all("the server is stopping")

    def _handle_request(self, request: Request, channel: Channel, caller: str) -> None:
        named = {"caller": caller} if caller else {}
        self._logger.debug("recv", method=request.method, id=request.id, **named)
        try:
            self._calls.require_free(request.id)
        except CallInFlight as exc:
            _reply(channel, error_message(request.id, INVALID_REQUEST, f"Invalid request: {exc}"))
            return
        era = era_of(request)
        if isinstance(era, EnvelopeFault):
            _reply(channel, error_message(request.id, era.code, era.message, era.data))
            return
        if request.method not in era.methods:
            _reply(channel, error_message(request.id, METHOD_NOT_FOUND, "Unknown method"))
            return
        client = self._client.seen_in(request, era, caller)
        if request.method in self._slow_methods:
            self._slow_methods[request.method](request, client, channel)
        else:
            _reply(channel, result_message(request.id, self._methods[request.method](request, client)))

    def _handle_notification(self, notification: Notification) -> None:
        self._logger.debug("recv", method=notification.method)
        if notification.method != "notifications/cancelled":
            return
        call_id = notification.params.get("requestId")
        reason = notification.params.get("reason")
        # Without this, True and 1.0 would find the call with the id 1.
        if is_id(call_id):
            self._calls.cancel(call_id, reason if isinstance(reason, str) else None)

    def _initialize(self, request: Request, client: CallingClient) -> JsonObject:
        wanted = request.params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in self._handshakes else self._handshakes[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": SERVER_INFO,
            "instructions": INSTRUCTIONS,
        }

    def _discover(self, request: Request, client: CallingClient) -> JsonObject:
        payload = {
            "supportedVersions": [ENVELOPE_REVISION, *self._handshakes],
            "capabilities": {**_CAPABILITIES, **_TASKS},
            "instructions": INSTRUCTIONS,
        }
        return client.era.result(payload, is_cacheable=True)

    def _list_tools(self, request: Request, client: CallingClient) -> JsonObject:
        tools = self._tools_for(client).values()
        return client.era.result({"tools": [tool.described() for tool in tools]}, is_cacheable=True)

    def _tools_for(self, client: CallingClient) -> dict[str, Tool]:
        return {**self._tools, RESULT_TOOL: TOOLS[RESULT_TOOL]} if client.may_fetch else self._tools

    def _start_call(self, request: Request, client: CallingClient, channel: Channel) -> None:
        tool_name = request.params.get("name")
        tool = self._tools_for(client).get(tool_name) if isinstance(tool_name, str) else None
        if tool is None:
            _reply(channel, error_message(request.id, client.era.unknown_tool_code, "Unknown tool"))
            return
        self._start(request, channel, lambda caller, send: caller.call(tool, request, client, send))

    def _start_on_task(self, request: Request, client: CallingClient, channel: Channel) -> None:
        if client.takes_tasks:
            self._start(request, channel, lambda caller, _: caller.tasks.handle(request, client.era))
            return
        message = f"{request.method} needs a client that declares {TASKS_EXTENSION}"
        data = {"requiredCapabilities": _TASKS}
        _reply(channel, error_message(request.id, MISSING_CLIENT_CAPABILITY, message, data))

    def _start(self, request: Request, channel: Channel, work: Work) -> None:
        task: asyncio.Task[None]

        def abort() -> None:
            task.cancel()
            channel.withdraw()

        call = self._calls.start(request.id, abort)
        task = asyncio.create_task(self._run_call(call, channel, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_call(self, call: Call, channel: Channel, work: Work) -> None:
        def send_meanwhile(message: JsonObject) -> None:
            if call in self._calls:
                channel.send(encode(message))

        failure = None
        try:
            caller = await self._load_caller()
            reply = await work(caller, send_meanwhile)
            body = encode(reply)
        except Exception as exc:
            failure = exc
            message = "Internal error; the log on stderr has the details"
            reply = error_message(call.id, INTERNAL_ERROR, message)
            body = encode(reply)
        if self._calls.finish(call):
            channel.reply(body, _error_code_in(reply))
        if failure is not None:
            # After the reply, because logging may fail for the same reason.
            self._logger.error("call failed unexpectedly", traceback="".join(traceback.format_exception(failure)))


def _reply(channel: Channel, message: JsonObject) -> None:
    channel.reply(encode(message), _error_code_in(message))


def _error_code_in(message: JsonObject) -> int | None:
    error = message.get("error")
    return None if error is None else error["code"]


async def _nothing() -> None:
    """For one of many connections: their process settles for all."""


class Connection:
    """One client. `is_ending` is set at the end of its input: from then on no request to the API is retried.

    `settle` waits briefly until aborted calls are cancelled at the API and telemetry is sent.
    """

    def __init__(
        self,
        transport: Transport,
        dispatcher: Dispatcher,
        is_ending: asyncio.Event | None = None,
        settle: Callable[[], Awaitable[object]] = _nothing,
    ) -> None:
        self._transport = transport
        self._dispatcher = dispatcher
        self._is_ending = is_ending or asyncio.Event()
        self._settle = settle

    async def serve(self) -> None:
        """Returns when every request is answered, or at once if the client disconnects."""
        try:
            while (received := await self._transport.receive()) is not None:
                self._dispatcher.handle(received)
            self._is_ending.set()
            await self._dispatcher.drain()
            await self._transport.flush()
            await self._settle()
        except TransportClosed:
            await self.abort()

    async def abort(self) -> None:
        """Drop every call in flight, unanswered, and cancel it at the API if there is time.

        Earlier replies are still written, so that the client does not get half a message.
        """
        self._dispatcher.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_ABORT_SECONDS):
                await self._dispatcher.drain()
                await asyncio.gather(self._settle(), self._flush())

    async def _flush(self) -> None:
        with suppress(TransportClosed):
            await self._transport.flush()
