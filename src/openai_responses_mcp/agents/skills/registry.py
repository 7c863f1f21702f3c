"""Skills: folders with a SKILL.md, loaded, listed, described, and offered to a model as tools.

A bad skill is left out and named in `.problems`; the others load. `allowed-tools` and the like are kept but have no
effect: only the gate decides what runs.

Nothing outside the folder is read, not even through links. Depth, number and size are limited. A link within the folder
is not followed, because its target is searched anyway; a link that leads out is a problem. Files are opened without
following links and checked before they are read: a pipe or a device could block the caller.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from openai_responses_mcp.adapters.bounded_file import read_text
from openai_responses_mcp.agents.skills.manifests import (
    DEFAULT_INPUT_SCHEMA,
    LONGEST_DESCRIPTION,
    MOST_SKILLS,
    FoundSkill,
    IntrospectionTools,
    LoadedSkill,
    Skill,
    SkillDescriptor,
    SkillList,
    SkillManifest,
    SkillMetadataExtractor,
    SkillMode,
    SkillSummary,
    summary_of,
)
from openai_responses_mcp.agents.skills.parsing import (
    INPUT_HEADINGS,
    OUTPUT_HEADINGS,
    Section,
    section_named,
    sections_of,
    skill_id_for,
    split_front_matter,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.schema.documents import problem_in

DetailLevel = Literal["summary", "full"]
LONGEST_NAME = 64
LONGEST_COMPATIBILITY = 500


class SkillRegistry:
    """`skill_tool` makes a tool of the SDK from a skill, or raises `AGENTS-E-SKILL-SCHEMA`."""

    def __init__(self, skill_tool: Callable[[LoadedSkill], object], introspection_tools: IntrospectionTools) -> None:
        self._skill_tool = skill_tool
        self._introspection_tools = introspection_tools
        self._extractor = SkillMetadataExtractor(introspection_tools)

    async def load_from_directory(
        self, dir: str, mode: SkillMode = "function_tool", max_skills: int = MOST_SKILLS
    ) -> SkillList:
        if mode not in get_args(SkillMode):
            raise AgentsError("AGENTS-E-SKILL-NOT-LOADED", f"mode is one of {', '.join(get_args(SkillMode))}")
        if type(max_skills) is not int or max_skills < 1:
            raise AgentsError("AGENTS-E-SKILL-NOT-LOADED", "max_skills is a whole number from 1 up")
        return await asyncio.to_thread(self._load, dir, mode, max_skills)

    def list_skills(self, skills: Sequence[Skill]) -> list[SkillSummary]:
        return [
            SkillSummary(skill.descriptor.skill_id, skill.name, skill.manifest.overview, skill.manifest.tags)
            for skill in _loaded(skills)
        ]

    def describe_skill(
        self, skills: Sequence[Skill], skill_id: str, detail_level: DetailLevel = "summary"
    ) -> SkillManifest:
        """`summary` leaves out examples and constraints."""
        if detail_level not in get_args(DetailLevel):
            raise AgentsError("AGENTS-E-SKILL-NOT-FOUND", "detail_level is summary or full")
        known = {skill.descriptor.skill_id: skill.manifest for skill in _loaded(skills)}
        if skill_id not in known:
            raise AgentsError("AGENTS-E-SKILL-NOT-FOUND", f"No skill is called {skill_id}; list the skills again")
        return known[skill_id] if detail_level == "full" else summary_of(known[skill_id])

    def to_tools(self, skills: Sequence[Skill]) -> list[object]:
        return [self._skill_tool(skill) for skill in _loaded(skills)]

    def to_introspection_tools(self, skills: Sequence[Skill]) -> Sequence[object]:
        return self._introspection_tools(self.list_skills(skills), [one.manifest for one in _loaded(skills)])

    def _load(self, folder: str, mode: SkillMode, max_skills: int) -> SkillList:
        found, problems = find_skills(folder, max_skills)
        loaded: dict[str, LoadedSkill] = {}
        for one in found:
            try:
                skill = self._skill_from(one, mode)
                taken = loaded.setdefault(skill.descriptor.skill_id, skill)
                if taken is not skill:
                    message = f"{skill.name} is the name of another skill already: {taken.source_path}"
                    raise AgentsError("AGENTS-E-SKILL-PARSE", message)
                if len(skill.manifest.overview) > LONGEST_DESCRIPTION:
                    shown = f"only the first {LONGEST_DESCRIPTION} characters of its description are shown to a model"
                    facts = {"level": "warning", "path": one.source_path}
                    problems.append(AgentsError("AGENTS-E-SKILL-PARSE", f"{one.place}: {shown}", details=facts))
            except AgentsError as exc:
                details = {**exc.details, "path": one.source_path}
                problems.append(AgentsError(exc.code, f"{one.place}: {exc.message}", details=details))
        return SkillList(list(loaded.values()), problems)

    def _skill_from(self, found: FoundSkill, mode: SkillMode) -> LoadedSkill:
        yaml, body = split_front_matter(found.text)
        matter = None if yaml is None else _front_matter(yaml)
        sections = sections_of(body)
        name = str(matter["name"]).strip() if matter else sections[0].title if sections else ""
        if not matter and not name:
            raise AgentsError("AGENTS-E-SKILL-PARSE", "Nothing names the skill; write front matter, or a heading")
        skill_id = skill_id_for(name)
        if not skill_id or len(name) > LONGEST_NAME:
            raise AgentsError(
                "AGENTS-E-SKILL-PARSE", f"A name has letters or digits, and at most {LONGEST_NAME} characters"
            )
        descriptor = SkillDescriptor(
            skill_id=skill_id,
            mode=mode,
            input_schema=_schema_under(sections, INPUT_HEADINGS) or DEFAULT_INPUT_SCHEMA,
            output_schema=_schema_under(sections, OUTPUT_HEADINGS, is_optional=True),
        )
        manifest = self._extractor.extract_manifest(descriptor, found.text, matter)
        return LoadedSkill(descriptor, manifest, found.source_path, name, body, found.files, matter)


def _schema_under(sections: list[Section], names: frozenset[str], *, is_optional: bool = False) -> JsonObject | None:
    """The first fenced JSON below one of these headings. An output may be an example instead of a schema."""
    section = section_named(sections, names)
    fence = next((one for one in section.fences if one.language == "json"), None) if section else None
    if section is None or fence is None:
        return None
    try:
        return _schema_from(fence.text)
    except AgentsError as exc:
        if is_optional:
            return None
        raise AgentsError(exc.code, f"Under {section.title}: {exc.message}") from exc


def _schema_from(text: str) -> JsonObject:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise AgentsError("AGENTS-E-SKILL-SCHEMA", "The schema is not JSON; check its commas and quotes") from exc
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise AgentsError("AGENTS-E-SKILL-SCHEMA", 'The JSON is not the schema of an object; it needs "type": "object"')
    problem = problem_in(schema)
    if problem:
        raise AgentsError("AGENTS-E-SKILL-SCHEMA", problem)
    return schema


def _loaded(skills: object) -> list[LoadedSkill]:
    if isinstance(skills, str) or not isinstance(skills, Sequence):
        raise AgentsError("AGENTS-E-SKILL-NOT-LOADED", "Give the list that load_skills returned")
    loaded = [skill for skill in skills if isinstance(skill, LoadedSkill)]
    if len(loaded) < len(skills):
        raise AgentsError("AGENTS-E-SKILL-NOT-LOADED", "Only skills that load_skills returned can be used")
    return loaded


def _front_matter(yaml: str) -> JsonObject:
    # Imported here because it is slow, and not every program loads skills.
    from openai_responses_mcp.adapters.yaml_file import YamlProblem, read_yaml

    try:
        matter: JsonValue = read_yaml(yaml).data
    except YamlProblem as exc:
        # The first line of the file is the line of dashes.
        raise AgentsError("AGENTS-E-SKILL-PARSE", f"front matter, line {exc.line + 1}: {exc.text}") from exc
    if not isinstance(matter, dict):
        raise AgentsError("AGENTS-E-SKILL-PARSE", "The front matter must be names with values, such as name: my-skill")
    for key in ("name", "description"):
        if not isinstance(matter.get(key), str) or not matter[key].strip():
            raise AgentsError("AGENTS-E-SKILL-PARSE", f"The front matter needs {key}, a text")
    compatibility = matter.get("compatibility")
    is_text = isinstance(compatibility, str) and len(compatibility) <= LONGEST_COMPATIBILITY
    if compatibility is not None and not is_text:
        message = f"compatibility is a text of at most {LONGEST_COMPATIBILITY} characters"
        raise AgentsError("AGENTS-E-SKILL-PARSE", message)
    return matter


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
