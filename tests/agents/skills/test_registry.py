"""Loading, listing and describing skills, good and bad."""

from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents.composition import (
    describe_skill,
    list_skills,
    load_skills,
    skill_registry,
    to_introspection_tools,
    to_tools,
)
from openai_responses_mcp.agents.skills.manifests import (
    DEFAULT_INPUT_SCHEMA,
    Skill,
    SkillDescriptor,
    SkillExample,
    SkillManifest,
)
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import code_of
from tests.agents.skills.places import BAD, GOOD, write_skill

PARSE, SCHEMA = "AGENTS-E-SKILL-PARSE", "AGENTS-E-SKILL-SCHEMA"

PROBLEMS = {
    "alias-bomb": PARSE,
    "broken-yaml": PARSE,
    "compatibility-is-a-list": PARSE,
    "example-does-not-fit": SCHEMA,
    "example-not-json": PARSE,
    "heading-alone": PARSE,
    "name-too-long": PARSE,
    "never-ends": PARSE,
    "no-description": PARSE,
    "no-heading": PARSE,
    "no-letters": PARSE,
    "no-name": PARSE,
    "not-a-mapping": PARSE,
    "nothing-inside": PARSE,
    "python-tag": PARSE,
    "schema-elsewhere": SCHEMA,
    "schema-invalid": SCHEMA,
    "schema-not-json": SCHEMA,
    "schema-of-a-text": SCHEMA,
    "schema-to-nowhere": SCHEMA,
}


async def test_good_skills_load_without_a_problem() -> None:
    skills = await load_skills(GOOD)
    assert skills.problems == []
    assert {skill.descriptor.skill_id: skill.name for skill in skills} == {
        "pdf-tools": "pdf-tools",
        "summarise-report": "summarise-report",
        "writer-skill": "Writer Skill",
        "翻訳スキル": "翻訳スキル",
        "議事録": "議事録",
    }


async def test_front_matter_headings_and_blocks_make_the_manifest() -> None:
    manifest = describe_skill(await load_skills(GOOD), "summarise-report", "full")
    assert manifest.overview.startswith("Sums up a report")
    assert manifest.tags == ("writing", "reports")
    assert manifest.constraints == ("Never more than ten sentences.", "No opinions.")
    assert manifest.usage_examples == (
        SkillExample("A short note", {"text": "It rained.", "sentences": 1}, {"summary": "It rained."}),
        SkillExample("Without the wrapping", {"text": "It snowed."}),
    )
    assert manifest.input_schema["required"] == ["text"]
    summary = describe_skill(await load_skills(GOOD), "summarise-report")
    assert (summary.usage_examples, summary.constraints, summary.overview) == ((), (), manifest.overview)
    minutes = describe_skill(await load_skills(GOOD), "議事録", "full")
    assert minutes.constraints == ("推測で補わない", "敬称は略す")
    assert minutes.tags == ("会議", "文書")
    assert minutes.usage_examples[0].input == {"input": "田中: 来週までに見積もりを出す。"}


async def test_a_plain_skill_is_named_by_its_first_heading_and_takes_a_text() -> None:
    (writer,) = [one for one in await load_skills(GOOD) if one.descriptor.skill_id == "writer-skill"]
    assert writer.manifest.overview == "Writes short letters in a friendly tone."
    assert writer.descriptor.input_schema == DEFAULT_INPUT_SCHEMA
    assert writer.descriptor.output_schema is None


async def test_an_output_is_a_schema_only_where_it_is_written_as_one() -> None:
    outputs = {one.descriptor.skill_id: one.descriptor.output_schema for one in await load_skills(GOOD)}
    assert outputs["summarise-report"] == {"type": "object", "properties": {"summary": {"type": "string"}}}
    assert outputs["翻訳スキル"] is None


async def test_every_bad_skill_is_reported_with_its_code_and_place() -> None:
    skills = await load_skills(BAD)
    assert list(skills) == []
    found = {Path(str(problem.details["path"])).parent.name: problem.code for problem in skills.problems}
    assert found == PROBLEMS
    assert all(
        problem.message.startswith(f"{folder}/SKILL.md: ")
        for folder, problem in zip(sorted(PROBLEMS), skills.problems, strict=True)
    )


async def test_what_is_no_folder_and_an_unknown_mode_are_refused(tmp_path: Path) -> None:
    places: list[str | Path] = [tmp_path / "nowhere", write_skill(tmp_path / "a"), "a\0b", "\ud800"]
    for place in places:
        assert await code_of(load_skills(place)) == "AGENTS-E-SKILL-NOT-LOADED"
    assert await code_of(load_skills(tmp_path, "both")) == "AGENTS-E-SKILL-NOT-LOADED"  # type: ignore[arg-type]


async def test_an_unknown_id_or_detail_level_is_not_found() -> None:
    skills = await load_skills(GOOD)
    unknown: Any = "everything"
    for arguments in (("nobody", "full"), ("議事録", unknown)):
        with pytest.raises(AgentsError) as caught:
            describe_skill(skills, *arguments)
        assert caught.value.code == "AGENTS-E-SKILL-NOT-FOUND"


@pytest.mark.parametrize("call", [list_skills, to_tools, to_introspection_tools])
def test_only_skills_from_load_skills_are_accepted(call: Any) -> None:
    by_hand = Skill(SkillDescriptor("a", "function_tool", {}), SkillManifest("a", "a"), "nowhere")
    for skills in ([by_hand], "abc", None):
        with pytest.raises(AgentsError) as caught:
            call(skills)
        assert caught.value.code == "AGENTS-E-SKILL-NOT-LOADED"


async def test_allowed_tools_are_kept_and_never_acted_upon() -> None:
    (skill,) = [one for one in await load_skills(GOOD) if one.name == "summarise-report"]
    assert skill.front_matter is not None
    assert skill.front_matter["allowed-tools"] == "Bash(rm:*) Read"
    tool: Any = to_tools([skill])[0]
    assert "rm" not in f"{tool.params_json_schema} {tool.needs_approval} {tool.traits}"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            '```json\n{"input": "hello", "output": {"a": 1}}\n```',
            SkillExample("Example 1", {"input": "hello"}, {"a": 1}),
        ),
        ('```json\n{"some": "thing"}\n```', SkillExample("Example 1", {"input": '{"some": "thing"}'})),
        ("```\nplain\n```", SkillExample("Example 1", {"input": "plain"})),
    ],
)
async def test_a_skill_that_takes_any_text_takes_any_example(
    tmp_path: Path, block: str, expected: SkillExample
) -> None:
    write_skill(tmp_path / "a", f"# A\nDoes it.\n## Examples\n{block}\n")
    (skill,) = await load_skills(tmp_path)
    assert skill.manifest.usage_examples == (expected,)


async def test_tags_that_are_no_texts_are_none(tmp_path: Path) -> None:
    write_skill(tmp_path / "a", "---\nname: a\ndescription: a\ntags: 7\n---\n")
    write_skill(tmp_path / "b", "---\nname: b\ndescription: b\nmetadata: none\n---\n")
    assert [one.manifest.tags for one in await load_skills(tmp_path)] == [(), ()]


def test_the_extractor_builds_introspection_tools_from_manifests_alone() -> None:
    tools: Any = skill_registry()._extractor.build_introspection_tools([SkillManifest("a", "Does a.")])
    assert [tool.name for tool in tools] == ["skill_list", "skill_describe"]
