"""What every maker of tools from skills must do, asked of the fake and of the SDK's."""

from collections.abc import Callable
from typing import Any

import pytest

from openai_responses_mcp.agents.sdk.skill_tools import SdkSkillTools
from openai_responses_mcp.agents.skills.models import LoadedSkill, SkillDescriptor, SkillManifest, SkillToolMaker
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fake_skills import FakeSkillFolder, FakeSkillTools


def fake() -> SkillToolMaker:
    return FakeSkillTools()


def for_the_sdk() -> SkillToolMaker:
    return SdkSkillTools(FakeSkillFolder("/skills", {}))


@pytest.fixture(params=[pytest.param(fake, id="fake"), pytest.param(for_the_sdk, id="sdk")])
def maker(request: pytest.FixtureRequest) -> SkillToolMaker:
    make: Callable[[], SkillToolMaker] = request.param
    return make()


def a_skill(schema: dict[str, Any] | None = None) -> LoadedSkill:
    schema = schema or {"type": "object", "properties": {"text": {"type": "string"}}}
    manifest = SkillManifest("writer", "Writes letters.", input_schema=schema)
    return LoadedSkill(
        SkillDescriptor("writer", "function_tool", schema), manifest, "/skills/writer/SKILL.md", "Writer"
    )


def test_a_tool_is_called_after_its_skill(maker: SkillToolMaker) -> None:
    made: Any = maker.skill_tool(a_skill())
    assert (made.name, made.description) == ("skill_writer", "Writes letters.")


def test_a_skill_whose_schema_cannot_be_used_gives_no_tool(maker: SkillToolMaker) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-SKILL-SCHEMA"):
        maker.skill_tool(a_skill({"type": "nothing"}))


def test_two_tools_tell_about_skills(maker: SkillToolMaker) -> None:
    tools: Any = maker.introspection_tools([], [])
    assert [made.name for made in tools] == ["skill_list", "skill_describe"]
