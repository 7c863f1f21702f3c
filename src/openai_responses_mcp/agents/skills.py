"""Skills: folders with a SKILL.md, read once, listed, described, and offered to a model as tools.

A file that is no good leaves its skill out and is told in `.problems`; the others load. What a skill says about itself,
its `allowed-tools` above all, is shown and never acted upon: only the gate decides what runs.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.models import (
    Skill,
    SkillDescriptor,
    SkillExample,
    SkillManifest,
    SkillMode,
    SkillSummary,
)
from openai_responses_mcp.agents.skill_parsing import (
    CONSTRAINT_HEADINGS,
    EXAMPLE_HEADINGS,
    INPUT_HEADINGS,
    OUTPUT_HEADINGS,
    OVERVIEW_HEADINGS,
    TAG_HEADINGS,
    Fence,
    Section,
    first_paragraph,
    list_items,
    section_named,
    sections_of,
    skill_id_for,
    split_front_matter,
)

DetailLevel = Literal["summary", "full"]

DEFAULT_INPUT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "What the skill shall be applied to."}},
    "required": ["input"],
    "additionalProperties": False,
}
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LONGEST_COMPATIBILITY = 500


@dataclass(frozen=True, slots=True)
class LoadedSkill(Skill):
    """A skill as it was found: what the model is told (`body`) and which files lie next to it."""

    name: str = ""
    body: str = ""
    files: tuple[str, ...] = ()
    front_matter: Mapping[str, Any] | None = None


class SkillList(list[LoadedSkill]):
    """The skills that were loaded, and in `problems` one error for each that was not."""

    def __init__(self, skills: Sequence[LoadedSkill] = (), problems: Sequence[AgentsError] = ()) -> None:
        super().__init__(skills)
        self.problems = list(problems)


# ---------------------------------------------------------------------------------------------------------------------
# What skills need from outside


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A SKILL.md with its text; `place` is where it lies in the folder that was searched."""

    place: str
    source_path: str
    text: str
    files: tuple[str, ...] = ()


class SkillFolder(Protocol):
    def find(self, folder: str) -> tuple[list[FoundSkill], list[AgentsError]]:
        """All skills below the folder, in a stable order, and a problem for each that may not or cannot be read.

        Bounded in depth, number and size, and never outside the folder. No such folder: `AGENTS-E-SKILL-NOT-LOADED`.
        """
        ...

    def read_file(self, source_path: str, name: str) -> str:
        """A file next to the SKILL.md. `AGENTS-E-SKILL-NOT-FOUND` for any other name, `AGENTS-E-SKILL-PARSE` if it is no text."""
        ...


class FrontMatterReader(Protocol):
    def read(self, yaml: str) -> Any:
        """Plain data. Raises `AGENTS-E-SKILL-PARSE`."""
        ...


class SchemaChecker(Protocol):
    def check(self, schema: Mapping[str, Any]) -> None:
        """Raises `AGENTS-E-SKILL-SCHEMA` for what is no JSON Schema that can be checked against right here."""
        ...

    def problem_with(self, value: Any, schema: Mapping[str, Any]) -> str | None:
        """Why the value does not fit, in one sentence."""
        ...


class SkillToolMaker(Protocol):
    def skill_tool(self, skill: LoadedSkill) -> Any:
        """Raises `AGENTS-E-SKILL-SCHEMA`."""
        ...

    def introspection_tools(self, summaries: Sequence[SkillSummary], manifests: Sequence[SkillManifest]) -> list[Any]:
        """`skill_list` and `skill_describe`."""
        ...


# ---------------------------------------------------------------------------------------------------------------------


class SkillMetadataExtractor:
    """What can be told about a skill from its text."""

    def __init__(self, schemas: SchemaChecker, tools: SkillToolMaker) -> None:
        self._schemas = schemas
        self._tools = tools

    def extract_manifest(
        self, descriptor: SkillDescriptor, source_text: str, front_matter: Mapping[str, Any] | None = None
    ) -> SkillManifest:
        """Raises `AGENTS-E-SKILL-PARSE` without anything to tell, `AGENTS-E-SKILL-SCHEMA` when an example does not fit."""
        _, body = split_front_matter(source_text)
        sections = sections_of(body)
        overview = _overview(front_matter, sections, body)
        if not overview:
            raise AgentsError("AGENTS-E-SKILL-PARSE", "There is nothing that says what the skill is for")
        constraints = section_named(sections, CONSTRAINT_HEADINGS)
        return SkillManifest(
            skill_id=descriptor.skill_id,
            overview=overview,
            usage_examples=tuple(self._examples(sections, descriptor)),
            constraints=tuple(list_items(constraints.text)) if constraints else (),
            input_schema=descriptor.input_schema,
            tags=_tags(front_matter, sections),
        )

    def build_introspection_tools(self, manifests: Sequence[SkillManifest]) -> list[Any]:
        summaries = [SkillSummary(one.skill_id, one.skill_id, one.overview, one.tags) for one in manifests]
        return self._tools.introspection_tools(summaries, manifests)

    def _examples(self, sections: list[Section], descriptor: SkillDescriptor) -> list[SkillExample]:
        section = section_named(sections, EXAMPLE_HEADINGS)
        if section is None:
            return []
        is_default = descriptor.input_schema == DEFAULT_INPUT_SCHEMA
        examples: list[SkillExample] = []
        for number, fence in enumerate(section.fences, start=1):
            example = _example_from(fence, number, takes_text=is_default)
            if example is None:
                continue
            problem = self._schemas.problem_with(dict(example.input), descriptor.input_schema)
            if problem:
                raise AgentsError("AGENTS-E-SKILL-SCHEMA", f"Example {number} does not fit the input schema: {problem}")
            examples.append(example)
        return examples


