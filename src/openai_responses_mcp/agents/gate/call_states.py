"""The states of one call, and every move between them. What is not in `MOVES` is refused.

                              ┌─ allow ──► ALLOWED ── start ─► RUNNING ── finish ─► DONE
    UNKNOWN ── plan ► PLANNED ┼─ hold ───► HELD ── release ► ALLOWED
                              ├─ ask ────► ASKED ─ release ► ALLOWED
                              └─ refuse ─► REFUSED

A call with a run inside it may have to wait for that run: RUNNING ─ suspend ► SUSPENDED ─ release ► TAKEN_UP ─ start ►
RUNNING. A call that is about to start in another form than was decided (misfit) is REFUSED.

A human may refuse a call, tell the model, and let the run go on: ASKED ─ tell ► TOLD. After that, and after a changed
call, the rest of the turn is decided again: ASKED or HELD ─ replan ► PLANNED. DONE, REFUSED and TOLD are the end.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class CallState(StrEnum):
    UNKNOWN = "unknown"  # nobody has asked for it
    PLANNED = "planned"  # its turn is being decided
    HELD = "held"  # could run, and waits for others of its turn
    ASKED = "asked"  # waits for a human
    ALLOWED = "allowed"  # may start, once
    RUNNING = "running"
    SUSPENDED = "suspended"  # has started, and waits for a run inside it
    TAKEN_UP = "taken_up"  # may go on where it was suspended, once
    DONE = "done"
    REFUSED = "refused"
    TOLD = "told"  # a human refused it, and the model is told so


class CallEvent(StrEnum):
    PLAN = "plan"
    ALLOW = "allow"
    HOLD = "hold"
    ASK = "ask"
    REFUSE = "refuse"
    RELEASE = "release"
    REPLAN = "replan"
    TELL = "tell"
    START = "start"
    MISFIT = "misfit"
    SUSPEND = "suspend"
    FINISH = "finish"


MOVES: Final[Mapping[CallState, Mapping[CallEvent, CallState]]] = {
    CallState.UNKNOWN: {CallEvent.PLAN: CallState.PLANNED},
    CallState.PLANNED: {
        CallEvent.ALLOW: CallState.ALLOWED,
        CallEvent.HOLD: CallState.HELD,
        CallEvent.ASK: CallState.ASKED,
        CallEvent.REFUSE: CallState.REFUSED,
    },
    CallState.HELD: {CallEvent.RELEASE: CallState.ALLOWED, CallEvent.REPLAN: CallState.PLANNED},
    CallState.ASKED: {
        CallEvent.RELEASE: CallState.ALLOWED,
        CallEvent.REPLAN: CallState.PLANNED,
        CallEvent.TELL: CallState.TOLD,
    },
    CallState.ALLOWED: {CallEvent.START: CallState.RUNNING, CallEvent.MISFIT: CallState.REFUSED},
    CallState.RUNNING: {CallEvent.FINISH: CallState.DONE, CallEvent.SUSPEND: CallState.SUSPENDED},
    CallState.SUSPENDED: {
        CallEvent.RELEASE: CallState.TAKEN_UP,
        # Several runs inside one call may wait, and the engine reports the call as finished all the same.
        CallEvent.SUSPEND: CallState.SUSPENDED,
        CallEvent.FINISH: CallState.SUSPENDED,
    },
    CallState.TAKEN_UP: {CallEvent.START: CallState.RUNNING, CallEvent.MISFIT: CallState.REFUSED},
    CallState.DONE: {},
    CallState.REFUSED: {},
    CallState.TOLD: {},
}

MAY_START: Final = frozenset({CallState.ALLOWED, CallState.TAKEN_UP})
LET_THROUGH: Final = MAY_START | {CallState.RUNNING, CallState.SUSPENDED}


class ForbiddenMove(Exception):
    def __init__(self, state: CallState, event: CallEvent) -> None:
        super().__init__(f"A call that is {state} cannot {event}")


def next_state(state: CallState, event: CallEvent) -> CallState:
    """Raises `ForbiddenMove`."""
    try:
        return MOVES[state][event]
    except KeyError:
        raise ForbiddenMove(state, event) from None
