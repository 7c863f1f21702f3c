"""What skills need from outside: a folder, a YAML reader, and a maker of tools."""

from collections.abc import Sequence
from typing import Protocol

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonValue
from openai_responses_mcp.agents.skills.models import FoundSkill, LoadedSkill, SkillManifest, SkillSummary


class SkillFolder(Protocol):
    def find(self, folder: str) -> tuple[list[FoundSkill], list[AgentsError]]:
        """All skills below the folder, in a stable order, and a problem for each that may not or cannot be read.

        Bounded in depth, number and size, and never outside the folder. No such folder: `AGENTS-E-SKILL-NOT-LOADED`.
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
