"""The relay between a client and the guarded server.

Messages pass as they are, byte for byte. Two methods are looked at: a `tools/call` goes to the keeper of calls, which
passes it on or refuses it, and what a `tools/list` reply says is remembered. What is not a message is not passed on,
and a reply is passed on only if it answers an open request. The keeper is loaded after the first messages.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    BadMessage,
    Notification,
    Reply,
    Request,
)
from openai_responses_mcp.domain.ports import Channel, FramingFault, Transport
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.messages import ClientWays
from openai_responses_mcp.guard.peers import Listings, Opened, Peer

if TYPE_CHECKING:
    from openai_responses_mcp.gate.reasons import Reason
    from openai_responses_mcp.guard.call_keeper import CallKeeper
    from openai_responses_mcp.guard.given_replies import GivenReplies

MOST_OPEN_AT_SERVER = 20_000
MOST_OPEN_AT_CLIENT = 1_000
CONNECTION_CLOSED = -32000

_CANCELLED = "notifications/cancelled"
_LIST_CHANGED = "notifications/tools/list_changed"
_LISTEN = "subscriptions/listen"
_SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_MOST_COMPLAINTS = 20
_ROOTS = "roots/list"
_SECONDS_BETWEEN_LOOKS = 0.05
_SECONDS_TO_SETTLE = 3.0
# The first call waits until everything is loaded, on a machine that may have other things to do.
_MOST_SECONDS_TO_PASS_ON = 10.0


class Relay:
    def __init__(
        self,
        client: Transport,
        server: Transport,
        load_keeper: Callable[["Relay"], Awaitable["CallKeeper"]],
        tell: Callable[[str], object],
        replies: "GivenReplies | None" = None,
        ways: ClientWays | None = None,
    ) -> None:
        """`tell` writes a line for people. `ways` are known if the client had another server before this one."""
        self.client = Peer(client, MOST_OPEN_AT_CLIENT)
        self.server = Peer(server, MOST_OPEN_AT_SERVER)
        self.listings = Listings()
        self.ways = ways or ClientWays()
        self.handshake: messages.JsonObject | None = None
        self.was_asked = asyncio.Event()
        self._load_keeper = load_keeper
        self._keeper: CallKeeper | None = None
        self._tell = tell
        self._replies = replies
        self._complaints = 0
        self._tasks: dict[Opened, asyncio.Task[None]] = {}
        # Grows with each message of the client and each decision.
        self.moves = 0
        self._has_sent_roots = False
        self._on_roots: Callable[[], object] = lambda: None

    def when_roots_are_sent(self, tell: Callable[[], object]) -> None:
        """Call `tell` once the client has sent its roots to the server, also if it has done so already."""
        self._on_roots = tell
        if self._has_sent_roots:
            tell()

    def _note_roots(self) -> None:
        self._has_sent_roots = True
        self._on_roots()

    # -----------------------------------------------------------------------------------------------------------------
    # From the client

    async def read_client(self) -> None:
        """Until its input ends or it is gone."""
        with suppress(TransportClosed):
            while (received := await self.client.transport.receive()) is not None:
                self._from_client(_read(received.body), received.channel)
                await _drained(self.server)
                self.moves += 1

    def _from_client(self, message: Request | Notification | Reply | BadMessage, channel: Channel) -> None:
        if isinstance(message, Request):
            self._request_from_client(message, channel)
        elif isinstance(message, Notification):
            self._notification_from_client(message)
        elif isinstance(message, Reply):
            if not self.client.is_answer_to_guard(message) and (opened := self.client.answered(message.id)):
                if opened.request.method == _ROOTS:
                    self._note_roots()
                opened.channel.reply(message.wire, _error_code(message))
        elif (reply := _as_reply(message, "client")) is not None:
            self._from_client(reply, channel)
        else:
            channel.reply(messages.error_reply(message.id, message.code, message.message), message.code)

    def _request_from_client(self, request: Request, channel: Channel) -> None:
        self.was_asked.set()
        problem = self.server.problem_with(request)
        if problem:
            channel.reply(messages.error_reply(request.id, INVALID_REQUEST, problem), INVALID_REQUEST)
        elif request.method == messages.CALL:
            answers = messages.object_in(request.params.get("inputResponses")).values()
            if any("roots" in messages.object_in(answer) for answer in answers):
                self._note_roots()
            held = self.server.hold(request, channel)
            task = self._tasks[held] = asyncio.create_task(self._keep(held))
            task.add_done_callback(lambda _: self._let_go(held))
        else:
            self.server.pass_on(request, channel)

    def _notification_from_client(self, message: Notification) -> None:
        cancelled = messages.cancelled_id(message) if message.method == _CANCELLED else None
        opened = self.server.get(cancelled)
        if opened is None:
            self.server.send(message.wire)
            return
        self.server.close(opened.request.id)
        opened.channel.withdraw()
        if opened.is_held:
            # The server has never heard of this call.
            if task := self._tasks.get(opened):
                task.cancel()
        else:
            self.server.send(message.wire)
            self._give_up(opened, "cancelled by the client")

    def _let_go(self, held: Opened) -> None:
        del self._tasks[held]
        self.moves += 1

    async def _keep(self, held: Opened) -> None:
        try:
            if self._keeper is None:
                self._keeper = await self._load_keeper(self)
            await self._keeper.keep(held)
        except Exception as exc:  # A call that cannot be decided must not pass, and must be answered.
            self._tell(f"a call could not be decided ({type(exc).__name__}: {exc})")
            if held.is_held:
                text = "The guard could not decide on this call; its stderr says why"
                self.server.refuse(held, INTERNAL_ERROR, text)

    # -----------------------------------------------------------------------------------------------------------------
    # From the server

    async def read_server(self) -> None:
        """Until its output ends."""
        with suppress(TransportClosed):
            while (received := await self.server.transport.receive()) is not None:
                self._from_server(_read(received.body), received.channel)
                await _drained(self.client)

    def _from_server(self, message: Request | Notification | Reply | BadMessage, channel: Channel) -> None:
        if isinstance(message, Request):
            self._request_from_server(message, channel)
        elif isinstance(message, Notification):
            self._notification_from_server(message)
        elif isinstance(message, Reply):
            self._reply_from_server(message)
        elif (reply := _as_reply(message, "guarded server")) is not None:
            self._from_server(reply, channel)
        else:
            self._complain(f"the server sent something that is not a message ({message.message})")
            if message.id is not None:
                self.server.send(messages.error_reply(message.id, message.code, message.message))

    def _request_from_server(self, request: Request, channel: Channel) -> None:
        """The server does not say which call it asks for. The newest is the best guess, and the client listens there."""
        problem = self.client.problem_with(request)
        if problem:
            self.server.send(messages.error_reply(request.id, INVALID_REQUEST, problem))
        else:
            newest = self.server.newest()
            self.client.pass_on(request, channel, newest.channel if newest else None)

    def _notification_from_server(self, message: Notification) -> None:
        if message.method == _LIST_CHANGED:
            self.listings.note_change()
        cancelled = messages.cancelled_id(message) if message.method == _CANCELLED else None
        if cancelled is not None and self.client.close(cancelled) is None:
            listening = self.server.get(cancelled)
            if listening is not None and listening.request.method == _LISTEN:
                self.server.close(cancelled)
        of_call = self.server.with_progress_token(message.params.get("progressToken"))
        (of_call.channel if of_call else self.client).send(message.wire)

    def _reply_from_server(self, reply: Reply) -> None:
        if self.server.is_answer_to_guard(reply):
            return
        opened = self.server.answered(reply.id)
        if opened is None:
            self._complain("the server sent a reply to no open request, or a second one")
            return
        given, about_result = self._given(opened.request, reply)
        if opened.request.method == messages.LIST:
            self.listings.note(opened.request.params, given.result)
        elif opened.request.method == "initialize":
            self.ways.note_initialize(opened.request, reply.result)
            self.handshake = opened.request.params if reply.error is None else self.handshake
        opened.channel.reply(messages.with_note(given, opened.note), _error_code(given))
        if self._keeper is None:
            return
        if opened.request.method == messages.CALL:
            self._keeper.answered(opened, reply, about_result)
        elif about_result is not None:
            self._keeper.task_answered(opened.request.params.get("taskId"), about_result)

    def _given(self, request: Request, reply: Reply) -> "tuple[Reply, Reason | None]":
        """The reply as the client gets it, and the reason for a change."""
        if self._replies is None:
            return reply, None
        return self._replies.given(request, reply, self.listings.newest(request.params.get("name")))

    def tell_of_other_tools(self) -> None:
        """Tell the client that its list has changed, if the policy file hides other tools now than before."""
        if self._replies is None or not self._replies.hides_others:
            return
        if self.ways.server_tells_of_tools:
            self.client.send(messages.notification(_LIST_CHANGED, {}))
        for opened in self.server.open_requests:
            wanted = messages.object_in(opened.request.params.get("notifications"))
            if opened.request.method == _LISTEN and wanted.get("toolsListChanged") is True:
                params: messages.JsonObject = {"_meta": {_SUBSCRIPTION_KEY: opened.request.id}}
                opened.channel.send(messages.notification(_LIST_CHANGED, params))

    # -----------------------------------------------------------------------------------------------------------------
    # The end

    async def passed_on(self, reading: "asyncio.Task[None]", patience_seconds: Callable[[], float]) -> bool:
        """Wait until all messages of the client are passed on and all calls that need no person are decided.

        False if there is no progress: the server does not read, or does not answer `tools/list`.
        """
        clock = asyncio.get_running_loop().time
        moves, moved_at = self.moves, clock()
        began = moved_at
        while not reading.done() or self._undecided:
            waits_for_server = not reading.done() or self.server.owes_the_guard
            if moves != self.moves or not waits_for_server:
                moves, moved_at = self.moves, clock()
            if clock() - moved_at > patience_seconds() or clock() - began > _MOST_SECONDS_TO_PASS_ON:
                return False
            await asyncio.wait({reading, *self._undecided}, timeout=_SECONDS_BETWEEN_LOOKS)
        return True

    @property
    def is_busy(self) -> bool:
        return bool(self.server.open_requests)

    @property
    def _undecided(self) -> "list[asyncio.Task[None]]":
        return [task for opened, task in self._tasks.items() if not opened.waits_for_human]

    async def finish(self, reason: str) -> None:
        """The server sends nothing more: answer all open requests of the client with an error."""
        tasks = list(self._tasks.values())
        for opened in self.server.close_all():
            if not opened.is_held:
                self._give_up(opened, reason)
            opened.channel.reply(messages.error_reply(opened.request.id, CONNECTION_CLOSED, reason), CONNECTION_CLOSED)
        self.client.close_all()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
        if self._keeper is not None:
            try:
                await asyncio.wait_for(self._keeper.settle(), _SECONDS_TO_SETTLE)
            except TimeoutError:
                self._tell("the store did not take the last records in time")

    def _give_up(self, opened: Opened, reason: str) -> None:
        if opened.request.method == messages.CALL and self._keeper is not None:
            self._keeper.given_up(opened, reason)

    def _complain(self, problem: str) -> None:
        """A server that floods must not fill the log."""
        self._complaints += 1
        if self._complaints <= _MOST_COMPLAINTS:
            last = "; further ones are not reported" if self._complaints == _MOST_COMPLAINTS else ""
            self._tell(f"{problem}; it was dropped{last}")


def _read(body: bytes | FramingFault) -> Request | Notification | Reply | BadMessage:
    if isinstance(body, FramingFault):
        return BadMessage(INVALID_REQUEST, f"Invalid request: {body.reason}")
    return messages.read(body)


def _error_code(reply: Reply) -> int | None:
    code = reply.error.get("code") if isinstance(reply.error, dict) else None
    return code if isinstance(code, int) else None


def _as_reply(bad: BadMessage, sender: str) -> Reply | None:
    """A reply that cannot be passed on still ends the wait for it."""
    if not bad.is_reply or bad.id is None:
        return None
    return messages.failed_reply(bad.id, INTERNAL_ERROR, f"The reply of the {sender} was unfit to pass")


async def _drained(peer: Peer) -> None:
    """If one side does not read, the other has to wait, so that nothing piles up here."""
    with suppress(TransportClosed):
        await peer.transport.flush()
