"""Skills and their manifests: overview, examples, constraints, tags."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from openai_responses_mcp.agents.skills.parsing import (
    CONSTRAINT_HEADINGS,
    EXAMPLE_HEADINGS,
    OVERVIEW_HEADINGS,
    TAG_HEADINGS,
    Fence,
    Section,
    first_paragraph,
    list_items,
    section_named,
    sections_of,
    split_front_matter,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.schema.keywords import Steps

SkillMode = Literal["function_tool", "child_agent"]

LONGEST_DESCRIPTION = 1024
MOST_SKILLS = 1_000


@dataclass(frozen=True, slots=True)
class SkillExample:
    title: str
    input: JsonObject
    expected_output: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class SkillDescriptor:
    skill_id: str
    mode: SkillMode
    input_schema: JsonObject
    output_schema: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class SkillManifest:
    skill_id: str
    overview: str
    usage_examples: tuple[SkillExample, ...] = ()
    constraints: tuple[str, ...] = ()
    input_schema: JsonObject = field(default_factory=dict)
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillSummary:
    skill_id: str
    name: str
    overview: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skill:
    descriptor: SkillDescriptor
    manifest: SkillManifest
    source_path: str


@dataclass(frozen=True, slots=True)
class LoadedSkill(Skill):
    """A skill with its instructions for the model (`body`) and the files next to it."""

    name: str = ""
    body: str = ""
    files: tuple[str, ...] = ()
    front_matter: JsonObject | None = None


class SkillList(list[LoadedSkill]):
    """The loaded skills, and in `problems` one error for each that was not loaded.

    A problem with the `level` "warning" in its details is about a loaded skill.
    """

    def __init__(self, skills: Sequence[LoadedSkill] = (), problems: Sequence[AgentsError] = ()) -> None:
        super().__init__(skills)
        self.problems = list(problems)


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A SKILL.md with its text. `place` is its path below the searched folder."""

    place: str
    source_path: str
    text: str
    files: tuple[str, ...] = ()


IntrospectionTools = Callable[[Sequence[SkillSummary], Sequence[SkillManifest]], Sequence[object]]
"""Makes `skill_list` and `skill_describe`."""

# ---------------------------------------------------------------------------------------------------------------------
# Manifests

# For all examples of a skill together: a folder may hold hundreds of skills.
MOST_STEPS_FOR_EXAMPLES = 50_000

DEFAULT_INPUT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "What the skill shall be applied to."}},
    "required": ["input"],
    "additionalProperties": False,
}


class SkillMetadataExtractor:
    def __init__(self, introspection_tools: IntrospectionTools) -> None:
        self._introspection_tools = introspection_tools

    def extract_manifest(
        self, descriptor: SkillDescriptor, source_text: str, front_matter: JsonObject | None = None
    ) -> SkillManifest:
        """Raises `AGENTS-E-SKILL-PARSE` without a description, `AGENTS-E-SKILL-SCHEMA` if an example does not fit."""
        _, body = split_front_matter(source_text)
        sections = sections_of(body)
        overview = _overview(front_matter, sections, body)
        if not overview:
            raise AgentsError(
                "AGENTS-E-SKILL-PARSE", "There is nothing that says what the skill is for; write a description"
            )
        constraints = section_named(sections, CONSTRAINT_HEADINGS)
        return SkillManifest(
            skill_id=descriptor.skill_id,
            overview=overview,
            usage_examples=tuple(_examples(sections, descriptor)),
            constraints=tuple(list_items(constraints.text)) if constraints else (),
            input_schema=descriptor.input_schema,
            tags=_tags(front_matter, sections),
        )

    def build_introspection_tools(self, manifests: Sequence[SkillManifest]) -> Sequence[object]:
        summaries = [SkillSummary(one.skill_id, one.skill_id, one.overview, one.tags) for one in manifests]
        return self._introspection_tools(summaries, manifests)


def summary_of(manifest: SkillManifest) -> SkillManifest:
    return SkillManifest(manifest.skill_id, manifest.overview, input_schema=manifest.input_schema, tags=manifest.tags)


def _overview(matter: JsonObject | None, sections: list[Section], body: str) -> str:
    if matter:
        return " ".join(str(matter["description"]).split())
    section = section_named(sections, OVERVIEW_HEADINGS)
    overview = first_paragraph(section.text) if section else ""
    return (overview or first_paragraph(body))[:LONGEST_DESCRIPTION]


def _tags(matter: JsonObject | None, sections: list[Section]) -> tuple[str, ...]:
    metadata = (matter or {}).get("metadata")
    written = (matter or {}).get("tags") or (metadata.get("tags") if isinstance(metadata, dict) else None)
    if written is None:
        section = section_named(sections, TAG_HEADINGS)
        written = ",".join(list_items(section.text)) if section else ""
    if isinstance(written, str):
        written = written.replace("、", ",").split(",")
    tags = [str(tag).strip() for tag in written] if isinstance(written, list) else []
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def _examples(sections: list[Section], descriptor: SkillDescriptor) -> list[SkillExample]:
    section = section_named(sections, EXAMPLE_HEADINGS)
    if section is None:
        return []
    is_default = descriptor.input_schema == DEFAULT_INPUT_SCHEMA
    examples: list[SkillExample] = []
    steps = Steps(MOST_STEPS_FOR_EXAMPLES)
    for number, fence in enumerate(section.fences, start=1):
        example = _example_from(fence, number, takes_text=is_default)
        if example is None:
            continue
        problem = SchemaChecker().check_here(dict(example.input), descriptor.input_schema, steps).problem
        if problem:
            raise AgentsError("AGENTS-E-SKILL-SCHEMA", f"Example {number} does not fit the input schema: {problem}")
        examples.append(example)
    return examples


def _example_from(fence: Fence, number: int, *, takes_text: bool) -> SkillExample | None:
    """An object with `input`, or the input itself. If the skill takes any text, the text of the block."""
    title = fence.title or f"Example {number}"
    try:
        written: JsonValue = json.loads(fence.text) if fence.language == "json" else None
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
