"""The chain of the audit log: how a record is linked to the one before, and where a chain is broken."""

from collections.abc import Sequence
from dataclasses import replace

from openai_responses_mcp.agents.audit.models import ExecutionLog, Finding, Place
from openai_responses_mcp.agents.secrets.hashing import digest


def linked(log: ExecutionLog, previous: ExecutionLog | Place | None) -> ExecutionLog:
    """The record with its number, the hash before it and its own."""
    sequence, before = (previous.sequence + 1, previous.hash) if previous else (1, "")
    return replace(log, sequence=sequence, previous_hash=before, hash=_hash(log, sequence, before))


def hash_of(log: ExecutionLog) -> str:
    return _hash(log, log.sequence, log.previous_hash)


def _hash(log: ExecutionLog, sequence: int, previous_hash: str) -> str:
    return digest(
        sequence,
        previous_hash,
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
    )


def first_break(logs: Sequence[ExecutionLog], after: ExecutionLog | None = None) -> Finding | None:
    """The number of the first record that is not as it was written, and what happened to it.

    With `after`, the records are those that follow one which is known to be good.
    """
    previous = after
    for number, log in enumerate(logs, start=after.sequence + 1 if after else 1):
        if log.sequence > number:
            return Finding(number, f"record {number} was removed")
        if log.sequence < number:
            return Finding(number, f"a record was inserted after record {number - 1}")
        if hash_of(log) != log.hash:
            return Finding(number, f"record {number} was changed")
        if log.previous_hash != (previous.hash if previous else ""):
            problem = f"record {number} does not follow the one before it: reordered, replaced or inserted"
            return Finding(number, problem)
        previous = log
    return None


def fingerprint(logs: Sequence[ExecutionLog]) -> str:
    """A hash of the records as they are now, even if they were changed."""
    return digest([[log.sequence, log.hash, hash_of(log)] for log in logs])