class SkillRegistry:
    def __init__(
        self, folder: SkillFolder, front_matter: FrontMatterReader, schemas: SchemaChecker, tools: SkillToolMaker
    ) -> None:
        self._folder = folder
        self._front_matter = front_matter
        self._schemas = schemas
        self._tools = tools
        self._extractor = SkillMetadataExtractor(schemas, tools)

    async def load_from_directory(self, dir: str, mode: SkillMode = "function_tool") -> SkillList:
        if mode not in get_args(SkillMode):
            raise AgentsError("AGENTS-E-SKILL-NOT-LOADED", f"mode is one of {', '.join(get_args(SkillMode))}")
        return await asyncio.to_thread(self._load, dir, mode)

    def list_skills(self, skills: Sequence[Skill]) -> list[SkillSummary]:
        return [
            SkillSummary(skill.descriptor.skill_id, skill.name, skill.manifest.overview, skill.manifest.tags)
            for skill in _loaded(skills)
        ]

    def describe_skill(
        self, skills: Sequence[Skill], skill_id: str, detail_level: DetailLevel = "summary"
    ) -> SkillManifest:
        """`full` has everything that is known; `summary` leaves examples and constraints out."""
        if detail_level not in get_args(DetailLevel):
            raise AgentsError("AGENTS-E-SKILL-NOT-FOUND", "detail_level is summary or full")
        known = {skill.descriptor.skill_id: skill.manifest for skill in _loaded(skills)}
        if skill_id not in known:
            raise AgentsError("AGENTS-E-SKILL-NOT-FOUND", f"No skill is called {skill_id}; list the skills again")
        return known[skill_id] if detail_level == "full" else summary_of(known[skill_id])

    def to_tools(self, skills: Sequence[Skill]) -> list[Any]:
        return [self._tools.skill_tool(skill) for skill in _loaded(skills)]

    def to_introspection_tools(self, skills: Sequence[Skill]) -> list[Any]:
        return self._tools.introspection_tools(self.list_skills(skills), [one.manifest for one in _loaded(skills)])

    def _load(self, folder: str, mode: SkillMode) -> SkillList:
        found, problems = self._folder.find(folder)
        loaded: dict[str, LoadedSkill] = {}
        for one in found:
            try:
                skill = self._skill_from(one, mode)
                taken = loaded.setdefault(skill.descriptor.skill_id, skill)
                if taken is not skill:
                    message = f"{skill.name} is the name of another skill already: {taken.source_path}"
                    raise AgentsError("AGENTS-E-SKILL-PARSE", message)
            except AgentsError as exc:
                details = {**exc.details, "path": one.source_path}
                problems.append(AgentsError(exc.code, f"{one.place}: {exc.message}", details=details))
        return SkillList(list(loaded.values()), problems)

    def _skill_from(self, found: FoundSkill, mode: SkillMode) -> LoadedSkill:
        yaml, body = split_front_matter(found.text)
        matter = None if yaml is None else _checked_front_matter(self._front_matter.read(yaml))
        sections = sections_of(body)
        name = matter["name"].strip() if matter else _first_title(sections)
        skill_id = skill_id_for(name)
        if not skill_id or len(name) > LONGEST_NAME:
            raise AgentsError(
                "AGENTS-E-SKILL-PARSE", f"A name has letters or digits, and at most {LONGEST_NAME} characters"
            )
        descriptor = SkillDescriptor(
            skill_id=skill_id,
            mode=mode,
            input_schema=self._schema_under(sections, INPUT_HEADINGS) or DEFAULT_INPUT_SCHEMA,
            output_schema=self._schema_under(sections, OUTPUT_HEADINGS, is_optional=True),
        )
        manifest = self._extractor.extract_manifest(descriptor, found.text, matter)
        return LoadedSkill(descriptor, manifest, found.source_path, name, body, found.files, matter)

    def _schema_under(
        self, sections: list[Section], names: frozenset[str], *, is_optional: bool = False
    ) -> Mapping[str, Any] | None:
        """The first fenced JSON below one of these headings. An output may be shown by example instead."""
        section = section_named(sections, names)
        fence = next((one for one in section.fences if one.language == "json"), None) if section else None
        if section is None or fence is None:
            return None
        try:
            schema = json.loads(fence.text)
            if not isinstance(schema, dict) or schema.get("type") != "object":
                raise AgentsError("AGENTS-E-SKILL-SCHEMA", f"The JSON under {section.title} is no schema of an object")
            self._schemas.check(schema)
        except (ValueError, RecursionError) as exc:
            if is_optional:
                return None
            raise AgentsError("AGENTS-E-SKILL-SCHEMA", f"The schema under {section.title} is not JSON") from exc
        except AgentsError:
            if is_optional:
                return None
            raise
        return schema


