"""The head: where the log ended when it was last written, kept outside the log.

A head is announced before records are committed and confirmed after. A process that dies in between leaves an announced
head, which fits the log with these records and without them. A log that does not fit is a finding. The head keeps a
finding for as long as nobody accepts it, so that later records do not cover it up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from openai_responses_mcp.agents.audit.models import BEGINNING, ExecutionLog, Finding, Place

HashAt = Callable[[int], str | None]
"""The hash of the record with this number, as the log has it now."""


@dataclass(frozen=True, slots=True)
class Head:
    """The log ends at `end`; while that is not confirmed, it may still end at `before`."""

    end: Place
    before: Place
    is_confirmed: bool = False
    finding: Finding | None = None

    @property
    def ends(self) -> tuple[Place, ...]:
        return (self.end,) if self.is_confirmed else (self.end, self.before)


UNREADABLE = Head(BEGINNING, BEGINNING, finding=Finding(1, "the head of the log cannot be read"))


def announced(known: Head | None, before: Place, end: Place, hash_at: HashAt, *, is_sole_writer: bool) -> Head:
    """The head for records that are about to follow `before` and to end at `end`."""
    return Head(end, before, finding=misfit(known, before, hash_at, is_sole_writer=is_sole_writer))


def confirmed(known: Head | None, record: ExecutionLog, *, is_accepting: bool) -> Head | None:
    """The head once the record is in the log; None if it is further along already."""
    finding = known.finding if known and not is_accepting else None
    if known is not None and known.end.sequence > record.sequence:
        return replace(known, finding=finding) if finding != known.finding else None
    end = Place.of(record)
    return Head(end, end, is_confirmed=True, finding=finding)


def misfit(known: Head | None, last: Place, hash_at: HashAt, *, is_sole_writer: bool) -> Finding | None:
    """Why a log with this last record does not fit this head.

    On a store that other machines write to (`is_sole_writer` false) the log may have grown past the head; it must still
    contain it.
    """
    if known is None:
        return None if last == BEGINNING else Finding(1, "the head of the log is missing")
    if known.finding is not None or last in known.ends:
        return known.finding
    number = known.end.sequence
    if last.sequence < number:
        cut = last.sequence + 1
        return Finding(cut, f"the tail from record {cut} was cut, or an old copy was put back")
    if not any(end == BEGINNING or hash_at(end.sequence) == end.hash for end in known.ends):
        return Finding(number, f"record {number} is not the one that was written: the chain was made anew")
    if is_sole_writer:
        return Finding(number + 1, f"record {number + 1} was inserted after the end of the log")
    return None


def misfit_of_log(known: Head | None, logs: Sequence[ExecutionLog], *, is_sole_writer: bool) -> Finding | None:
    hashes = {log.sequence: log.hash for log in logs}
    return misfit(known, Place.of(logs[-1] if logs else None), hashes.get, is_sole_writer=is_sole_writer)
