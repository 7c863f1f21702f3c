"""What the system lets this process have: descriptors and memory. Nothing here opens a file that must be there."""

import os
import sys
from collections.abc import Callable

if sys.platform == "win32":

    def _limit(name: str) -> int | None:
        return None

else:
    import resource

    def _limit(name: str) -> int | None:
        """The limit in force; None where there is none."""
        soft, _ = resource.getrlimit(getattr(resource, name))
        return None if soft == resource.RLIM_INFINITY else soft


LEAST_DESCRIPTORS = 32
LEAST_MEMORY_MIB = 512

# Where the system lists the descriptors of this process: Linux, macOS and BSD.
_LISTS = ("/proc/self/fd", "/dev/fd")
_USUALLY_OPEN = 16


def shortfalls(limit_of: Callable[[str], int | None] = _limit) -> list[str]:
    """What is missing for the server to work, one sentence each."""
    descriptors, memory = limit_of("RLIMIT_NOFILE"), limit_of("RLIMIT_AS")
    found = []
    if descriptors is not None and descriptors < LEAST_DESCRIPTORS:
        found.append(
            f"only {descriptors} files and connections may be open at once (ulimit -n); calls may fail,"
            f" at least {LEAST_DESCRIPTORS} are needed"
        )
    if memory is not None and memory < LEAST_MEMORY_MIB * 1024 * 1024:
        found.append(
            f"only {memory // (1024 * 1024)} MiB of memory may be reserved (ulimit -v); the server may crash,"
            f" at least {LEAST_MEMORY_MIB} MiB are needed"
        )
    return found


def affordable_connections(wanted: int, limit_of: Callable[[str], int | None] = _limit) -> int:
    """As many as wanted, but at most half of the descriptors that are left: names are looked up and files are read too."""
    limit = limit_of("RLIMIT_NOFILE")
    return wanted if limit is None else max(1, min(wanted, (limit - _open_descriptors()) // 2))


def _open_descriptors() -> int:
    for path in _LISTS:
        try:
            return len(os.listdir(path))
        except OSError:
            continue
    return _USUALLY_OPEN
