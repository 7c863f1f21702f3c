"""Where the log is kept, and where its head is. Stores raise `StoreUnavailable` and nothing else of their own."""

from collections.abc import Sequence
from typing import Protocol

from openai_responses_mcp.agents.audit.models import ExecutionLog


class ExecutionLogStore(Protocol):
    async def append(self, log: ExecutionLog) -> ExecutionLog:
        """Link the record to the last one and keep it for good; on return it survives a crash.

        A second record with the same run, call and event: `DuplicateRecord`.
        """
        ...

    async def query(self, run_id: str | None = None, since: str | None = None) -> list[ExecutionLog]:
        """In the order they were appended; `since` is inclusive."""
        ...


class AuditHead(Protocol):
    """Where the log ends, kept outside the log."""

    def announce(self, record: ExecutionLog) -> None:
        """The record is about to be appended."""
        ...

    def confirm(self, record: ExecutionLog) -> None:
        """The record is in the log."""
        ...

    def problem_with(self, logs: Sequence[ExecutionLog]) -> tuple[int, str] | None:
        """The first record at which the log is not the one that this head was kept for."""
        ...
