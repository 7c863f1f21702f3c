"""Files that belong to their owner only, and files that are never half written.

Windows has owners and no modes: there the mode only keeps the file writable, and who may read it is up to its folder.
"""

import os
from contextlib import suppress
from pathlib import Path

_OWNER_ONLY = 0o600
_OTHERS = 0o077


def create_private(file: Path) -> bool:
    """With its mode from the start, so that others cannot read it even for a moment. False when it is there already."""
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, _OWNER_ONLY))
    except FileExistsError:
        return False
    return True


def make_private(file: Path) -> None:
    """Only for a file that is known to be ours."""
    if os.stat(file).st_mode & _OTHERS:
        # A file of another user that we may use stays as it is.
        with suppress(PermissionError):
            os.chmod(file, _OWNER_ONLY)


def replace_private(file: Path, text: str) -> None:
    """Write a new file beside it, then put that in its place."""
    beside = file.with_name(f"{file.name}.{os.getpid()}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            # Else a power cut may leave the new name with nothing in it.
            os.fsync(descriptor)
        os.replace(beside, file)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
