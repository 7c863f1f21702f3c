"""Skills: folders with a SKILL.md, loaded, listed, described, and offered to a model as tools.

A bad skill is left out and named in `.problems`; the others load. `allowed-tools` and the like are kept but have no
effect: only the gate decides what runs.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Literal, get_args

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
from openai_responses_mcp.agents.skills.skill_files import find_skills
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
        name = str(matter["name"]).strip() if matter else _first_title(sections)
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


def _first_title(sections: list[Section]) -> str:
    if not sections or not sections[0].title:
        raise AgentsError("AGENTS-E-SKILL-PARSE", "Nothing names the skill; write front matter, or a heading")
    return sections[0].title
