"""The log as calls: the records of each call, who decided, and the outcome."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from openai_responses_mcp.domain.texts import Language
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.reasons import reason_in_record, shown

Decided = Literal["allowed", "refused", "asked", "observed"]
DecidedBy = Literal["policy", "person", "standing", "client", "nobody"]

_NOT_BY_A_PERSON: Mapping[str, DecidedBy] = {"unasked": "client", "expired": "nobody", "withdrawn": "nobody"}
Outcome = Literal["done", "failed", "unknown", "waiting", "none"]


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """All records of one call, oldest first. Its number is the sequence number of the first."""

    records: tuple[ExecutionLog, ...]

    @property
    def number(self) -> int:
        return self.records[0].sequence

    @property
    def first(self) -> ExecutionLog:
        return self.records[0]

    @property
    def decided(self) -> Decided:
        approval = self._last("approval")
        if self._last("observed"):
            return "observed"
        if approval:
            return "allowed" if approval.decision == "approved" else "refused"
        if self._decision == "needs_human" or (not self._decision and self._last("approval_requested")):
            return "asked"
        return "allowed" if self._decision == "allow" else "refused"

    @property
    def by(self) -> DecidedBy:
        if approval := self._last("approval"):
            return _NOT_BY_A_PERSON.get(approval.decision, "person")
        return "standing" if self._last("standing_used") and self._decision == "allow" else "policy"

    @property
    def who(self) -> str:
        """The name of the person who decided, if known."""
        approval = self._last("approval")
        return approval.who if approval and self.by == "person" else ""

    @property
    def outcome(self) -> Outcome:
        if end := self._last("outcome"):
            return "failed" if end.decision in ("failed", "error") else "done"
        if self._last("started"):
            return "unknown"
        return "waiting" if self.decided == "asked" else "none"

    @property
    def _decision(self) -> str:
        decision = self._last("decision")
        return decision.decision if decision else ""

    def _last(self, event: str) -> ExecutionLog | None:
        """The last record of this event. A second decision is recorded as `decision:2`."""
        return next((one for one in reversed(self.records) if one.event.partition(":")[0] == event), None)


def reason_of(log: ExecutionLog, language: Language) -> str:
    """The reason in the given language, or the text of the record if that says more."""
    for says in {one.says for one in log.reasons}:
        if reason_in_record(log.reasons, says) == log.reason:
            return shown(log.reasons, says, language)
    return log.reason


def calls_in(logs: Iterable[ExecutionLog]) -> list[LoggedCall]:
    """Oldest first, without records that belong to no call."""
    found: dict[tuple[str, str], list[ExecutionLog]] = {}
    for log in logs:
        if log.tool_name and log.event not in ("standing_made", "standing_ended"):
            found.setdefault((log.run_id, log.tool_call_id), []).append(log)
    return [LoggedCall(tuple(records)) for records in found.values()]
