"""Questions that the client was asked in a reply. The client repeats the call with the answer.

The `requestState` is a random number with a seal over it and over the call. Each can be used once, by the same call, in its
time. What is executed is what was kept here, not what comes back.
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from hmac import compare_digest

from openai_responses_mcp.agents.calls import PlannedCall
from openai_responses_mcp.agents.guard.gatekeeping import Judgement
from openai_responses_mcp.agents.guard.messages import JsonObject, JsonValue
from openai_responses_mcp.agents.secrets.hashing import sealed

_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """`params` are those of the call that the question is about, as it came first.

    `attempt` counts how often somebody has been asked about it; `approval_id` is set once somebody has.
    """

    call: PlannedCall
    params: JsonObject
    judgement: Judgement
    attempt: int = 1
    approval_id: str = ""


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
