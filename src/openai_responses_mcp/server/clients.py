"""What is known of the client of a connection, as far as it decides how its calls are answered."""

from typing import Any, Literal, NamedTuple

from openai_responses_mcp.domain.jsonrpc import Request
from openai_responses_mcp.server.eras import ENVELOPE, Era, client_info_of, declares_tasks
from openai_responses_mcp.server.tools import RESULT_TOOL

HandOver = float | Literal["auto"] | None

# Some clients give up after a minute. This leaves ten seconds.
USUAL_HAND_OVER_SECONDS = 50.0

IMPATIENT: dict[str, str] = {
    "claude-ai": "Claude Desktop calls itself so; it ends a call after a minute, whatever progress it gets",
}
"""Clients that give up while research still goes on, by name, with the reason why each is here."""


class CallingClient(NamedTuple):
    """What one request says of its client."""

    era: Era
    takes_tasks: bool = False
    hand_over_seconds: float | None = None
    may_fetch: bool = False
    caller: str = ""


class ClientOfConnection:
    """Remembers its name, which comes with the handshake in one era, and with any request in the other."""

    def __init__(self, hand_over: HandOver, tool_names: tuple[str, ...]) -> None:
        self._hand_over = hand_over
        self._tool_names = tool_names
        self._name: str | None = None

    def seen_in(self, request: Request, era: Era, caller: str = "") -> CallingClient:
        self._name = _name_in(client_info_of(request, era)) or self._name
        seconds = self._hand_over_seconds()
        return CallingClient(
            era,
            takes_tasks=era is ENVELOPE and declares_tasks(request),
            hand_over_seconds=seconds,
            may_fetch=seconds is not None or RESULT_TOOL in self._tool_names,
            caller=caller,
        )

    def _hand_over_seconds(self) -> float | None:
        if self._hand_over != "auto":
            return self._hand_over
        return USUAL_HAND_OVER_SECONDS if self._name in IMPATIENT else None


def _name_in(info: Any) -> str | None:
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else None
