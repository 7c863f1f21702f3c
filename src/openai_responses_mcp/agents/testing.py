"""For tests of code that uses this library: a model that plays a script and records its requests."""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from agents import (
    AgentOutputSchemaBase,
    ItemHelpers,
    Model,
    ModelResponse,
    ModelSettings,
    Tool,
    TResponseInputItem,
    Usage,
)
from agents.items import TResponseOutputItem, TResponseStreamEvent
from openai.types.responses import ResponseOutputMessage, ResponseTextDeltaEvent

from openai_responses_mcp.agents.sdk.engine import completed, function_call, message
from openai_responses_mcp.gate.json_values import JsonObject

__all__ = ["ModelCall", "ScriptedCall", "ScriptedModel"]


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A function call for the model to make."""

    name: str
    args: JsonObject | str = field(default_factory=dict)
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request that reached the model."""

    instructions: str | None
    input: Any
    tool_names: tuple[str, ...]
    output_schema: AgentOutputSchemaBase | None = None


Part: TypeAlias = str | ScriptedCall | TResponseOutputItem
Turn: TypeAlias = Part | Sequence[Part] | BaseException


class ScriptedModel(Model):
    """Each turn is a text, a `ScriptedCall`, a list of both, or an exception to raise."""

    def __init__(self, *turns: Turn) -> None:
        self._turns: deque[Turn] = deque()
        self._made = 0
        self.calls: list[ModelCall] = []
        self.enqueue(*turns)

    def enqueue(self, *turns: Turn) -> None:
        self._turns.extend(turns)

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None = None,
        *args: Any,
        **options: Any,
    ) -> ModelResponse:
        output = self._next(system_instructions, input, tools, output_schema)
        usage = Usage(requests=1, input_tokens=1, output_tokens=1, total_tokens=2)
        return ModelResponse(output=output, usage=usage, response_id=None)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None = None,
        *args: Any,
        **options: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        output = self._next(system_instructions, input, tools, output_schema)
        for item in output:
            if isinstance(item, ResponseOutputMessage):
                yield ResponseTextDeltaEvent(
                    content_index=0,
                    delta=ItemHelpers.extract_text(item) or "",
                    item_id=item.id,
                    logprobs=[],
                    output_index=0,
                    sequence_number=0,
                    type="response.output_text.delta",
                )
        yield completed(output)

    def _next(
        self,
        instructions: str | None,
        input: str | list[TResponseInputItem],
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
    ) -> list[TResponseOutputItem]:
        names = tuple(tool.name for tool in tools or ())
        said = list(input) if isinstance(input, list) else input
        self.calls.append(ModelCall(instructions, said, names, output_schema))
        turn = self._turns.popleft()
        if isinstance(turn, BaseException):
            raise turn
        parts = turn if isinstance(turn, list) else [cast(Part, turn)]
        return [self._item(part) for part in parts]

    def _item(self, part: Part) -> TResponseOutputItem:
        self._made += 1
        if isinstance(part, ScriptedCall):
            return function_call(part.call_id or f"call_{id(self):x}_{self._made}", part.name, part.args)
        return message(part, f"msg_{self._made}") if isinstance(part, str) else part
