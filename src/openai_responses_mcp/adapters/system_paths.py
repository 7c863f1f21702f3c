"""Paths as this machine resolves them, for a server that runs here."""

import errno
import os
import re
import sys
from collections import deque

from openai_responses_mcp.gate.policy.rules import Paths

# Longer paths cannot be opened, and would take long to resolve.
_LONGEST_PATH = 4096
# As many as Linux follows.
_MOST_LINKS = 40

# Some servers read a URL, strip quotes and white space, turn \\ into /, or expand a variable. Others do not.
_READ_IN_MANY_WAYS = re.compile(
    r"[a-z][a-z0-9+.-]*:|[\s\"'$%]|.*[\s\"']\Z|.*[\x00-\x1f\x7f]" + ("" if os.sep == "\\" else r"|.*\\"),
    re.IGNORECASE | re.DOTALL,
)
_DRIVE = re.compile(r"[a-z]:[/\\]", re.IGNORECASE)
# Where these lead depends on the process that looks.
_OF_THE_PROCESS = re.compile(r"/proc(/|\Z)|/dev/(fd(/|\Z)|std)", re.IGNORECASE)

# Links in a circle, a folder that may not be entered, a NUL, half a surrogate pair.
_LEADS_NOWHERE = (OSError, ValueError)


class _InDoubt(Exception):
    """Another process may read another file here."""


class SystemPaths(Paths):
    def __init__(self) -> None:
        self._anchors: dict[str, str] = {}

    @property
    def ignores_case(self) -> bool:
        return sys.platform in ("win32", "darwin")

    def resolved(self, path: str, directory: str | None) -> str | None:
        try:
            whole = _whole(path, directory)
            found = _followed(whole)
            # Programs that drop `..` with the name before it read another file, if that name is a link.
            if ".." in _names(whole) and _followed(os.path.normpath(whole)) != found:
                return None
            return found
        except (_InDoubt, *_LEADS_NOWHERE):
            return None

    def anchor(self, folder: str, directory: str) -> str | None:
        try:
            whole = os.path.join(os.path.abspath(directory), os.path.expanduser(folder))
            if whole not in self._anchors:
                self._anchors[whole] = _real(whole).replace(os.sep, "/")
        except _LEADS_NOWHERE:
            return None
        return self._anchors[whole]


def _whole(path: str, directory: str | None) -> str:
    is_drive = os.sep == "\\" and _DRIVE.match(path) is not None
    if len(path) > _LONGEST_PATH or (_READ_IN_MANY_WAYS.match(path) and not is_drive):
        raise _InDoubt
    if path == "~" or path.startswith(("~/", f"~{os.sep}")):
        if ".." in _names(path):
            raise _InDoubt
        return os.path.expanduser(path)
    if os.path.isabs(path):
        return path
    # ~name may be the home of a user, or a file that begins with ~.
    if directory is None or path.startswith("~"):
        raise _InDoubt
    return os.path.join(directory, path)


def _names(path: str) -> list[str]:
    return path.replace(os.sep, "/").split("/")


def _followed(path: str) -> str:
    """The path without links. Each step is checked, because a link may lead through a place of another process."""
    drive, rest = os.path.splitdrive(path)
    names, at, links = deque(_names(rest)), drive, 0
    while names:
        name = names.popleft()
        if name in ("", "."):
            continue
        at = at.rpartition("/")[0] if name == ".." else f"{at}/{name}"
        if _OF_THE_PROCESS.match(at):
            raise _InDoubt
        target = _link_at(at) if name != ".." else None
        if target is not None:
            links += 1
            if links > _MOST_LINKS:
                raise _InDoubt
            names.extendleft(reversed(_names(target)))
            at = drive if os.path.isabs(target) else at.rpartition("/")[0]
    return at or "/"


def _link_at(path: str) -> str | None:
    try:
        return os.readlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        if exc.errno == errno.EINVAL:
            return None
        raise


def _real(path: str) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        # A file that does not exist yet: the part of its path that exists is resolved.
        return os.path.realpath(path)
