"""Checking a whole log: its chain, its head, its story, and what people have accepted.

An acceptance is a record like any other. It says how many records there were and what they looked like, so that it
covers these and nothing that happens to them later. The record of an archive says the same of those that stayed. With a
head, only those count that were made with this head: anyone who can write to a shared store could forge such a record.
"""

import re
from collections.abc import Iterator, Sequence

from openai_responses_mcp.domain.texts import Sentence, one_line
from openai_responses_mcp.gate.audit.records import (
    LOG_ARCHIVED,
    LOSS_ACCEPTED,
    ExecutionLog,
    Head,
    LogFinding,
    LogPlace,
    LogVerification,
    archived_through,
    fingerprint,
    first_break,
    hash_of,
)
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.reasons import in_old_words

_Call = tuple[str, str]

# A record written by hand can hold anything.
_NUMBER = re.compile(r"[0-9]{1,9}")


def contradictions(logs: Sequence[ExecutionLog], before: Sequence[ExecutionLog] = ()) -> Iterator[LogFinding]:
    """`before` are the records that the log may refer to although they were moved out of it."""
    decisions: dict[_Call, str] = {}
    asked: dict[_Call, int] = {}
    approvals: dict[_Call, tuple[int, str]] = {}
    started: set[_Call] = set()
    made: set[str] = set()
    for place, log in enumerate([*before, *logs]):
        call, problem = (log.run_id, log.tool_call_id), None
        # A request that was opened again has its number behind the name of the event, and so has the answer to it.
        event, _, number = log.event.partition(":")
        attempt = int(number) if _NUMBER.fullmatch(number) else 1
        if event == "decision":
            decisions[call] = log.decision
        elif event == "approval_requested":
            asked[call] = max(asked.get(call, 1), attempt)
        elif event == "approval":
            approvals[call] = (attempt, log.decision)
        elif event == "started":
            started.add(call)
            answer = approvals.get(call)
            approval = answer[1] if answer and answer[0] >= asked.get(call, 1) else None
            problem = _reason_against(decisions.get(call), approval)
        elif event == "standing_made":
            made.add(log.tool_call_id)
        elif event == "standing_used" and not _standing_ids(log) & made:
            problem = Sentence("used a standing approval that is not in the log")
        elif event == "outcome" and call not in started:
            problem = Sentence("has an outcome, and never started")
        if problem and place >= len(before):
            tool = f"{log.tool_kind} {log.tool_name}".strip()
            facts = {"call": log.tool_call_id, "run": log.run_id, "tool": tool, "what": problem}
            yield LogFinding(log.sequence, Sentence("call {call} of {run} ({tool}) {what}", **facts))


def open_before(archive: ExecutionLog | None) -> list[ExecutionLog]:
    """The records of unfinished calls and standing approvals that the record of an archive keeps."""
    rows = archive.arguments.get("open") if archive else None
    carried = [row for row in rows if isinstance(row, list) and len(row) == 4] if isinstance(rows, list) else []
    return [
        ExecutionLog(str(run), str(call), str(event), str(said), timestamp="") for run, call, event, said in carried
    ]


def _standing_ids(log: ExecutionLog) -> set[object]:
    return {
        one.about.get("standing_id")
        for one in log.reasons or in_old_words(log.reason, "allow")
        if one.voice == "standing"
    }


def _reason_against(decision: str | None, approval: str | None) -> Sentence | None:
    if decision is None:
        return Sentence("started, and no decision was recorded")
    if decision == "deny":
        return Sentence("started, and the gate had refused it")
    if decision == "needs_human" and approval != "approved":
        return (
            Sentence("started, and a human had denied it")
            if approval
            else Sentence("started, and needed a human, and no approval was recorded")
        )
    return None


