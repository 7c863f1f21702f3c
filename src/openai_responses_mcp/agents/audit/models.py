"""One record of the audit log, a place in the log, and what a check of the whole log found."""

from dataclasses import dataclass, field
from typing import NamedTuple

from openai_responses_mcp.agents.json_values import JsonObject

LOSS_ACCEPTED = "loss_accepted"


@dataclass(frozen=True, slots=True)
class ExecutionLog:
    """One audit record; the last three fields are set when it is appended and link it to the record before."""

    run_id: str
    tool_call_id: str
    event: str
    decision: str
    timestamp: str
    tool_name: str = ""
    tool_kind: str = ""
    risk_level: int | None = None
    reason: str = ""
    arguments: JsonObject = field(default_factory=dict)
    comment: str = ""
    sequence: int = 0
    previous_hash: str = ""
    hash: str = ""


class Place(NamedTuple):
    """A place in the log: the number of the record there, and its hash."""

    sequence: int
    hash: str

    @classmethod
    def of(cls, log: ExecutionLog | None) -> "Place":
        return BEGINNING if log is None else cls(log.sequence, log.hash)


BEGINNING = Place(0, "")


class Finding(NamedTuple):
    """Something in the log that is not as it should be, and the number of the record where it shows."""

    sequence: int
    problem: str


@dataclass(frozen=True, slots=True)
class LogVerification:
    """`first_bad` is the record where the log stops being what was written; `uncovered` says what was not checked.

    `findings` names everything that was found, `problem` the first of it. What people have accepted is not a finding
    any more; `accepted` lists each such loss, with the reason that was given.
    """

    is_intact: bool
    records: int
    first_bad: int | None = None
    problem: str = ""
    uncovered: str = ""
    findings: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
