"""A skill: what it says about itself, and what was found on disk."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue

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
    """A skill as it was found: the instructions for the model (`body`) and the files next to it."""

    name: str = ""
    body: str = ""
    files: tuple[str, ...] = ()
    front_matter: JsonObject | None = None


class SkillList(list[LoadedSkill]):
    """The skills that were loaded, and in `problems` one error for each that was not.

    A problem whose `details["level"]` is "warning" is about a skill that was loaded all the same.
    """

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


class SkillFolder(Protocol):
    def find(self, folder: str, most_skills: int) -> tuple[list[FoundSkill], list[AgentsError]]:
        """All skills below the folder, in a stable order, and a problem for each that may not or cannot be read.

        Bounded in depth, number (`most_skills`) and size, and never outside the folder. No such folder: `AGENTS-E-SKILL-NOT-LOADED`.
        """
        ...

    def read_file(self, source_path: str, name: str) -> str:
        """A file next to the SKILL.md. `AGENTS-E-SKILL-NOT-FOUND` for any other name, `AGENTS-E-SKILL-PARSE` if it is not text."""
        ...


class FrontMatterReader(Protocol):
    def read(self, yaml: str) -> JsonValue:
        """Plain data. Raises `AGENTS-E-SKILL-PARSE`."""
        ...


class SkillToolMaker(Protocol):
    def skill_tool(self, skill: LoadedSkill) -> object:
        """Raises `AGENTS-E-SKILL-SCHEMA`."""
        ...

    def introspection_tools(
        self, summaries: Sequence[SkillSummary], manifests: Sequence[SkillManifest]
    ) -> Sequence[object]:
        """`skill_list` and `skill_describe`."""
        ...
