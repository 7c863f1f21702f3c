"""Checking a whole log: its chain, its head, its story, and what people have accepted.

An acceptance is a record like any other. It says how many records there were and what they looked like, so that it
covers these and nothing that happens to them later.
"""

from collections.abc import Sequence

from openai_responses_mcp.agents.audit.chain import fingerprint, first_break, hash_of
from openai_responses_mcp.agents.audit.models import LOSS_ACCEPTED, ExecutionLog, Finding, LogVerification
from openai_responses_mcp.agents.audit.story import contradictions
from openai_responses_mcp.agents.json_values import JsonObject


def verification(logs: Sequence[ExecutionLog], head_finding: Finding | None, uncovered: str) -> LogVerification:
    acceptances = [log for log in logs if log.event == LOSS_ACCEPTED and hash_of(log) == log.hash]
    findings = [*_findings_after(acceptances[-1] if acceptances else None, logs)]
    findings += [head_finding] if head_finding else []
    findings += _contradictions(logs, acceptances)
    return LogVerification(
        is_intact=not findings,
        records=len(logs),
        first_bad=findings[0].sequence if findings else None,
        problem=findings[0].problem if findings else "",
        uncovered=uncovered,
        findings=tuple(finding.problem for finding in findings),
        accepted=tuple(f"{log.reason}; accepted in record {log.sequence}: {log.comment}" for log in acceptances),
    )


def facts_to_accept(logs: Sequence[ExecutionLog], found: LogVerification) -> JsonObject:
    return {"records": len(logs), "fingerprint": fingerprint(logs), "findings": list(found.findings)}


def _findings_after(acceptance: ExecutionLog | None, logs: Sequence[ExecutionLog]) -> list[Finding]:
    count = _accepted_count(acceptance)
    before, after = logs[:count], logs[count:]
    found = [first_break(after, after=before[-1] if before else None)]
    if acceptance and fingerprint(before) != acceptance.arguments.get("fingerprint"):
        changed = f"records were changed after record {acceptance.sequence} accepted them as they were"
        found.insert(0, first_break(before) or Finding(acceptance.sequence, changed))
    return [finding for finding in found if finding]


def _accepted_count(acceptance: ExecutionLog | None) -> int:
    count = acceptance.arguments.get("records") if acceptance else 0
    return count if isinstance(count, int) else 0


def _contradictions(logs: Sequence[ExecutionLog], acceptances: Sequence[ExecutionLog]) -> list[Finding]:
    count = _accepted_count(acceptances[-1] if acceptances else None)
    last = logs[count - 1].sequence if 0 < count <= len(logs) else 0
    return [finding for finding in contradictions(logs) if finding.sequence > last]
