"""What an agent is given besides plain functions, put together: skills, MCP servers, models, the answering tool.

The second composition root of this half, next to `composition`, which puts the runner together.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

from openai_responses_mcp.agents.mcp_gateway import McpRules
from openai_responses_mcp.agents.models import (
    ProviderHandle,
    ProviderName,
    Skill,
    SkillManifest,
    SkillMode,
    SkillSummary,
)
from openai_responses_mcp.agents.providers import chosen_provider, settings_from, timeout_ms_from
from openai_responses_mcp.agents.skills import DetailLevel, SkillList, SkillRegistry

if TYPE_CHECKING:
    from openai_responses_mcp.agents.adapters.mcp_servers import HostedMcpServer


@cache
def skill_registry() -> SkillRegistry:
    from openai_responses_mcp.agents.adapters.json_schemas import JsonSchemas
    from openai_responses_mcp.agents.adapters.skill_files import SkillFiles
    from openai_responses_mcp.agents.adapters.skill_front_matter import YamlFrontMatter
    from openai_responses_mcp.agents.adapters.skill_tools import SdkSkillTools

    folder, schemas = SkillFiles(), JsonSchemas()
    return SkillRegistry(folder, YamlFrontMatter(), schemas, SdkSkillTools(folder, schemas))


async def load_skills(dir: str | os.PathLike[str], mode: SkillMode = "function_tool") -> SkillList:
    """Every skill below the folder; those that are no good are told in `.problems` of the list."""
    return await skill_registry().load_from_directory(os.fspath(dir), mode)


def list_skills(skills: Sequence[Skill]) -> list[SkillSummary]:
    return skill_registry().list_skills(skills)


def describe_skill(skills: Sequence[Skill], id: str, detail_level: DetailLevel = "summary") -> SkillManifest:
    return skill_registry().describe_skill(skills, id, detail_level)


def to_tools(skills: Sequence[Skill]) -> list[Any]:
    """One tool of the SDK for each skill."""
    return skill_registry().to_tools(skills)


def to_introspection_tools(skills: Sequence[Skill]) -> list[Any]:
    """`skill_list` and `skill_describe`, which tell a model about the skills."""
    return skill_registry().to_introspection_tools(skills)


# ---------------------------------------------------------------------------------------------------------------------
# Models


def get_provider(name: str | None = None) -> ProviderHandle:
    """The provider of this name, else the one in AGENTS_MODEL_PROVIDER, set up from the environment."""
    settings = settings_from(chosen_provider(name, os.environ), os.environ)
    from openai_responses_mcp.agents.adapters.compat_providers import EnvironmentProvider

    return EnvironmentProvider(settings)


def list_providers() -> list[ProviderName]:
    return list(get_args(ProviderName))


# ---------------------------------------------------------------------------------------------------------------------
# MCP servers


def hosted_mcp_tool(
    server: Any,
    *,
    require_approval: bool = True,
    risk_levels: Mapping[str, int] | None = None,
    repeatable: Iterable[str] = (),
    name: str | None = None,
    pins: str | os.PathLike[str] | None = None,
) -> "HostedMcpServer":
    """An MCP server for an agent's `mcp_servers` or `tools`, each of its tools behind the gate.

    `server` is a stdio command, an https URL, a mapping with either, or a server object of the SDK. `name` is what scopes
    call it. Definitions that were approved are remembered in the file `pins`, else for as long as the process lives.
    """
    from openai_responses_mcp.agents.adapters.mcp_servers import hosted_server
    from openai_responses_mcp.agents.adapters.pin_file import PinFile

    rules = McpRules(require_approval, risk_levels or {}, repeatable)
    file = None if pins is None else PinFile(pins)
    return hosted_server(server, name, rules, file, timeout_ms_from(os.environ))


def answer_tool(profile: str = "answer") -> Any:
    """The answering server's use case as a tool; `profile` is the name of one of the server's tools."""
    from openai_responses_mcp.agents.adapters.answering_tool import answering_tool

    return answering_tool(profile)
