"""A client within the limits of its caller: a call over one is answered here and never reaches the relay."""

import asyncio

from openai_responses_mcp.domain.jsonrpc import Request
from openai_responses_mcp.domain.ports import Channel, Received, Transport
from openai_responses_mcp.domain.usage import CallerLimits, OverLimit, UsageBook
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.client_ways import has_envelope


class LimitedClient(Transport):
    def __init__(self, client: Transport, caller: str, limits: CallerLimits, usage: UsageBook) -> None:
        self._client = client
        self._caller = caller
        self._limits = limits
        self._usage = usage

    async def receive(self) -> Received | None:
        while (received := await self._client.receive()) is not None:
            message = messages.read(received.body) if isinstance(received.body, bytes) else None
            if not isinstance(message, Request) or message.method != messages.CALL:
                return received
            begun = await self._usage.begin(self._caller, self._limits)
            if not isinstance(begun, OverLimit):
                return received._replace(channel=_CountedChannel(received.channel, begun, self._usage))
            stamp = {"resultType": "complete"} if has_envelope(message.params) else {}
            text = {"type": "text", "text": begun.sentence}
            received.channel.reply(messages.result_reply(message.id, {**stamp, "content": [text], "isError": True}))
        return None

    def send(self, body: bytes) -> None:
        self._client.send(body)

    async def flush(self) -> None:
        await self._client.flush()


class _CountedChannel(Channel):
    """Says once that the call has ended."""

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
