"""The two sides of the relay, the open requests of each, and the tools that the server has listed.

A reply counts only when it answers an open request, once. The guard also sends requests of its own to both sides. Their
ids are random, and their replies never reach the other side.
"""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from openai_responses_mcp.domain.jsonrpc import Reply, Request, RequestId
from openai_responses_mcp.domain.ports import Channel, Transport
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.messages import JsonObject, JsonValue, has_envelope, progress_token_of

_MOST_LATE = 100


class PeerGone(Exception):
    """This side has ended and answers nothing any more."""


class AnsweredWithError(Exception):
    """The side answered the guard's own request with an error."""


class Opened:
    """A request of the other side that this side has to answer. One that is held has not been sent yet.

    `channel` leads back to the side that asked.
    """

    def __init__(self, request: Request, channel: Channel, *, is_held: bool = False) -> None:
        self.request = request
        self.channel = channel
        self.is_held = is_held
        self.waits_for_human = False
        # A text for the model, put before the reply.
        self.note = ""


class Peer:
    def __init__(self, transport: Transport, most_open: int) -> None:
        self.transport = transport
        self._most_open = most_open
        self._open: dict[RequestId, Opened] = {}
        self._by_token: dict[int | str, Opened] = {}
        self._asked: dict[RequestId, asyncio.Future[Reply]] = {}
        self._late: OrderedDict[RequestId, Callable[[JsonValue], object]] = OrderedDict()
        self._is_gone = False

    def send(self, wire: bytes) -> None:
        self.transport.send(wire)

    # -----------------------------------------------------------------------------------------------------------------
    # Requests of the other side

    def problem_with(self, request: Request) -> str:
        if request.id in self._open or request.id in self._asked:
            return "Invalid request: the id belongs to a request in flight"
        return "Too many requests are in flight" if len(self._open) >= self._most_open else ""

    def pass_on(self, request: Request, channel: Channel, by: Channel | None = None) -> None:
        """Send the request. `by` is a channel of this side, for a request that belongs to one of its own."""
        self._keep(Opened(request, channel))
        (by or self.transport).send(request.wire)

    def hold(self, request: Request, channel: Channel) -> Opened:
        """Keep the id for a request that may be sent later."""
        return self._keep(Opened(request, channel, is_held=True))

    def _keep(self, opened: Opened) -> Opened:
        self._open[opened.request.id] = opened
        token = progress_token_of(opened.request.params)
        if token is not None:
            self._by_token[token] = opened
        return opened

    def close(self, request_id: RequestId) -> Opened | None:
        """Returns the request if it was open."""
        opened = self._open.pop(request_id, None)
        token = None if opened is None else progress_token_of(opened.request.params)
        if token is not None and self._by_token.get(token) is opened:
            del self._by_token[token]
        return opened

    def release(self, held: Opened, wire: bytes) -> bool:
        """Send a held request. False if it was cancelled meanwhile."""
        if self._open.get(held.request.id) is not held:
            return False
        held.is_held = False
        self.send(wire)
        return True

    def answer(self, held: Opened, result: JsonObject) -> None:
        """Answer a held request in place of this side, unless it was cancelled meanwhile."""
        if self.close(held.request.id) is held:
            held.channel.reply(messages.result_reply(held.request.id, result))

    def refuse(self, held: Opened, code: int, reason: str) -> None:
        """As `answer`, with an error."""
        if self.close(held.request.id) is held:
            held.channel.reply(messages.error_reply(held.request.id, code, reason), code)

    def get(self, request_id: RequestId | None) -> Opened | None:
        return None if request_id is None else self._open.get(request_id)

    def with_progress_token(self, token: object) -> Opened | None:
        return self._by_token.get(token) if isinstance(token, str | int) else None

    def newest(self) -> Opened | None:
        """The open request that was sent last."""
        return next((opened for opened in reversed(self._open.values()) if not opened.is_held), None)

    @property
    def open_requests(self) -> list[Opened]:
        return list(self._open.values())

    def answered(self, request_id: RequestId) -> Opened | None:
        """The sent request that this answers. None for a reply to no open request."""
        opened = self._open.get(request_id)
        return None if opened is None or opened.is_held else self.close(request_id)

    @property
    def owes_the_guard(self) -> bool:
        """True while a request of the guard itself is unanswered."""
        return bool(self._asked)

    def close_all(self) -> list[Opened]:
        """Returns the requests that were open. Nothing can be asked here any more."""
        self._is_gone = True
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(PeerGone())
        left, self._open, self._by_token = list(self._open.values()), {}, {}
        return left

    # -----------------------------------------------------------------------------------------------------------------
    # Requests of the guard's own

    async def ask(
        self,
        method: str,
        params: JsonObject,
        by: Channel | None = None,
        late: Callable[[JsonValue], object] | None = None,
    ) -> JsonValue:
        """The result. Raises `AnsweredWithError` and `PeerGone`. Cancelling the wait cancels the request.

        `by` is a channel of this side, for a question about one of its own requests. `late` is called once with a
        result that comes after the cancellation.
        """
        if self._is_gone:
            raise PeerGone
        way = by or self.transport
        request_id = str(uuid.uuid4())
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = answer
        try:
            way.send(messages.request(request_id, method, params))
            reply = await answer
        except asyncio.CancelledError:
            way.send(messages.notification("notifications/cancelled", {"requestId": request_id}))
            if late is not None:
                self._late[request_id] = late
                if len(self._late) > _MOST_LATE:
                    self._late.popitem(last=False)
            raise
        finally:
            del self._asked[request_id]
        if reply.error is not None:
            raise AnsweredWithError(str(messages.object_in(reply.error).get("message", "")))
        return reply.result

    def is_answer_to_guard(self, reply: Reply) -> bool:
        """True if this answers a request of the guard itself, which then has its answer."""
        late = self._late.pop(reply.id, None)
        if late is not None:
            late(reply.result)
            return True
        answer = self._asked.get(reply.id)
        if answer is None:
            return False
        if not answer.done():
            answer.set_result(reply)
        return True


