"""Calls that the server has answered with a question of its own (`input_required`).

The call comes again with the answer. With the same arguments it is the same call, once: no second question is asked, and
what a person has approved or changed is sent from the seal again.
"""

from collections import OrderedDict
from typing import NamedTuple

from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.secrets.hashing import digest
from openai_responses_mcp.guard.messages import JsonObject, JsonValue, object_in

ANSWERS = frozenset({"inputResponses", "requestState"})

_MOST_REMEMBERED = 1_000


class Underway(NamedTuple):
    """A call that the server has. Where it is sealed, a person has approved its arguments; `note` is for the model."""

    call: PlannedCall
    is_sealed: bool = False
    note: str = ""


class ContinuedCalls:
    def __init__(self) -> None:
        self._waiting: OrderedDict[str, Underway] = OrderedDict()

    def put(self, underway: Underway, params: JsonObject, state: JsonValue) -> None:
        """`params` are those that the client has sent, `state` is what the server wants back."""
        self._waiting[_key(params, underway.call.tool, state)] = underway
        while len(self._waiting) > _MOST_REMEMBERED:
            self._waiting.popitem(last=False)

    def take(self, params: JsonObject, tool: ToolDescription) -> Underway | None:
        """The call that comes again with these params. None where they answer no question."""
        if not ANSWERS & params.keys():
            return None
        return self._waiting.pop(_key(params, tool, params.get("requestState")), None)

    def clear(self) -> list[Underway]:
        left, self._waiting = list(self._waiting.values()), OrderedDict()
        return left


def _key(params: JsonObject, tool: ToolDescription, state: JsonValue) -> str:
    return digest("continued", tool.name, tool.definition_hash, object_in(params.get("arguments")), state)
