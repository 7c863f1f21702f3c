"""The head of the audit log in a small file next to it, written by renaming, so that it is never half written.

Each record is announced before it is committed and confirmed after. A process that dies in between leaves an announced
head, and then the log may end with that record or with the one before it. On a store that other machines write to
(`is_sole_writer` false) the log may have grown past the head; it must still contain it.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openai_responses_mcp.agents.adapters.private_files import replace_private
from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.audit.ports import AuditHead
from openai_responses_mcp.agents.errors import StoreUnavailable

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no fcntl; there the database's own lock must do
    fcntl = None  # type: ignore[assignment]


class HeadFile(AuditHead):
    def __init__(self, path: str | os.PathLike[str], *, is_sole_writer: bool = True) -> None:
        self._path = Path(path)
        self._is_sole_writer = is_sole_writer

    def announce(self, record: ExecutionLog) -> None:
        self._advance(record, is_confirmed=False)

    def confirm(self, record: ExecutionLog) -> None:
        self._advance(record, is_confirmed=True)

    def problem_with(self, logs: Sequence[ExecutionLog]) -> tuple[int, str] | None:
        head = self._read()
        if head is None:
            return (1, f"the head file {self._path.name} is missing or unreadable") if logs else None
        number: int = head["sequence"]
        last = len(logs)
        if not head["confirmed"] and last == number - 1 and _hash_at(logs, last) == head["previous_hash"]:
            return None
        if last < number:
            return last + 1, f"the tail from record {last + 1} was cut, or an old copy was put back"
        if _hash_at(logs, number) != head["hash"]:
            return number, f"record {number} is not the one that was written: the chain was made anew"
        if last > number and self._is_sole_writer:
            return number + 1, f"record {number + 1} was inserted after the end of the log"
        return None

    def _advance(self, record: ExecutionLog, *, is_confirmed: bool) -> None:
        try:
            with self._locked():
                known = self._read()
                if is_confirmed and known is not None and known["sequence"] > record.sequence:
                    return
                self._write(record, is_confirmed)
        except OSError as exc:
            raise StoreUnavailable(f"The head of the audit log cannot be written: {type(exc).__name__}") from exc

    def _write(self, record: ExecutionLog, is_confirmed: bool) -> None:
        head = {
            "sequence": record.sequence,
            "hash": record.hash,
            "previous_hash": record.previous_hash,
            "confirmed": is_confirmed,
        }
        replace_private(self._path, json.dumps(head))

    def _read(self) -> dict[str, Any] | None:
        try:
            head = json.loads(self._path.read_text())
            return {name: head[name] for name in ("sequence", "hash", "previous_hash", "confirmed")}
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._path.with_name(f"{self._path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _hash_at(logs: Sequence[ExecutionLog], number: int) -> str:
    return logs[number - 1].hash if number else ""
