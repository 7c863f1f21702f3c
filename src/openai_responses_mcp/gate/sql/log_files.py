"""The files beside the audit log: its head, and archives of records that were moved out of it.

The head is a small file. It is written in place, in one piece that is smaller than a block of the disk, so that
neither a kill nor a power cut leaves half of it. It is not forced to the disk: after a power cut it may be older than
the log, and then that is a finding. A file that is no head is not changed until a person accepts the loss.

An archive is written beside its place and forced to the disk before it gets its name, so that a file with this name is
whole.
"""

import errno
import glob
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.audit.archiving import ArchiveFile, records_in, text_of
from openai_responses_mcp.gate.audit.records import (
    BEGINNING,
    LOSS_ACCEPTED,
    UNREADABLE,
    AuditHead,
    ExecutionLog,
    HashAt,
    Head,
    LogPlace,
    announced,
    confirmed,
    kept_finding,
)
from openai_responses_mcp.gate.errors import StoreUnavailable, config_error
from openai_responses_mcp.gate.json_values import OwnJson
from openai_responses_mcp.gate.sql.own_files import written_beside

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no fcntl; there the database's own lock must do
    fcntl = None  # type: ignore[assignment]

_SIZE = 512
_OWNER_ONLY = 0o600


class HeadFile(AuditHead):
    def __init__(self, path: str | os.PathLike[str], *, is_sole_writer: bool = True) -> None:
        """A path that no file can have: `AGENTS-E-RUNNER-CONFIG`."""
        self._path = Path(path)
        self._is_sole_writer = is_sole_writer
        if b"\0" in _encoded(self._path):
            raise config_error(Sentence("audit_head is not a path that a file can have"))

    @property
    def is_sole_writer(self) -> bool:
        return self._is_sole_writer

    def read(self) -> Head | None:
        try:
            with self._opened(os.O_RDONLY) as descriptor:
                return _head_in(descriptor)
        except FileNotFoundError:
            return None
        except OSError:
            return UNREADABLE

    def announce(self, before: LogPlace, end: LogPlace, hash_at: HashAt, archived_to: int = 0) -> None:
        with _translated(), self._opened(os.O_RDWR | os.O_CREAT) as descriptor:
            known, is_sole = _head_in(descriptor), self._is_sole_writer
            if known is not UNREADABLE:
                head = announced(known, before, end, hash_at, is_sole_writer=is_sole, archived_to=archived_to)
                _write(descriptor, head)

    def confirm(self, record: ExecutionLog) -> None:
        with _translated(), self._opened(os.O_RDWR | os.O_CREAT) as descriptor:
            known, is_accepting = _head_in(descriptor), record.event == LOSS_ACCEPTED
            head = confirmed(known, record, is_accepting=is_accepting)
            if head is not None and (is_accepting or known is not UNREADABLE):
                _write(descriptor, head)

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        descriptor = os.open(self._path, flags, _OWNER_ONLY)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_SH if flags == os.O_RDONLY else fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _encoded(path: Path) -> bytes:
    try:
        return os.fsencode(path)
    except UnicodeError:
        return b"\0"


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreUnavailable(
            Sentence("The head of the audit log cannot be written: {why}", why=exc.strerror or "no reason given")
        ) from exc


def _write(descriptor: int, head: Head) -> None:
    facts = {
        "end": head.end,
        "before": head.before,
        "confirmed": head.is_confirmed,
        "finding": head.finding,
        "accepted": head.accepted,
        "accepted_to": head.accepted_to,
        "archived_to": head.archived_to,
    }
    os.lseek(descriptor, 0, os.SEEK_SET)
    if os.write(descriptor, json.dumps(facts).encode().ljust(_SIZE)) < _SIZE:
        # Half a head would count as damage. Only the first one can find the disk full: later ones overwrite it.
        os.truncate(descriptor, 0)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.truncate(descriptor, _SIZE)


def _head_in(descriptor: int) -> Head | None:
    """None for an empty file: its first head was never written."""
    text = os.read(descriptor, _SIZE + 1)
    if not text:
        return None
    try:
        facts: OwnJson = json.loads(text)
        finding, end = facts["finding"], _place(*facts["end"])
        is_old = "accepted" not in facts
        return Head(
            end,
            _place(*facts["before"]),
            facts["confirmed"] is True,
            finding and kept_finding(*finding),
            BEGINNING if is_old else _place(*facts["accepted"]),
            end.sequence if is_old else int(facts["accepted_to"]),
            int(facts.get("archived_to", 0)),
        )
    except (ValueError, KeyError, TypeError):
        return UNREADABLE


def _place(sequence: object, hash: object) -> LogPlace:
    if type(sequence) is not int or not isinstance(hash, str):
        raise ValueError("no place in a log")
    return LogPlace(sequence, hash)


class ArchiveOnDisk(ArchiveFile):
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    @property
    def name(self) -> str:
        return self._path.name

    def read(self) -> list[ExecutionLog] | None:
        try:
            # A record can hold half a surrogate pair. A newline in it is escaped.
            return records_in(self._path.read_bytes().decode("utf-8", "surrogatepass"))
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise config_error(Sentence("{file} cannot be read: {why}", file=self._path, why=exc.strerror)) from None
        except ValueError:
            raise config_error(Sentence("{file} is not an archive of a log, or is cut off", file=self._path)) from None

    def write(self, records: Sequence[ExecutionLog]) -> None:
        content = text_of(records).encode("utf-8", "surrogatepass")
        try:
            # Left by archives that were killed. One that is being written now fails, and can be tried again.
            for left in self._path.parent.glob(f"{glob.escape(self._path.name)}.*.new"):
                left.unlink(missing_ok=True)
            with written_beside(self._path, content) as new:
                # Unlike a rename, this fails if the name is taken.
                os.link(new, self._path)
            _sync_folder(self._path.parent)
        except OSError as exc:
            raise config_error(Sentence("{file} cannot be written: {why}", file=self._path, why=exc.strerror)) from None


def _sync_folder(folder: Path) -> None:
    """Otherwise a power cut could lose the new name."""
    if os.name != "posix":  # pragma: no cover - Windows cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
