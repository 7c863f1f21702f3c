"""What every folder of skills must do, asked of the fake and of a real folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp.agents.skills.models import SkillFolder
from openai_responses_mcp.agents.skills.skill_files import SkillFiles
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fake_skills import FakeSkillFolder

FILES: dict[str, str | bytes] = {
    "writer/SKILL.md": "# Writer\n",
    "writer/notes/style.md": "Be brief.\n",
    "writer/logo.png": b"\xff\xfe\x00",
    "deep/er/SKILL.md": "# Deeper\n",
    "broken/SKILL.md": b"\xff\xfe\x00",
    "readme.txt": "no skill\n",
}


def fake(root: str) -> SkillFolder:
    return FakeSkillFolder(root, FILES)


def on_disk(root: str) -> SkillFolder:
    for name, content in FILES.items():
        path = Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return SkillFiles()


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path.resolve() / "skills")


@pytest.fixture(params=[pytest.param(fake, id="fake"), pytest.param(on_disk, id="disk")])
def folder(request: pytest.FixtureRequest, root: str) -> SkillFolder:
    make: Callable[[str], SkillFolder] = request.param
    return make(root)


def test_skills_are_found_in_order_with_their_files(folder: SkillFolder, root: str) -> None:
    found, _ = folder.find(root, 1_000)
    assert [(one.place, one.text, one.files) for one in found] == [
        ("deep/er/SKILL.md", "# Deeper\n", ()),
        ("writer/SKILL.md", "# Writer\n", ("logo.png", "notes/style.md")),
    ]


def test_what_cannot_be_read_is_a_problem_and_the_others_are_found(folder: SkillFolder, root: str) -> None:
    _, problems = folder.find(root, 1_000)
    assert [problem.code for problem in problems] == ["AGENTS-E-SKILL-PARSE"]
    assert problems[0].message.startswith("broken/SKILL.md")


def test_a_folder_that_is_not_there_is_named(folder: SkillFolder, root: str) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-SKILL-NOT-LOADED"):
        folder.find(f"{root}/nowhere", 1_000)


def test_a_file_beside_a_skill_is_read(folder: SkillFolder, root: str) -> None:
    assert folder.read_file(f"{root}/writer/SKILL.md", "notes/style.md") == "Be brief.\n"


@pytest.mark.parametrize("name", ["", "nothing.md", "SKILL.md", "../readme.txt", "/etc/passwd", "notes"])
def test_no_other_file_is_read(folder: SkillFolder, root: str, name: str) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-SKILL-NOT-FOUND"):
        folder.read_file(f"{root}/writer/SKILL.md", name)


def test_a_file_that_is_no_text_is_named(folder: SkillFolder, root: str) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-SKILL-PARSE"):
        folder.read_file(f"{root}/writer/SKILL.md", "logo.png")
