"""What every reader of front matter must do. The texts are JSON, which is YAML too, so that the fake can read them."""

import pytest

from openai_responses_mcp.agents.skills.models import FrontMatterReader
from openai_responses_mcp.agents.skills.skill_files import YamlFrontMatter
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fake_skills import FakeFrontMatter


@pytest.fixture(params=[pytest.param(FakeFrontMatter, id="fake"), pytest.param(YamlFrontMatter, id="yaml")])
def reader(request: pytest.FixtureRequest) -> FrontMatterReader:
    made: FrontMatterReader = request.param()
    return made


def test_plain_data_comes_out(reader: FrontMatterReader) -> None:
    read = reader.read('{"name": "writer", "metadata": {"tags": ["a", "文"]}}')
    assert read == {"name": "writer", "metadata": {"tags": ["a", "文"]}}


def test_what_is_no_mapping_is_left_to_the_caller(reader: FrontMatterReader) -> None:
    assert reader.read('["a", "b"]') == ["a", "b"]


def test_what_cannot_be_read_is_named(reader: FrontMatterReader) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-SKILL-PARSE"):
        reader.read('{"name": ')
