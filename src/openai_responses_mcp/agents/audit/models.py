"""One record of the audit log, and what a check of the whole log found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    arguments: Mapping[str, Any] = field(default_factory=dict)
    comment: str = ""
    sequence: int = 0
    previous_hash: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True)
class LogVerification:
    """`first_bad` is the record where the log stops being what was written; `uncovered` says what was not checked."""

    is_intact: bool
    records: int
    first_bad: int | None = None
    problem: str = ""
    uncovered: str = ""
