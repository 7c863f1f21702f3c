"""Finds skills on disk. Nothing outside the folder is read, not even through links. Depth, number and size are limited.

A link within the folder is not followed, because its target is searched anyway; a link that leads out is a problem.
Files are opened without following links and checked before they are read: a pipe or a device could block the caller.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from openai_responses_mcp.adapters.bounded_file import read_text
from openai_responses_mcp.agents.skills.manifests import FoundSkill
from openai_responses_mcp.gate.errors import AgentsError

SKILL_FILE = "SKILL.md"
MAX_DEPTH = 5
MAX_ENTRIES = 10_000
MAX_SKILL_BYTES = 512 * 1024
MAX_FILES_PER_SKILL = 200
MAX_FILE_BYTES = 1024 * 1024


class _Unreadable(Exception):
    """Why a file is not read."""


@dataclass(slots=True)
class _Search:
    """One search through a folder, with its remaining budget and its results."""

    root: Path
    most_skills: int
    entries_left: int = MAX_ENTRIES
    found: list[FoundSkill] = field(default_factory=list)
    problems: list[AgentsError] = field(default_factory=list)

    def note(self, path: Path, reason: str) -> None:
        place = path.relative_to(self.root).as_posix()
        self.problems.append(AgentsError("AGENTS-E-SKILL-PARSE", f"{place}: {reason}", details={"path": str(path)}))

    def look_into(self, folder: Path, depth: int) -> None:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as exc:
            self.note(folder, f"cannot be opened ({exc.strerror or 'no reason given'})")
            return
        self.entries_left -= len(entries)
        if self.entries_left < 0:
            self.note(folder, f"there are more than {MAX_ENTRIES} files and folders")
            return
        if any(entry.name == SKILL_FILE for entry in entries):
            self._take(folder / SKILL_FILE)
            # Everything in a skill's folder belongs to the skill.
            return
        for entry in entries:
            path = Path(entry.path)
            if entry.is_symlink():
                if os.path.isdir(path) and not Path(os.path.realpath(path)).is_relative_to(self.root):
                    self.note(path, "is a link that leads out of the folder")
            elif entry.is_dir(follow_symlinks=False):
                if depth + 1 < MAX_DEPTH:
                    self.look_into(path, depth + 1)
                elif self._holds_skill(path):
                    self.note(path, f"lies deeper than {MAX_DEPTH} folders")

    def _take(self, path: Path) -> None:
        if len(self.found) == self.most_skills:
            self.note(path, f"there are more than {self.most_skills} skills")
            return
        try:
            text = _text_of(path, MAX_SKILL_BYTES)
        except _Unreadable as exc:
            self.note(path, str(exc))
            return
        place = path.relative_to(self.root).as_posix()
        self.found.append(FoundSkill(place, str(path), text, tuple(_files_of(path.parent))))

    def _holds_skill(self, folder: Path) -> bool:
        for _, folders, files in os.walk(folder):
            self.entries_left -= len(folders) + len(files)
            if SKILL_FILE in files or self.entries_left < 0:
                return True
        return False


def find_skills(folder: str, most_skills: int) -> tuple[list[FoundSkill], list[AgentsError]]:
    """All skills below the folder in a stable order, and a problem for each that cannot be read.

    No such folder: `AGENTS-E-SKILL-NOT-LOADED`.
    """
    try:
        root = Path(os.path.realpath(folder))
        is_folder = root.is_dir()
    except ValueError:  # no folder can have such a name
        is_folder = False
    if not is_folder:
        raise AgentsError("AGENTS-E-SKILL-NOT-LOADED", f"There is no folder {folder}", details={"path": str(folder)})
    search = _Search(root, most_skills)
    search.look_into(root, depth=0)
    return search.found, search.problems


def read_skill_file(source_path: str, name: str) -> str:
    """A file next to the SKILL.md. Any other name: `AGENTS-E-SKILL-NOT-FOUND`. Not text: `AGENTS-E-SKILL-PARSE`."""
    folder = Path(source_path).parent
    if name not in _files_of(folder):
        raise AgentsError("AGENTS-E-SKILL-NOT-FOUND", "The skill has no file of this name")
    try:
        return _text_of(folder / name, MAX_FILE_BYTES)
    except _Unreadable as exc:
        raise AgentsError("AGENTS-E-SKILL-PARSE", f"{name}: {exc}") from exc


def _files_of(folder: Path) -> list[str]:
    """The names of the files next to a SKILL.md that a model can ask for, without links."""
    names: list[str] = []
    for path in _walk(folder, MAX_DEPTH):
        if len(names) == MAX_FILES_PER_SKILL:
            break
        name = path.relative_to(folder).as_posix()
        if name != SKILL_FILE:
            names.append(name)
    return names


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)[: MAX_FILES_PER_SKILL + 1]
    except OSError:
        return
    for entry in entries:
        if entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        elif entry.is_dir(follow_symlinks=False) and depth > 1:
            yield from _walk(Path(entry.path), depth - 1)


def _text_of(path: Path, most_bytes: int) -> str:
    try:
        return read_text(str(path), most_bytes=most_bytes, follows_link=False).replace("\r\n", "\n")
    except OSError as exc:
        if path.is_symlink():
            raise _Unreadable("is a link") from exc
        raise _Unreadable(f"cannot be opened ({exc.strerror or 'no reason given'})") from exc
    except ValueError as exc:
        raise _Unreadable(str(exc)) from exc