def tool_error(params: JsonObject, text: str) -> JsonObject:
    """A result of the tool, not an error of the protocol, so that the model can try something else."""
    stamp = {"resultType": "complete"} if has_envelope(params) else {}
    return {**stamp, "content": [{"type": "text", "text": text}], "isError": True}


# ---------------------------------------------------------------------------------------------------------------------
# The tools of the server: as the client was shown them, and as the guard itself has seen them since


class Listed(NamedTuple):
    """One tool. `shown` is what the client was given, `seen` what the guard itself has looked up after that."""

    shown: JsonObject | None
    seen: JsonObject | None

    @property
    def entry(self) -> JsonObject:
        """The newest."""
        entry = self.shown if self.seen is None else self.seen
        assert entry is not None  # noqa: S101 - one of them is there
        return entry


class Listings:
    """Entries as they came. They are checked when their tool is called."""

    def __init__(self) -> None:
        self._shown: dict[str, JsonObject] = {}
        self._coming: dict[str, JsonObject] = {}
        # None: the guard has not looked since the client was shown a whole list.
        self._seen: dict[str, JsonObject] | None = None
        self._newer: set[str] = set()
        self._ambiguous: set[str] = set()
        self._is_stale = False

    def note(self, params: JsonObject, result: JsonValue) -> None:
        """A page that the client was given. Tools that are gone are forgotten with the last page of a listing."""
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            return
        if params.get("cursor") is None:
            self._coming = {}
        self._take(result["tools"], self._coming)
        self._shown.update(self._coming)
        self._newer |= self._coming.keys()
        if not result.get("nextCursor"):
            self._shown, self._coming = self._coming, {}
            self._seen, self._is_stale = None, False

    def note_whole(self, entries: list[JsonValue]) -> None:
        """All pages, as the guard has asked for them itself."""
        found: dict[str, JsonObject] = {}
        self._take(entries, found)
        self._seen, self._newer, self._is_stale = found, set(), False

    def note_change(self) -> None:
        """The server says that its list has changed."""
        self._is_stale = True

    def get(self, name: str) -> Listed | None:
        """None if the tool is not listed, or the list may have changed."""
        if self._is_stale:
            return None
        shown = self._shown.get(name)
        if self._seen is None or name in self._newer:
            return None if shown is None else Listed(shown, None)
        seen = self._seen.get(name)
        return None if seen is None else Listed(shown, seen)

    def newest(self, name: JsonValue) -> JsonObject:
        """The last known entry, even if the list may have changed. Empty if the tool was never listed."""
        if not isinstance(name, str):
            return {}
        return (self._seen or {}).get(name) or self._shown.get(name) or {}

    def names(self) -> set[str]:
        return self._shown.keys() | (self._seen or {}).keys()

    def is_ambiguous(self, name: str) -> bool:
        return name in self._ambiguous

    def _take(self, entries: list[JsonValue], into: dict[str, JsonObject]) -> None:
        for entry in map(messages.object_in, entries):
            name = entry.get("name")
            if not isinstance(name, str):
                continue
            if name not in into:
                self._ambiguous.discard(name)
            elif into[name] != entry:
                self._ambiguous.add(name)
            into[name] = entry
