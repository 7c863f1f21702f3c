"""Globs on paths. A glob is cut in two: a folder, which is looked up like any path, and the names below it."""

import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase

from openai_responses_mcp.agents.policy.rules import PathGlob

_MAGIC = frozenset("*?[")


def is_path(glob: str) -> bool:
    return "/" in glob or glob.startswith("~")


def path_glob(text: str) -> PathGlob:
    """Raises ValueError."""
    if "://" in text:
        raise ValueError("is an address and would be read as a path; write {matches: …} for it")
    if text.startswith("~") and text[1:2] not in ("", "/"):
        raise ValueError("begins with ~, which stands for your home folder and needs a / after it")
    names = [name for name in text.split("/") if name not in ("", ".")]
    place = next((place for place, name in enumerate(names) if _MAGIC & set(name)), len(names))
    rest = tuple(names[place:])
    if ".." in rest:
        raise ValueError("has .. after a wildcard; write where that leads to")
    if any("**" in name and name != "**" for name in rest):
        raise ValueError("has ** beside other characters; ** stands alone between slashes")
    root = "/" if text.startswith("/") else ""
    return PathGlob(root + "/".join(names[:place]), rest)


def is_below(path: str, anchor: str, rest: Sequence[str]) -> bool:
    """Whether the path leads from the anchor on through names that fit."""
    names, start = _names(path), _names(anchor)
    return names[: len(start)] == start and _fit(names[len(start) :], rest)


def folded(path: str) -> str:
    """One spelling for all that a file system which ignores case may take for the same name."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _fit(names: Sequence[str], globs: Sequence[str]) -> bool:
    """Only the last `**` has ever to be tried again, so the time is bounded by the product of both lengths."""
    at, glob_at, star_at, retry_at = 0, 0, -1, 0
    while at < len(names):
        if glob_at < len(globs) and globs[glob_at] == "**":
            star_at, retry_at = glob_at, at
            glob_at += 1
        elif glob_at < len(globs) and fnmatchcase(names[at], globs[glob_at]):
            at, glob_at = at + 1, glob_at + 1
        elif star_at >= 0:
            retry_at += 1
            at, glob_at = retry_at, star_at + 1
        else:
            return False
    return all(glob == "**" for glob in globs[glob_at:])
