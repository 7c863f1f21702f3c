"""Files that belong to their owner only, and files that are never half written.

Windows has owners and no modes: there the mode only keeps the file writable, and who may read it is up to its folder.
"""

import os
from pathlib import Path

_OWNER_ONLY = 0o600


def make_private(file: Path) -> None:
    """A missing file is created with its mode, so that others cannot read it even for a moment."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
    try:
        # Through the open file where the system can do that: the name may lead elsewhere by now.
        os.chmod(descriptor if os.chmod in os.supports_fd else file, _OWNER_ONLY)
    except PermissionError:
        # Somebody else's file, who has let us in.
        pass
    finally:
        os.close(descriptor)


def replace_private(file: Path, text: str) -> None:
    """Write a new file beside it, then put that in its place."""
    beside = file.with_name(f"{file.name}.{os.getpid()}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)
    os.replace(beside, file)
