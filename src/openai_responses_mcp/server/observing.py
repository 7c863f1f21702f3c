"""A caller that tells an observer of each call: when it starts, and how it ends."""

from openai_responses_mcp.domain.models import CallFailure, ObservedCall
from openai_responses_mcp.domain.ports import CallObserver
from openai_responses_mcp.server.calling import Caller, Send
from openai_responses_mcp.server.clients import Client
from openai_responses_mcp.server.jsonrpc import JsonObject, Request
from openai_responses_mcp.server.tasks import Tasks
from openai_responses_mcp.server.tools import Tool

# How a client names the trace that its call belongs to.
_TRACE_KEYS = ("traceparent", "tracestate")


class ObservedCaller(Caller):
    def __init__(self, caller: Caller, observer: CallObserver) -> None:
        self._caller = caller
        self._observer = observer

    @property
    def tasks(self) -> Tasks:
        return self._caller.tasks

    async def call(self, tool: Tool, request: Request, client: Client, send: Send) -> JsonObject:
        call = ObservedCall(tool.name, request.id, client.era.revision, _trace_of(request))
        with self._observer.observed(call) as failed:
            reply = await self._caller.call(tool, request, client, send)
            failure = _failure_in(reply)
            if failure is not None:
                failed(failure)
            return reply


def _trace_of(request: Request) -> dict[str, str]:
    meta = request.params.get("_meta")
    named = {key: meta.get(key) for key in _TRACE_KEYS} if isinstance(meta, dict) else {}
    return {key: value for key, value in named.items() if isinstance(value, str)}


def _failure_in(reply: JsonObject) -> CallFailure | None:
    error = reply.get("error")
    if error is not None:
        return CallFailure(str(error["code"]), error["message"], error["code"])
    return CallFailure("tool_error") if reply["result"].get("isError") else None
