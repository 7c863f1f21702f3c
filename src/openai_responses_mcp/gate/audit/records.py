"""Records of the audit log, the chain that links them, the head that says where the log ends, and where both are kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.errors import config_error
from openai_responses_mcp.gate.json_values import JsonObject, digest
from openai_responses_mcp.gate.reasons import Reason, as_json

LOSS_ACCEPTED = "loss_accepted"
LOG_ARCHIVED = "log_archived"


@dataclass(frozen=True, slots=True)
class ExecutionLog:
    """One audit record. `sequence`, `previous_hash` and `hash` are set when it is appended; they link it to the record
    before. `reasons` are the reasons of a decision as data. Records of earlier versions have none. `who` asked, or decided;
    it is empty where that is not known."""

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
    reasons: tuple[Reason, ...] = ()
    who: str = ""


class LogPlace(NamedTuple):
    """A place in the log: the number of the record there, and its hash."""

    sequence: int
    hash: str

    @classmethod
    def of(cls, log: ExecutionLog | None) -> "LogPlace":
        return BEGINNING if log is None else cls(log.sequence, log.hash)


BEGINNING = LogPlace(0, "")


class LogFinding(NamedTuple):
    """Something in the log that is not as it should be, and the number of the record where it shows."""

    sequence: int
    problem: str


@dataclass(frozen=True, slots=True)
class LogVerification:
    """`first_bad` is the first record that is not as it was written; `uncovered` says what was not checked.

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

    @classmethod
    def of(
        cls, found: Sequence[LogFinding], records: int, uncovered: str, accepted: tuple[str, ...] = ()
    ) -> "LogVerification":
        first_bad, problem = found[0] if found else (None, "")
        findings = tuple(finding.problem for finding in found)
        return cls(not found, records, first_bad, problem, uncovered, findings, accepted)


def linked(log: ExecutionLog, previous: ExecutionLog | LogPlace | None) -> ExecutionLog:
    """The record with its number, the hash before it and its own."""
    sequence, before = (previous.sequence + 1, previous.hash) if previous else (1, "")
    placed = replace(log, sequence=sequence, previous_hash=before)
    return replace(placed, hash=hash_of(placed))


def hash_of(log: ExecutionLog) -> str:
    return digest(
        log.sequence,
        log.previous_hash,
        log.run_id,
        log.tool_call_id,
        log.event,
        log.tool_name,
        log.tool_kind,
        log.decision,
        log.risk_level,
        log.reason,
        log.arguments,
        log.comment,
        log.timestamp,
        # A record without reasons and without a name has the hash that earlier versions gave it.
        *([as_json(log.reasons)] if log.reasons else ()),
        *([{"who": log.who}] if log.who else ()),
    )


def archived_through(log: ExecutionLog) -> LogPlace | None:
    """Where the records ended that were moved out of the log, as the record in their place says."""
    match log.arguments.get("through"):
        case [int(sequence), str(hash)]:
            return LogPlace(sequence, hash)
    return None


def first_break(logs: Sequence[ExecutionLog], after: ExecutionLog | LogPlace | None = None) -> LogFinding | None:
    """The number of the first record that is not as it was written, and what happened to it.

    With `after`, the records are those that follow one which is known to be good.
    """
    previous = after
    for number, log in enumerate(logs, start=after.sequence + 1 if after else 1):
        if log.sequence > number:
            return LogFinding(number, Sentence("record {number} was removed", number=number))
        if log.sequence < number:
            return LogFinding(number, Sentence("a record was inserted after record {number}", number=number - 1))
        if hash_of(log) != log.hash:
            return LogFinding(number, Sentence("record {number} was changed", number=number))
        if log.previous_hash != (previous.hash if previous else ""):
            problem = Sentence(
                "record {number} does not follow the one before it: reordered, replaced or inserted", number=number
            )
            return LogFinding(number, problem)
        previous = log
    return None


def fingerprint(logs: Sequence[ExecutionLog]) -> str:
    """A hash of the records as they are now, even if they were changed."""
    return digest([[log.sequence, log.hash, hash_of(log)] for log in logs])


HashAt = Callable[[int], str | None]
"""The hash of the record with this number, as the log has it now."""


@dataclass(frozen=True, slots=True)
class Head:
    """The log ends at `end`; while that is not confirmed, it may still end at `before`.

    `accepted` is the last record that accepted a loss with this head. Heads of earlier versions did not keep it: there
    every acceptance up to the record `accepted_to` counts. Records up to `archived_to` were moved out with this head.
    """

    end: LogPlace
    before: LogPlace
    is_confirmed: bool = False
    finding: LogFinding | None = None
    accepted: LogPlace = BEGINNING
    accepted_to: int = 0
    archived_to: int = 0

    @property
    def ends(self) -> tuple[LogPlace, ...]:
        return (self.end,) if self.is_confirmed else (self.end, self.before)


