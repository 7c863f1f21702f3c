"""Moving the beginning of the log into a file, so that both parts can still be checked.

The record `log_archived` replaces the moved records. It holds where they ended, their fingerprint, and what later records
may refer to: unfinished calls and standing approvals. The file is on the disk before anything is
removed, and the removal and its record are one transaction. After a crash in between, nothing is missing, and the same
command goes on with the file that is there.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Protocol

from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate import reasons
from openai_responses_mcp.gate.audit.records import (
    ExecutionLog,
    LogFinding,
    LogPlace,
    LogVerification,
    fingerprint,
    first_break,
)
from openai_responses_mcp.gate.audit.verifying import newest_archive, open_before
from openai_responses_mcp.gate.calls import GUARD_RUN
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue

_MARK = "openai-responses-mcp log"
_VERSION = 1
_OVER = frozenset({"denied", "withdrawn", "unasked"})

NOT_NAMED = Sentence("This log does not name the archive: a cut end, or a chain written from scratch, would not show")
LOG_NOT_INTACT = Sentence("The log that the archive was moved out of is not intact, and cannot vouch for it")


class ArchiveFile(Protocol):
    """A file for records that are moved out. Raises `AGENTS-E-RUNNER-CONFIG`."""

    @property
    def name(self) -> str: ...

    def read(self) -> list[ExecutionLog] | None:
        """None if there is no such file. One that is no archive is an error."""
        ...

    def write(self, records: Sequence[ExecutionLog]) -> None:
        """All or none, and on the disk when this returns. An existing file is not replaced."""
        ...


# ---------------------------------------------------------------------------------------------------------------------
# What is moved


def older_than(moment: str, logs: Sequence[ExecutionLog]) -> Sequence[ExecutionLog]:
    """The beginning of the log before this moment, shortened so that no call is split."""
    count = next((place for place, log in enumerate(logs) if log.timestamp >= moment), len(logs))
    last = {(log.run_id, log.tool_call_id): place for place, log in enumerate(logs)}
    first: dict[tuple[str, str], int] = {}
    for place, log in enumerate(logs[:count]):
        first.setdefault((log.run_id, log.tool_call_id), place)
    for call in sorted(first, key=first.__getitem__, reverse=True):
        if count <= last[call]:
            count = min(count, first[call])
    return logs[:count]


def facts_of_archive(
    logs: Sequence[ExecutionLog], moved: Sequence[ExecutionLog], earlier: ExecutionLog | None, accepted: int
) -> JsonObject:
    """The facts in the record that replaces `moved`. `earlier` is the record of the archive before this one.

    `accepted` is how many records of the log people have accepted as they were. Those that stay are still covered.
    """
    count = max(accepted - len(moved), 0)
    staying = logs[len(moved) : len(moved) + count]
    known = earlier.arguments.get("archives") if earlier else None
    return {
        "through": [*LogPlace.of(moved[-1])],
        "records": count,
        "fingerprint": fingerprint(staying),
        "open": [[log.run_id, log.tool_call_id, log.event, log.decision] for log in _open(earlier, moved)],
        "archives": [*_rows(known), [moved[0].sequence, moved[-1].sequence, fingerprint(moved)]],
    }


def _open(earlier: ExecutionLog | None, moved: Sequence[ExecutionLog]) -> Iterator[ExecutionLog]:
    """Records of calls that are not over, and of standing approvals that are still in force."""
    known = [*open_before(earlier), *moved]
    over = {(log.run_id, log.tool_call_id) for log in known if _ends_its_call(log)}
    for log in known:
        event = log.event.partition(":")[0]
        is_referred_to = event in ("decision", "approval_requested", "approval", "started", "standing_made")
        if is_referred_to and (log.run_id, log.tool_call_id) not in over:
            yield log


def _ends_its_call(log: ExecutionLog) -> bool:
    event = log.event.partition(":")[0]
    if event == "approval":
        # A request of an agent is opened again when its approval has expired.
        return log.decision in _OVER or (log.decision == "expired" and log.run_id.startswith(GUARD_RUN))
    return event in ("outcome", "standing_ended") or (event == "decision" and log.decision == "deny")


# ---------------------------------------------------------------------------------------------------------------------
# What is in the file


def text_of(records: Sequence[ExecutionLog]) -> str:
    """One JSON object a line: what this is, then every record."""
    head = {"archive": _MARK, "version": _VERSION, "records": len(records)}
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in (head, *map(asdict, records)))


def records_in(text: str) -> list[ExecutionLog]:
    """Raises `ValueError` if the text is no archive, or is cut off."""
    lines = text.removesuffix("\n").split("\n")
    try:
        head = json.loads(lines[0])
        found = [_record(json.loads(line)) for line in lines[1:]]
    except (TypeError, KeyError, RecursionError) as exc:
        raise ValueError from exc
    expected = {"archive": _MARK, "version": _VERSION, "records": len(found)}
    if head != expected or not found:
        raise ValueError
    return found


def _record(facts: JsonValue) -> ExecutionLog:
    if not isinstance(facts, dict) or not isinstance(facts.get("arguments"), dict):
        raise ValueError
    # A wrong type does not fit the hash of the record, which is checked later.
    read = ExecutionLog(**facts)
    return replace(read, reasons=reasons.from_text(json.dumps(facts["reasons"]) if facts["reasons"] else None))


# ---------------------------------------------------------------------------------------------------------------------
# Checking it


def archive_verification(
    records: Sequence[ExecutionLog], logs: Sequence[ExecutionLog], log_is_intact: bool
) -> LogVerification:
    """Whether a file has what was moved out of this log.

    The log names each archive with its fingerprint, which also covers what people had accepted in it. Where the log does
    not name it, the chain alone is checked.
    """
    first, last = records[0], records[-1]
    finding = first_break(records, after=LogPlace(first.sequence - 1, first.previous_hash))
    newest = newest_archive(logs) if log_is_intact else None
    rows = _rows(newest.arguments.get("archives")) if newest else []
    named = next((row for row in rows if row[:1] == [first.sequence]), None)
    if named == [first.sequence, last.sequence, fingerprint(records)]:
        finding = None
    elif named is not None and finding is None:
        changed = Sentence(
            "the archive is not what was moved out of this log as the records {first} to {last}",
            first=first.sequence,
            last=last.sequence,
        )
        finding = LogFinding(first.sequence, changed)
    uncovered = "" if named is not None else NOT_NAMED if log_is_intact else LOG_NOT_INTACT
    return LogVerification.of([finding] if finding else [], len(records), uncovered)


def _rows(value: JsonValue) -> list[list[JsonValue]]:
    return [row for row in value if isinstance(row, list)] if isinstance(value, list) else []
