"""What the reference implementation of the Agent Skills format thinks of the same folders."""

from pathlib import Path

import pytest
from skills_ref import read_properties, validate  # type: ignore[import-untyped]

from openai_responses_mcp.agents.composition import load_skills
from tests.agents.skills.places import BAD, GOOD

FOLDERS = sorted([*GOOD.iterdir(), *BAD.iterdir()])


def has_front_matter(folder: Path) -> bool:
    return (folder / "SKILL.md").read_text(encoding="utf-8").startswith("---")


@pytest.mark.parametrize("folder", [*filter(has_front_matter, FOLDERS)], ids=lambda folder: folder.name)
async def test_front_matter_loads_exactly_when_the_reference_finds_it_valid(folder: Path) -> None:
    skills = await load_skills(folder)
    assert bool(skills) == (validate(folder) == [])


@pytest.mark.parametrize("folder", [*filter(has_front_matter, sorted(GOOD.iterdir()))], ids=lambda folder: folder.name)
async def test_both_read_the_same_properties(folder: Path) -> None:
    (skill,) = await load_skills(folder)
    theirs = read_properties(folder)
    assert (skill.name, skill.manifest.overview) == (theirs.name, theirs.description)
    assert skill.front_matter is not None
    assert skill.front_matter.get("license") == theirs.license
    assert skill.front_matter.get("allowed-tools") == theirs.allowed_tools


async def test_a_skill_that_the_reference_refuses_only_for_its_name_is_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "another-name"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: PDF Tools\ndescription: Works on PDFs.\n---\n")
    assert validate(folder) != []
    (skill,) = await load_skills(folder)
    assert skill.descriptor.skill_id == "pdf-tools"