_NEW = Head(BEGINNING, BEGINNING)
_BROKEN = "the head of the log cannot be read"
_MISSING = "the head of the log is missing"
_CUT = "the tail from record {number} was cut, or an old copy was put back"
_GONE = "record {number} is not in the log any more: removed, or archived with another head"
_REBUILT = "record {number} is not the one that was written: the chain was rebuilt"
_INSERTED = "record {number} was inserted after the end of the log"
UNREADABLE = Head(BEGINNING, BEGINNING, finding=LogFinding(1, Sentence(_BROKEN)))


def kept_finding(sequence: int, problem: str) -> LogFinding:
    """A finding that a head has kept. Sentences of ours can be translated again."""
    templates = (_BROKEN, _MISSING, _CUT, _GONE, _REBUILT, _INSERTED)
    made = (Sentence(template, number=sequence) for template in templates)
    return LogFinding(sequence, next((sentence for sentence in made if sentence == problem), problem))


def announced(
    known: Head | None, before: LogPlace, end: LogPlace, hash_at: HashAt, *, is_sole_writer: bool, archived_to: int = 0
) -> Head:
    """The head for records that are about to follow `before` and to end at `end`."""
    finding, head = misfit(known, before, hash_at, is_sole_writer=is_sole_writer), known or _NEW
    moved = max(head.archived_to, archived_to)
    return replace(head, end=end, before=before, is_confirmed=False, finding=finding, archived_to=moved)


def confirmed(known: Head | None, record: ExecutionLog, *, is_accepting: bool) -> Head | None:
    """The head once the record is in the log; None if it is further along already."""
    end = LogPlace.of(record)
    head = known or _NEW
    if is_accepting:
        head = replace(head, finding=None, accepted=end)
    if head.end.sequence > record.sequence:
        return head if is_accepting else None
    return replace(head, end=end, before=end, is_confirmed=True)


def misfit(known: Head | None, last: LogPlace, hash_at: HashAt, *, is_sole_writer: bool) -> LogFinding | None:
    """Why a log with this last record does not fit this head.

    On a store that other machines write to (`is_sole_writer` false) the log may have grown past the head; it must still
    contain it.
    """
    if known is None:
        return None if last == BEGINNING else LogFinding(1, Sentence(_MISSING))
    if known.finding is not None or last in known.ends:
        return known.finding
    number = known.end.sequence
    if last.sequence < number:
        cut = last.sequence + 1
        return LogFinding(cut, Sentence(_CUT, number=cut))
    if all(end.sequence > 0 and hash_at(end.sequence) is None for end in known.ends):
        return LogFinding(number, Sentence(_GONE, number=number))
    if not any(end == BEGINNING or hash_at(end.sequence) == end.hash for end in known.ends):
        return LogFinding(number, Sentence(_REBUILT, number=number))
    if is_sole_writer:
        return LogFinding(number + 1, Sentence(_INSERTED, number=number + 1))
    return None


def misfit_of_log(known: Head | None, logs: Sequence[ExecutionLog], *, is_sole_writer: bool) -> LogFinding | None:
    hashes = {log.sequence: log.hash for log in logs}
    return misfit(known, LogPlace.of(logs[-1] if logs else None), hashes.get, is_sole_writer=is_sole_writer)


# Where they are kept


class ExecutionLogStore(Protocol):
    """Any text can be stored. A record that the store cannot take is `RecordRefused`, and harms no other."""

    async def append(self, log: ExecutionLog) -> ExecutionLog:
        """Link the record to the last one and keep it for good; on return it survives a crash.

        A second record with the same run, call and event: `DuplicateRecord`.
        """
        ...

    async def append_all(self, logs: Sequence[ExecutionLog]) -> list[ExecutionLog]:
        """In this order. When it fails, the first of them may be there; stores that can keep all or none do so."""
        return [await self.append(log) for log in logs]

    async def query(self, run_id: str | None = None, since: str | None = None) -> list[ExecutionLog]:
        """In the order they were appended; `since` is inclusive."""
        ...

    async def move_out(self, moved: Sequence[ExecutionLog], record: ExecutionLog) -> ExecutionLog | None:
        """Remove the records from the beginning of the log and append the one that says so, both or neither.

        None if the log does not begin with these records any more. A store need not be able to do this.
        """
        raise config_error(Sentence("This log store cannot move records out"))


class AuditHead(Protocol):
    """Where the log ends, kept outside the log. Raises `StoreUnavailable`."""

    @property
    def is_sole_writer(self) -> bool:
        """Whether all writers of the log announce their records here."""
        ...

    def read(self) -> Head | None:
        """None when there is none yet; what cannot be read is `UNREADABLE`."""
        ...

    def announce(self, before: LogPlace, end: LogPlace, hash_at: HashAt, archived_to: int = 0) -> None:
        """Records are about to follow `before` and to end at `end`. A log that does not fit is kept as a finding.

        The record at `end` takes the place of all records up to the number `archived_to`.
        """
        ...

    def confirm(self, record: ExecutionLog) -> None:
        """The record is in the log. One that accepts a loss takes the finding away."""
        ...