def unfinished(logs: Sequence[ExecutionLog]) -> list[ExecutionLog]:
    """Calls that started and of which no outcome is recorded: running at this moment, or cut off by a crash."""
    over = {(log.run_id, log.tool_call_id) for log in logs if log.event == "outcome"}
    return [log for log in logs if log.event == "started" and (log.run_id, log.tool_call_id) not in over]


def verification(
    logs: Sequence[ExecutionLog], head_finding: LogFinding | None, uncovered: str, head: Head | None = None
) -> LogVerification:
    stated = statements(logs, head)
    last, archive = stated[-1] if stated else None, newest_archive(stated)
    findings = [*_findings_after(last, logs, archived_through(archive) if archive else None)]
    findings += [head_finding] if head_finding else []
    findings += map(_stated_elsewhere, _written(logs)[len(stated) :])
    count = accepted_count(last)
    accepted_to = logs[count - 1].sequence if 0 < count <= len(logs) else 0
    findings += [one for one in contradictions(logs, open_before(archive)) if one.sequence > accepted_to]
    accepted = tuple(
        Sentence(
            "{finding}; accepted in record {number}: {comment}",
            finding=log.reason,
            number=log.sequence,
            comment=log.comment,
        )
        for log in stated
        if log.event == LOSS_ACCEPTED
    )
    return LogVerification.of(findings, len(logs), uncovered, accepted)


def newest_archive(logs: Sequence[ExecutionLog]) -> ExecutionLog | None:
    return next((log for log in reversed(logs) if log.event == LOG_ARCHIVED), None)


def statements(logs: Sequence[ExecutionLog], head: Head | None) -> list[ExecutionLog]:
    """The records about the log itself that count: losses that were accepted, and records that were moved out."""
    written = _written(logs)
    return written[: max((place for place, log in enumerate(written, start=1) if _is_known(log, head)), default=0)]


def _written(logs: Sequence[ExecutionLog]) -> list[ExecutionLog]:
    return [log for log in logs if log.event in (LOSS_ACCEPTED, LOG_ARCHIVED) and hash_of(log) == log.hash]


def _is_known(statement: ExecutionLog, head: Head | None) -> bool:
    if head is None:
        return True
    if statement.event == LOG_ARCHIVED:
        through = archived_through(statement)
        return through is not None and through.sequence <= head.archived_to
    return LogPlace.of(statement) == head.accepted or statement.sequence <= head.accepted_to


def _stated_elsewhere(statement: ExecutionLog) -> LogFinding:
    by = statement.arguments.get("by")
    who = one_line(str(by)) if by else Sentence("somebody without a name")
    says = (
        "record {number} accepts a loss in the name of {who}, and not with this head: accept it here too"
        if statement.event == LOSS_ACCEPTED
        else "record {number} archives records in the name of {who}, and not with this head: accept it here too"
    )
    return LogFinding(statement.sequence, Sentence(says, number=statement.sequence, who=who))


def facts_to_accept(logs: Sequence[ExecutionLog], found: LogVerification) -> JsonObject:
    return {"records": len(logs), "fingerprint": fingerprint(logs), "findings": list(found.findings)}


def _findings_after(
    statement: ExecutionLog | None, logs: Sequence[ExecutionLog], start: LogPlace | None
) -> list[LogFinding]:
    """`start` is where the records ended that were moved out."""
    count = accepted_count(statement)
    before, after = logs[:count], logs[count:]
    found = [first_break(after, after=before[-1] if before else start)]
    if statement and fingerprint(before) != statement.arguments.get("fingerprint"):
        changed = Sentence(
            "records were changed after record {number} accepted them as they were", number=statement.sequence
        )
        found.insert(0, first_break(before, after=start) or LogFinding(statement.sequence, changed))
    return [finding for finding in found if finding]


def accepted_count(statement: ExecutionLog | None) -> int:
    """How many records from the beginning of the log are accepted as they were when this was written."""
    count = statement.arguments.get("records") if statement else 0
    return count if isinstance(count, int) else 0
