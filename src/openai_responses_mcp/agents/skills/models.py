"""A skill: what it says about itself, and what was found on disk."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonObject

SkillMode = Literal["function_tool", "child_agent"]

LONGEST_DESCRIPTION = 1024


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
    """A skill as it was found: what the model is told (`body`) and which files lie next to it."""

    name: str = ""
    body: str = ""
    files: tuple[str, ...] = ()
    front_matter: JsonObject | None = None


class SkillList(list[LoadedSkill]):
    """The skills that were loaded, and in `problems` one error for each that was not."""

    def __init__(self, skills: Sequence[LoadedSkill] = (), problems: Sequence[AgentsError] = ()) -> None:
        super().__init__(skills)
        self.problems = list(problems)


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A SKILL.md with its text; `place` is where it lies in the folder that was searched."""

    place: str
    source_path: str
    text: str
    files: tuple[str, ...] = ()
