"""What arrives is handled here: a method table for what is answered at once, an asyncio task for what takes longer.

Everything runs on one event loop. Each request gets exactly one reply, a cancelled call none: whoever takes a call
out of the calls in flight first, its own task or a cancellation, decides.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from openai_responses_mcp.domain.cancellation import Call, CallsInFlight
from openai_responses_mcp.domain.errors import CallInFlight
from openai_responses_mcp.domain.ports import FramingFault, Logger, Transport
from openai_responses_mcp.server.clients import Client, ClientOfConnection, HandOver
from openai_responses_mcp.server.eras import (
    HANDSHAKE_REVISION,
    SERVER_INFO,
    SUPPORTED_REVISIONS,
    TASKS_EXTENSION,
    EnvelopeFault,
    era_of,
)
from openai_responses_mcp.server.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    BadMessage,
    JsonObject,
    Notification,
    Request,
    code_of,
    decode,
    encode,
    error_message,
    result_message,
)
from openai_responses_mcp.server.tools import RESULT_TOOL, TOOLS, Tool

if TYPE_CHECKING:
    # Loaded after the first replies, or with the first call.
    from openai_responses_mcp.server.calling import Caller

INSTRUCTIONS = (
    "Answers questions with sources, searching the web when needed. Use answer for most questions, answer_detailed for"
    " complex ones that need research, answer_quick for simple lookups. Pass previous_response_id to continue a"
    " conversation."
)
_CAPABILITIES: JsonObject = {"tools": {}}
_TASKS: JsonObject = {"extensions": {TASKS_EXTENSION: {}}}

# Takes what is loaded after the first replies, and a function that sends what happens meanwhile.
Work = Callable[["Caller", Callable[[JsonObject], None]], Awaitable[JsonObject]]


class Dispatcher:
    def __init__(
        self,
        transport: Transport,
        calls: CallsInFlight,
        logger: Logger,
        tool_names: Sequence[str],
        load_caller: "Callable[[], Awaitable[Caller]]",
        hand_over: HandOver,
    ) -> None:
        self._transport = transport
        self._calls = calls
        self._logger = logger
        self._tools = {name: TOOLS[name] for name in tool_names}
        self._load_caller = load_caller
        self._client = ClientOfConnection(hand_over, tuple(tool_names))
        self._tasks: set[asyncio.Task[None]] = set()
        self._methods: dict[str, Callable[[Client], JsonObject]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            "tools/list": self._list_tools,
        }
        self._slow_methods: dict[str, Callable[[Request, Client], None]] = {
            "tools/call": self._start_call,
            "tasks/get": self._start_on_task,
            "tasks/cancel": self._start_on_task,
            "tasks/update": self._start_on_task,
        }

    def handle(self, arrived: bytes | FramingFault) -> None:
        """Answer, start a call, or note that nothing is to be done; never raises."""
        incoming = self._decoded(arrived)
        if isinstance(incoming, Request):
            self._handle_request(incoming)
        elif isinstance(incoming, Notification):
            self._handle_notification(incoming)
        elif isinstance(incoming, BadMessage):
            self._send(error_message(incoming.id, incoming.code, incoming.message))

    async def drain(self) -> None:
        """Wait until every call in flight has been answered."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def abort(self) -> None:
        """Drop every call in flight, unanswered."""
        self._calls.cancel_all("the server is stopping")

    def _decoded(self, arrived: bytes | FramingFault) -> Request | Notification | BadMessage | None:
        if isinstance(arrived, FramingFault):
            return BadMessage(INVALID_REQUEST, f"Invalid request: {arrived.reason}")
        return decode(arrived)

    def _handle_request(self, request: Request) -> None:
        self._logger.debug("recv", method=request.method, id=request.id)
        try:
            self._calls.require_free(request.id)
        except CallInFlight as exc:
            self._send(error_message(request.id, code_of(exc), f"Invalid request: {exc}"))
            return
        era = era_of(request)
        if isinstance(era, EnvelopeFault):
            self._send(error_message(request.id, era.code, era.message, era.data))
        elif request.method not in era.methods:
            self._send(error_message(request.id, METHOD_NOT_FOUND, "Unknown method"))
        else:
            self._serve(request, self._client.seen_in(request, era))

    def _serve(self, request: Request, client: Client) -> None:
        if request.method in self._slow_methods:
            self._slow_methods[request.method](request, client)
        else:
            self._send(result_message(request.id, self._methods[request.method](client)))

    def _handle_notification(self, notification: Notification) -> None:
        self._logger.debug("recv", method=notification.method)
        if notification.method != "notifications/cancelled":
            return
        call_id = notification.params.get("requestId")
        reason = notification.params.get("reason")
        # True and 1.0 would find the call with the id 1.
        if isinstance(call_id, int | str) and not isinstance(call_id, bool):
            self._calls.cancel(call_id, reason if isinstance(reason, str) else None)

    def _initialize(self, client: Client) -> JsonObject:
        return {
            "protocolVersion": HANDSHAKE_REVISION,
            "capabilities": _CAPABILITIES,
            "serverInfo": SERVER_INFO,
            "instructions": INSTRUCTIONS,
        }

    def _discover(self, client: Client) -> JsonObject:
        payload = {
            "supportedVersions": list(SUPPORTED_REVISIONS),
            "capabilities": {**_CAPABILITIES, **_TASKS},
            "instructions": INSTRUCTIONS,
        }
        return client.era.result(payload, is_cacheable=True)

    def _ping(self, client: Client) -> JsonObject:
        return {}

    def _list_tools(self, client: Client) -> JsonObject:
        tools = self._tools_for(client).values()
        return client.era.result({"tools": [tool.described() for tool in tools]}, is_cacheable=True)

    def _tools_for(self, client: Client) -> dict[str, Tool]:
        return {**self._tools, RESULT_TOOL: TOOLS[RESULT_TOOL]} if client.may_fetch else self._tools

    def _start_call(self, request: Request, client: Client) -> None:
        tool_name = request.params.get("name")
        tool = self._tools_for(client).get(tool_name) if isinstance(tool_name, str) else None
        if tool is None:
            self._send(error_message(request.id, client.era.unknown_tool_code, "Unknown tool"))
            return
        self._start(request, lambda caller, send: caller.call(tool, request, client, send))

    def _start_on_task(self, request: Request, client: Client) -> None:
        if client.takes_tasks:
            self._start(request, lambda caller, _: caller.tasks.handle(request, client.era))
            return
        message = f"{request.method} needs a client that declares {TASKS_EXTENSION}"
        self._send(error_message(request.id, MISSING_CLIENT_CAPABILITY, message, {"requiredCapabilities": _TASKS}))

    def _start(self, request: Request, work: Work) -> None:
        task: asyncio.Task[None]
        call = self._calls.start(request.id, lambda: task.cancel())
        task = asyncio.create_task(self._run_call(call, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_call(self, call: Call, work: Work) -> None:
        def send_meanwhile(message: JsonObject) -> None:
            if call in self._calls:
                self._send(message)

        failure = None
        try:
            caller = await self._load_caller()
            reply = encode(await work(caller, send_meanwhile))
        except Exception as exc:
            failure = exc
            message = "Internal error; the log on stderr has the details"
            reply = encode(error_message(call.id, INTERNAL_ERROR, message))
        if self._calls.finish(call):
            self._transport.send(reply)
        if failure is not None:
            # After the reply: what went wrong may keep the log from being written too.
            self._logger.error("call failed unexpectedly", traceback="".join(traceback.format_exception(failure)))

    def _send(self, message: JsonObject) -> None:
        self._transport.send(encode(message))
