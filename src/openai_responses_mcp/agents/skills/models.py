"""A skill: what it says about itself, and what was found on disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from openai_responses_mcp.agents.errors import AgentsError

SkillMode = Literal["function_tool", "child_agent"]

LONGEST_DESCRIPTION = 1024


@dataclass(frozen=True, slots=True)
class SkillExample:
    title: str
    input: Mapping[str, Any]
    expected_output: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SkillDescriptor:
    skill_id: str
    mode: SkillMode
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SkillManifest:
    skill_id: str
    overview: str
    usage_examples: tuple[SkillExample, ...] = ()
    constraints: tuple[str, ...] = ()
    input_schema: Mapping[str, Any] = field(default_factory=dict)
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
    front_matter: Mapping[str, Any] | None = None


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
