"""Records that were moved out of the log, in a file of their own.

It is written beside its place and forced to the disk before it gets its name, so that a file with this name is whole.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from openai_responses_mcp.gate.audit.archiving import ArchiveFile, records_in, text_of
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.errors import AgentsError

_OWNER_ONLY = 0o600


class ArchiveOnDisk(ArchiveFile):
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    @property
    def name(self) -> str:
        return self._path.name

    def read(self) -> list[ExecutionLog] | None:
        try:
            # Half a surrogate pair can stand in a record, and no newline of it in a line.
            return records_in(self._path.read_bytes().decode("utf-8", "surrogatepass"))
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise self._problem(f"cannot be read: {exc.strerror}") from None
        except ValueError:
            raise self._problem("is not an archive of a log, or is cut off") from None

    def write(self, records: Sequence[ExecutionLog]) -> None:
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(text_of(records).encode("utf-8", "surrogatepass"))
                opened.flush()
                os.fsync(descriptor)
            # Unlike a rename, this fails if the name is taken.
            os.link(beside, self._path)
            _sync_folder(self._path.parent)
        except OSError as exc:
            raise self._problem(f"cannot be written: {exc.strerror}") from None
        finally:
            beside.unlink(missing_ok=True)

    def _problem(self, what: str) -> AgentsError:
        return AgentsError("AGENTS-E-RUNNER-CONFIG", f"{self._path} {what}")


def _sync_folder(folder: Path) -> None:
    """Else a power cut could take the name away again."""
    if os.name != "posix":  # pragma: no cover - Windows cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
