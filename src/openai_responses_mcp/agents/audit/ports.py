"""Where the log is kept, and where its head is. Stores raise `StoreUnavailable` and nothing else of their own."""

from collections.abc import Sequence
from typing import Protocol

from openai_responses_mcp.agents.audit.heads import HashAt, Head
from openai_responses_mcp.agents.audit.models import ExecutionLog, Place


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


class AuditHead(Protocol):
    """Where the log ends, kept outside the log. Raises `StoreUnavailable`."""

    @property
    def is_sole_writer(self) -> bool:
        """Whether all writers of the log announce their records here."""
        ...

    def read(self) -> Head | None:
        """None when there is none yet; what cannot be read is `UNREADABLE`."""
        ...

    def announce(self, before: Place, end: Place, hash_at: HashAt) -> None:
        """Records are about to follow `before` and to end at `end`. A log that does not fit is kept as a finding."""
        ...

    def confirm(self, record: ExecutionLog) -> None:
        """The record is in the log. One that accepts a loss takes the finding away."""
        ...
