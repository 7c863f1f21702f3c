"""Calls within the limits of their caller. One over a limit gets a result, in every era, because a model reads results."""

from openai_responses_mcp.domain.jsonrpc import JsonObject, Request
from openai_responses_mcp.domain.usage import CallerLimits, OverLimit, UsageBook
from openai_responses_mcp.server.calling import Caller, Send
from openai_responses_mcp.server.clients import CallingClient
from openai_responses_mcp.server.jsonrpc import result_message
from openai_responses_mcp.server.tasks import Tasks
from openai_responses_mcp.server.tool_results import failed_tool_result, tokens_in
from openai_responses_mcp.server.tools import Tool


class LimitedCaller(Caller):
    def __init__(self, caller: Caller, limits: CallerLimits, usage: UsageBook) -> None:
        self._caller = caller
        self._limits = limits
        self._usage = usage

    @property
    def tasks(self) -> Tasks:
        return self._caller.tasks

    async def call(self, tool: Tool, request: Request, client: CallingClient, send: Send) -> JsonObject:
        begun = await self._usage.begin(client.caller, self._limits)
        if isinstance(begun, OverLimit):
            return result_message(request.id, client.era.result(failed_tool_result(begun.sentence)))
        tokens = 0
        try:
            reply = await self._caller.call(tool, request, client, send)
            tokens = tokens_in(reply.get("result") or {})
            return reply
        finally:
            await self._usage.end(begun, tokens)


def maybe_limited(caller: Caller, limits: CallerLimits, usage: UsageBook) -> Caller:
    return caller if limits == CallerLimits() else LimitedCaller(caller, limits, usage)
