"""Paths as this machine resolves them, for a server that runs here."""

import os
import sys

from openai_responses_mcp.agents.policy.ports import Paths

# What is longer cannot be opened as it is, and would take long to resolve.
_LONGEST_PATH = 4096

# Links in a circle, a folder that may not be entered, a NUL, half a surrogate pair.
_CANNOT_BE_TOLD = (OSError, ValueError)


class SystemPaths(Paths):
    def __init__(self) -> None:
        self._anchors: dict[str, str] = {}

    @property
    def ignores_case(self) -> bool:
        return sys.platform in ("win32", "darwin")

    def readings(self, path: str, directory: str) -> frozenset[str]:
        if len(path) > _LONGEST_PATH:
            return frozenset()
        try:
            return frozenset(_resolved(form) for form in _forms(path, directory))
        except _CANNOT_BE_TOLD:
            return frozenset()

    def anchor(self, folder: str, directory: str) -> str | None:
        try:
            whole = os.path.join(os.path.abspath(directory), os.path.expanduser(folder))
            if whole not in self._anchors:
                self._anchors[whole] = _resolved(whole)
        except _CANNOT_BE_TOLD:
            return None
        return self._anchors[whole]


def _forms(path: str, directory: str) -> set[str]:
    """The path as the system reads it, and as programs do that drop `..` with the name before it."""
    expanded = os.path.expanduser(path)
    # ~/… is the home folder. ~name may be somebody's home, or a file that begins with ~.
    names = {expanded} if path[1:2] in ("", "/", os.sep) else {expanded, path}
    here = os.path.realpath(directory)
    whole = {os.path.join(here, name) for name in names}
    return whole | {os.path.normpath(form) for form in whole}


def _resolved(path: str) -> str:
    return _real(path).replace(os.sep, "/")


def _real(path: str) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        # A file that does not exist yet: the part of its path that exists is resolved.
        return os.path.realpath(path)
