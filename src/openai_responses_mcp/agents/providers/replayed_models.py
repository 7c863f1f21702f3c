"""Models that ask no provider: one makes the calls that a caller requested, one repeats a saved reply."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from agents import Model, ModelResponse, TResponseInputItem, Usage
from agents.items import TResponseOutputItem, TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from openai_responses_mcp.gate.json_values import JsonObject, OwnJson

NO_TOKENS = ResponseUsage(
    input_tokens=0,
    output_tokens=0,
    total_tokens=0,
    input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
    output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
)


def message(text: str, item_id: str = "msg_standin") -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id=item_id, content=[content], role="assistant", status="completed", type="message")


def function_call(call_id: str, name: str, args: JsonObject | str) -> ResponseFunctionToolCall:
    arguments = args if isinstance(args, str) else json.dumps(args)
    return ResponseFunctionToolCall(call_id=call_id, name=name, arguments=arguments, type="function_call", id=call_id)


def completed(
    output: Sequence[TResponseOutputItem], response_id: str = "resp_standin", usage: ResponseUsage | None = NO_TOKENS
) -> ResponseCompletedEvent:
    response = Response(
        id=response_id,
        created_at=0,
        model="standin",
        object="response",
        output=list(output),
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
        usage=usage,
    )
    return ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


class RequestedCallsModel(Model):
    """Replies with the calls, then with their results as the final text."""

    def __init__(self, calls: Sequence[ResponseFunctionToolCall]) -> None:
        self._calls = list(calls)

    async def get_response(
        self, system_instructions: str | None, input: str | list[TResponseInputItem], *args: Any, **options: Any
    ) -> ModelResponse:
        items: Sequence[object] = input
        results: list[OwnJson] = [
            item for item in items if isinstance(item, dict) and item.get("type") == "function_call_output"
        ]
        done = {item["call_id"] for item in results}
        if self._calls and not any(call.call_id in done for call in self._calls):
            return ModelResponse(output=list(self._calls), usage=Usage(), response_id=None)
        mine = [item for item in results if not self._calls or item["call_id"] in {c.call_id for c in self._calls}]
        outputs = [item["output"] for item in mine]
        text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in outputs)
        return ModelResponse(output=[message(text)], usage=Usage(), response_id=None)

    async def stream_response(
        self, system_instructions: str | None, input: str | list[TResponseInputItem], *args: Any, **options: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        yield completed((await self.get_response(system_instructions, input)).output)


class RepeatedModel(Model):
    """Repeats the reply that was given before the run was saved. After that the real model is asked."""

    def __init__(self, reply: ModelResponse, rest: Callable[[], Model]) -> None:
        self._reply: ModelResponse | None = reply
        self._rest = rest

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        if self._reply is not None:
            reply, self._reply = self._reply, None
            return reply
        return await self._rest().get_response(*args, **options)

    async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[TResponseStreamEvent]:
        if self._reply is not None:
            reply, self._reply = self._reply, None
            # Its usage was counted when it was first given.
            yield completed(reply.output, reply.response_id or "resp_standin", usage=None)
            return
        async for event in self._rest().stream_response(*args, **options):
            yield event
