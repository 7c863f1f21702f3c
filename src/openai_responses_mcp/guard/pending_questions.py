"""Calls that come again with an answer (`input_required`): to a question of the guard, or of the server itself.

The `requestState` is a random number with a seal over it and over the call. Each can be used once, by the same call, in its
time. What is executed is what was kept here, not what comes back.
"""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import NamedTuple

from openai_responses_mcp.domain.ports import Channel
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.json_values import digest, sealed
from openai_responses_mcp.guard.definitions import Defined
from openai_responses_mcp.guard.gatekeeping import Judgement
from openai_responses_mcp.guard.messages import JsonObject, JsonValue, object_in

_MOST_REMEMBERED = 10_000
_MOST_CONTINUED = 1_000

ANSWERS = frozenset({"inputResponses", "requestState"})


class Intent(NamedTuple):
    """A call that is to start, with the definition that it is decided with.

    `params` are those to send once a person has approved them; without them the client's own bytes are sent. `attempt`
    counts how often the call has been decided on.
    """

    call: PlannedCall
    defined: Defined
    params: JsonObject | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """`approval_id` is set once a person has been asked. `channel` leads to the client that made the call.

    `reading` are the tools that claim to read only, with the hashes of their definitions at this moment. It is empty
    if the tool of this call does not claim it.
    """

    intent: Intent
    judgement: Judgement
    channel: Channel
    approval_id: str = ""
    reading: Mapping[str, str] = field(default_factory=dict)

    @property
    def params(self) -> JsonObject:
        return self.intent.params or {}


class NotThisCall(Exception):
    """The state was used before, is too old, or belongs to another call."""


class PendingQuestions:
    def __init__(self) -> None:
        self._key = secrets.token_hex(32)
        # Random, because a guarded server may be a guard itself.
        self._prefix = f"guard-{secrets.token_hex(8)}:"
        self._waiting: OrderedDict[str, PendingQuestion] = OrderedDict()

    def put(self, question: PendingQuestion) -> str:
        """The state that the client has to bring back."""
        number = secrets.token_hex(16)
        self._waiting[number] = question
        while len(self._waiting) > _MOST_REMEMBERED:
            self._waiting.popitem(last=False)
        return f"{self._prefix}{number}:{self._seal(number, question.params)}"

    def take(self, params: JsonObject) -> PendingQuestion | None:
        """The question of the guard that these params of a call answer, if they answer one. Raises `NotThisCall`."""
        state = params.get("requestState")
        number, seal = self._parts(state)
        if not number:
            return None
        question = self._waiting.pop(number, None)
        if question is None or not compare_digest(seal, self._seal(number, params)):
            raise NotThisCall
        return question

    def forget(self, state: str) -> None:
        self._waiting.pop(self._parts(state)[0], None)

    def _seal(self, number: str, params: JsonObject) -> str:
        return sealed(self._key, number, params.get("name"), params.get("arguments") or {})

    def _parts(self, state: JsonValue) -> tuple[str, str]:
        if not isinstance(state, str) or not state.startswith(self._prefix):
            return "", ""
        number, _, seal = state.removeprefix(self._prefix).partition(":")
        # Compared as ASCII, which is all that a seal of ours can be.
        return (number, seal) if number.isascii() and seal.isascii() else ("", "")


# ---------------------------------------------------------------------------------------------------------------------
# Calls that the server has answered with a question of its own. The call comes again with the answer. With the same arguments
# it is the same call, once: no second question is asked, and what a person approved or changed is sent from the seal.


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
        while len(self._waiting) > _MOST_CONTINUED:
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
