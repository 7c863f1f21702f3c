"""Whether the records tell a story that can be true: nothing starts before it was let through.

Whoever can write to the store can let a call through without asking anybody, or allow it from now on. The gate then
finds nothing wrong, and the call leaves its own records; but the records that should come before them are missing.
"""

import re
from collections.abc import Iterator, Sequence

from openai_responses_mcp.agents.audit.models import ExecutionLog, Finding

_Call = tuple[str, str]

# How a standing approval is named at the end of a reason.
_STANDING = re.compile(r"\((sta_\w+)\)\Z", re.ASCII)
# Whoever writes by hand can write anything.
_NUMBER = re.compile(r"[0-9]{1,9}")


def contradictions(logs: Sequence[ExecutionLog]) -> Iterator[Finding]:
    decisions: dict[_Call, str] = {}
    asked: dict[_Call, int] = {}
    approvals: dict[_Call, tuple[int, str]] = {}
    started: set[_Call] = set()
    made: set[str] = set()
    for log in logs:
        call = (log.run_id, log.tool_call_id)
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
            if reason := _reason_against(decisions.get(call), approval):
                yield _finding(log, f"started, and {reason}")
        elif event == "standing_made":
            made.add(log.tool_call_id)
        elif event == "standing_used" and not set(_STANDING.findall(log.reason)) & made:
            yield _finding(log, "used a standing approval, and nobody is recorded to have made it")
        elif event == "outcome" and call not in started:
            yield _finding(log, "has an outcome, and never started")


def _reason_against(decision: str | None, approval: str | None) -> str | None:
    if decision is None:
        return "no decision was recorded"
    if decision == "deny":
        return "the gate had refused it"
    if decision == "needs_human" and approval != "approved":
        return "a human had denied it" if approval else "needed a human, and no approval was recorded"
    return None


def _finding(log: ExecutionLog, what: str) -> Finding:
    tool = f"{log.tool_kind} {log.tool_name}".strip()
    return Finding(log.sequence, f"call {log.tool_call_id} of {log.run_id} ({tool}) {what}")


def unfinished(logs: Sequence[ExecutionLog]) -> list[ExecutionLog]:
    """Calls that started and of which no outcome is recorded: running at this moment, or cut off by a crash."""
    over = {(log.run_id, log.tool_call_id) for log in logs if log.event == "outcome"}
    return [log for log in logs if log.event == "started" and (log.run_id, log.tool_call_id) not in over]