def summary_of(manifest: SkillManifest) -> SkillManifest:
    return SkillManifest(manifest.skill_id, manifest.overview, input_schema=manifest.input_schema, tags=manifest.tags)


# ---------------------------------------------------------------------------------------------------------------------


def _loaded(skills: Any) -> list[LoadedSkill]:
    if isinstance(skills, str) or not isinstance(skills, Sequence):
        raise AgentsError("AGENTS-E-SKILL-NOT-LOADED", "Give the list that load_skills returned")
    loaded = [skill for skill in skills if isinstance(skill, LoadedSkill)]
    if len(loaded) < len(skills):
        raise AgentsError("AGENTS-E-SKILL-NOT-LOADED", "Only skills that load_skills returned can be used")
    return loaded


def _checked_front_matter(matter: Any) -> Mapping[str, Any]:
    if not isinstance(matter, dict):
        raise AgentsError("AGENTS-E-SKILL-PARSE", "The front matter is no list of names and values")
    for key in ("name", "description"):
        if not isinstance(matter.get(key), str) or not matter[key].strip():
            raise AgentsError("AGENTS-E-SKILL-PARSE", f"The front matter lacks {key}, which is a text")
    if len(matter["description"]) > LONGEST_DESCRIPTION:
        raise AgentsError("AGENTS-E-SKILL-PARSE", f"description may have {LONGEST_DESCRIPTION} characters")
    compatibility = matter.get("compatibility")
    if compatibility is not None:
        is_fine = isinstance(compatibility, str) and len(compatibility) <= LONGEST_COMPATIBILITY
        if not is_fine:
            message = f"compatibility is a text of at most {LONGEST_COMPATIBILITY} characters"
            raise AgentsError("AGENTS-E-SKILL-PARSE", message)
    return matter


def _first_title(sections: list[Section]) -> str:
    if not sections or not sections[0].title:
        raise AgentsError("AGENTS-E-SKILL-PARSE", "There is neither front matter nor a heading that names the skill")
    return sections[0].title


def _overview(matter: Mapping[str, Any] | None, sections: list[Section], body: str) -> str:
    if matter:
        return " ".join(str(matter["description"]).split())
    section = section_named(sections, OVERVIEW_HEADINGS)
    overview = first_paragraph(section.text) if section else ""
    return (overview or first_paragraph(body))[:LONGEST_DESCRIPTION]


def _tags(matter: Mapping[str, Any] | None, sections: list[Section]) -> tuple[str, ...]:
    metadata = (matter or {}).get("metadata")
    written = (matter or {}).get("tags") or (metadata.get("tags") if isinstance(metadata, dict) else None)
    if written is None:
        section = section_named(sections, TAG_HEADINGS)
        written = ",".join(list_items(section.text)) if section else ""
    if isinstance(written, str):
        written = written.replace("、", ",").split(",")
    tags = [str(tag).strip() for tag in written] if isinstance(written, list) else []
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def _example_from(fence: Fence, number: int, *, takes_text: bool) -> SkillExample | None:
    """An object with `input`, or an input as it stands; where a skill takes any text, the text of the block."""
    title = fence.title or f"Example {number}"
    try:
        written: Any = json.loads(fence.text) if fence.language == "json" else None
    except (ValueError, RecursionError) as exc:
        raise AgentsError("AGENTS-E-SKILL-PARSE", f"Example {number} is not JSON") from exc
    if not isinstance(written, dict):
        return SkillExample(title, {"input": fence.text}) if takes_text else None
    given, expected = written.get("input"), written.get("expected_output", written.get("output"))
    expected = expected if isinstance(expected, dict) else None
    if isinstance(given, dict):
        return SkillExample(title, given, expected)
    if takes_text:
        return SkillExample(title, {"input": given if isinstance(given, str) else fence.text}, expected)
    return SkillExample(title, written)
