"""What skills need from outside, without a disk, a YAML reader or the SDK."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from openai_responses_mcp.agents.skills.models import (
    FoundSkill,
    FrontMatterReader,
    LoadedSkill,
    SkillFolder,
    SkillManifest,
    SkillSummary,
    SkillToolMaker,
)
from openai_responses_mcp.agents.skills.parsing import tool_name_for
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.schema.documents import problem_in


class FakeSkillFolder(SkillFolder):
    """Files by their paths, all below one folder. What is no text is bytes."""

    def __init__(self, folder: str, files: Mapping[str, str | bytes]) -> None:
        self._folder = folder
        self._files = {f"{folder}/{name}": content for name, content in files.items()}

    def find(self, folder: str, most_skills: int) -> tuple[list[FoundSkill], list[AgentsError]]:
        if folder != self._folder:
            raise AgentsError("AGENTS-E-SKILL-NOT-LOADED", f"There is no folder {folder}")
        found, problems = [], []
        for path in sorted(self._files):
            if PurePosixPath(path).name != "SKILL.md":
                continue
            place = path.removeprefix(f"{folder}/")
            text = self._files[path]
            if isinstance(text, bytes):
                problems.append(AgentsError("AGENTS-E-SKILL-PARSE", f"{place}: is no text"))
            else:
                found.append(FoundSkill(place, path, text, tuple(self._beside(path))))
        return found, problems

    def read_file(self, source_path: str, name: str) -> str:
        if name not in self._beside(source_path):
            raise AgentsError("AGENTS-E-SKILL-NOT-FOUND", "The skill has no file of this name")
        content = self._files[f"{PurePosixPath(source_path).parent}/{name}"]
        if isinstance(content, bytes):
            raise AgentsError("AGENTS-E-SKILL-PARSE", f"{name}: is no text")
        return content

    def _beside(self, source_path: str) -> list[str]:
        start = f"{PurePosixPath(source_path).parent}/"
        return sorted(path[len(start) :] for path in self._files if path.startswith(start) and path != source_path)


class FakeFrontMatter(FrontMatterReader):
    """Reads JSON, which is YAML too."""

    def read(self, yaml: str) -> Any:
        try:
            return json.loads(yaml)
        except ValueError as exc:
            raise AgentsError("AGENTS-E-SKILL-PARSE", "front matter: no JSON") from exc


@dataclass(frozen=True)
class FakeSkillTool:
    name: str
    description: str


class FakeSkillTools(SkillToolMaker):
    def skill_tool(self, skill: LoadedSkill) -> FakeSkillTool:
        problem = problem_in(skill.descriptor.input_schema)
        if problem:
            raise AgentsError("AGENTS-E-SKILL-SCHEMA", problem)
        return FakeSkillTool(tool_name_for(skill.descriptor.skill_id), skill.manifest.overview)

    def introspection_tools(
        self, summaries: Sequence[SkillSummary], manifests: Sequence[SkillManifest]
    ) -> list[FakeSkillTool]:
        return [FakeSkillTool("skill_list", ""), FakeSkillTool("skill_describe", "")]
