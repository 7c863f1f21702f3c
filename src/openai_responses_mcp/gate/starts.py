"""Starting a guarded call: pin its definition, spend its budget and write its records, all or nothing.

Pins belong to the name and the command of a server together. A decision carries the definition that it was made with
and the one that was pinned then. A call starts only if the pinned definition is still one of the two, or none is pinned;
so other calls and processes cannot slip in a definition that was never approved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from openai_responses_mcp.gate.audit.records import ExecutionLog

StartOutcome = Literal["started", "changed", "over_budget"]


@dataclass(frozen=True, slots=True)
class GuardedServer:
    """`command` is shown to people, with labels for secrets. `fingerprint` identifies the command."""

    name: str
    fingerprint: str
    command: str


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool's pin, and the other commands seen under the server's name if this command is new."""

    pin: str | None
    other_commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spending:
    """One call counted in a window with a limit of `most`, or a higher one that a human allowed."""

    window: str
    most: int


@dataclass(frozen=True, slots=True)
class CallStart:
    """`pin` is the definition that the call was decided with, `seen_pin` what was pinned then."""

    server: GuardedServer
    tool: str
    pin: str
    seen_pin: str | None
    spends: tuple[Spending, ...]
    records: tuple[ExecutionLog, ...]


class StartBook(Protocol):
    """Shared by every guard on the store. Raises `StoreUnavailable`."""

    async def known(self, server: GuardedServer, tool: str) -> KnownTool: ...

    async def start(self, before: Sequence[ExecutionLog], starts: Sequence[CallStart]) -> list[StartOutcome]:
        """Write the records `before`, then start each call that may start, all in one transaction.

        Raises `DuplicateRecord` as the log does; then nothing has started.
        """
        ...


def is_free_to_start(pinned: str | None, start: CallStart) -> bool:
    """Pins are compared by their hash, which stands before the definition. Earlier versions stored the hash alone."""
    pinned_hash, *allowed = (pin and pin.partition(" ")[0] for pin in (pinned, start.pin, start.seen_pin))
    return pinned is None or pinned_hash in allowed
