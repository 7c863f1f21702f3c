"""Fault 38: a SKILL.md that leads out, is too large, is a bomb or no text: that one is reported, the others load."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.agents.composition import list_skills, load_skills, skill_registry, to_tools
from openai_responses_mcp.agents.skills import registry
from openai_responses_mcp.agents.skills.manifests import FoundSkill
from openai_responses_mcp.agents.skills.registry import find_skills, read_skill_file
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import code_of, within
from tests.agents.skills.places import BAD, write_skill

SECRET = "the text that stays outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text(f"# Secret\n{SECRET}\n")
    write_skill(tmp_path / "outside" / "skill", f"# Outside\n{SECRET}\n")
    write_skill(tmp_path / "root" / "good")
    return tmp_path / "root"


def link_to_a_folder_outside(root: Path) -> None:
    (root / "bad").symlink_to(root.parent / "outside" / "skill", target_is_directory=True)


def link_to_a_file_outside(root: Path) -> None:
    (root / "bad").mkdir()
    (root / "bad" / "SKILL.md").symlink_to(root.parent / "outside" / "secret.md")


def hundred_megabytes(root: Path) -> None:
    with write_skill(root / "bad").open("r+b") as file:
        file.truncate(100 * 1024 * 1024)


def a_pipe(root: Path) -> None:
    (root / "bad").mkdir()
    os.mkfifo(root / "bad" / "SKILL.md")


def a_folder(root: Path) -> None:
    (root / "bad" / "SKILL.md").mkdir(parents=True)


def no_text(root: Path) -> None:
    write_skill(root / "bad").write_bytes(b"# \xff\xfe\n")


def an_alias_bomb(root: Path) -> None:
    write_skill(root / "bad", (BAD / "alias-bomb" / "SKILL.md").read_text(encoding="utf-8"))


def two_with_one_name(root: Path) -> None:
    write_skill(root / "zzz", name="good")


@pytest.mark.parametrize(
    "make",
    [
        link_to_a_folder_outside,
        link_to_a_file_outside,
        hundred_megabytes,
        a_pipe,
        a_folder,
        no_text,
        two_with_one_name,
        an_alias_bomb,
    ],
    ids=lambda make: make.__name__,
)
async def test_the_bad_one_is_reported_and_the_others_load(root: Path, make: Callable[[Path], None]) -> None:
    make(root)
    skills = await load_skills(root)
    assert [skill.name for skill in skills] == ["good"]
    assert [problem.code for problem in skills.problems] == ["AGENTS-E-SKILL-PARSE"]
    assert SECRET not in f"{skills} {skills.problems} {[p.details for p in skills.problems]}"


@pytest.mark.parametrize(
    "text",
    [
        "# A\nDoes it.\n" + "# " + " " * 500_000 + "x\n",
        "# A\nDoes it.\n" + "# x" + " #" * 250_000 + "x\n",
        "# A\nDoes it.\n" + "# x\n" * 120_000,
        "# A\nDoes it.\n## Input" + " (" * 200_000 + "\n",
        "# A\nDoes it.\n## Constraints\n" + " " * 500_000 + "x\n",
        "# A\nDoes it.\n" + "```\n" * 120_000,
    ],
    ids=["spaces", "closing marks", "headings", "brackets", "bullets", "fences"],
)
async def test_a_text_made_to_take_long_does_not(tmp_path: Path, text: str) -> None:
    write_skill(tmp_path / "a", text)
    assert len(await within(load_skills(tmp_path))) == 1


@given(text=st.text(st.sampled_from('#` \n-~a{}[]":入力例・1.)') | st.characters(), max_size=300))
def test_any_skill_file_is_a_skill_or_a_reported_problem(text: str) -> None:
    registry = skill_registry()
    for heading in ("# A\nDoes it.\n## Input\n", "---\nname: a\ndescription: b\n---\n## 例\n", ""):
        with suppress(AgentsError):
            registry._skill_from(FoundSkill("SKILL.md", "SKILL.md", heading + text), "function_tool")


def test_skills_are_found_in_order_with_their_files(root: Path) -> None:
    write_skill(root / "deep" / "er", "# Deeper\n")
    (root / "good" / "notes").mkdir()
    (root / "good" / "notes" / "style.md").write_text("Be brief.\n")
    (root / "readme.txt").write_text("no skill\n")
    found, problems = find_skills(str(root), 1_000)
    assert [(one.place, one.files) for one in found] == [
        ("deep/er/SKILL.md", ()),
        ("good/SKILL.md", ("notes/style.md",)),
    ]
    assert problems == []


async def test_a_link_to_a_place_inside_is_not_loaded_twice(root: Path) -> None:
    (root / "again").symlink_to(root / "good", target_is_directory=True)
    (root / "file").symlink_to(root.parent / "outside" / "secret.md")
    skills = await load_skills(root)
    assert (len(skills), skills.problems) == (1, [])


async def test_the_folder_itself_may_be_a_link_or_a_skill(root: Path) -> None:
    (root.parent / "link").symlink_to(root, target_is_directory=True)
    assert len(await load_skills(root.parent / "link")) == 1
    assert len(await load_skills(root / "good")) == 1


async def test_folders_are_searched_only_so_deep(root: Path) -> None:
    deep = root
    for number in range(registry.MAX_DEPTH - 1):
        deep /= f"level{number}"
    write_skill(deep / "too-deep" / "and-deeper")
    (deep / "no-skill" / "in-here").mkdir(parents=True)
    write_skill(deep.parent / "just-deep-enough")
    skills = await load_skills(root)
    assert [skill.name for skill in skills] == ["good", "just-deep-enough"]
    assert [problem.message.rpartition("/")[2] for problem in skills.problems] == [
        "too-deep: lies deeper than 5 folders"
    ]


async def test_only_so_many_skills_are_loaded(root: Path) -> None:
    for name in ("h", "i", "j"):
        write_skill(root / name)
    skills = await load_skills(root, max_skills=2)
    assert [skill.name for skill in skills] == ["good", "h"]
    assert len(skills.problems) == 2
    assert await code_of(load_skills(root, max_skills=0)) == "AGENTS-E-SKILL-NOT-LOADED"


async def test_a_long_description_is_a_warning_and_a_model_sees_its_beginning(root: Path) -> None:
    write_skill(root / "long", "---\nname: long\ndescription: " + "x" * 1_068 + "\n---\nDo it.\n")
    skills = await load_skills(root)
    assert [skill.name for skill in skills] == ["good", "long"]
    assert [problem.details["level"] for problem in skills.problems] == ["warning"]
    assert [len(summary.overview) for summary in list_skills(skills)][1] == 1_068
    assert [len(getattr(tool, "description", "")) for tool in to_tools(skills)][1] == 1_024


async def test_only_so_many_files_are_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(root / "a")
    (root / "many").mkdir()
    for number in range(registry.MAX_ENTRIES + 1):
        (root / "many" / str(number)).touch()
    skills = await load_skills(root)
    assert [skill.name for skill in skills] == ["a", "good"]
    assert "more than" in skills.problems[0].message


@pytest.mark.parametrize("name", ["../../outside/secret.md", "/etc/passwd", "link.md", "SKILL.md", "folder"])
def test_only_files_of_the_skill_itself_can_be_read(root: Path, name: str) -> None:
    (root / "good" / "folder").mkdir()
    (root / "good" / "notes.md").write_text("fine")
    (root / "good" / "link.md").symlink_to(root.parent / "outside" / "secret.md")
    with pytest.raises(AgentsError) as caught:
        read_skill_file(str(root / "good" / "SKILL.md"), name)
    assert caught.value.code == "AGENTS-E-SKILL-NOT-FOUND"
    assert read_skill_file(str(root / "good" / "SKILL.md"), "notes.md") == "fine"


@pytest.mark.parametrize(
    "content", [b"\x89PNG\xff", b"x" * (registry.MAX_FILE_BYTES + 1)], ids=["no text", "too large"]
)
def test_a_file_that_is_no_text_or_too_large_is_not_read(root: Path, content: bytes) -> None:
    (root / "good" / "odd").write_bytes(content)
    with pytest.raises(AgentsError, match="AGENTS-E-SKILL-PARSE"):
        read_skill_file(str(root / "good" / "SKILL.md"), "odd")


def test_a_folder_that_cannot_be_opened_is_a_problem(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, who may open everything: the refusal is played."""
    (root / "closed").mkdir()
    real = os.scandir

    def refuse(path: str | Path) -> object:
        if Path(path).name in ("closed", "inner"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    (root / "good" / "inner").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)
    found, problems = find_skills(str(root), 1_000)
    assert [one.place for one in found] == ["good/SKILL.md"]
    assert [problem.message for problem in problems] == ["closed: cannot be opened (Permission denied)"]


def test_only_so_many_files_can_be_asked_for(root: Path) -> None:
    for folder in ("a", "b"):
        (root / "good" / folder).mkdir()
        for number in range(registry.MAX_FILES_PER_SKILL):
            (root / "good" / folder / f"{number}.md").touch()
    (found,), _ = find_skills(str(root), 1_000)
    assert len(found.files) == registry.MAX_FILES_PER_SKILL


def test_a_file_that_vanishes_or_may_not_be_read_is_a_problem(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str | Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    found, problems = find_skills(str(root), 1_000)
    assert found == []
    assert "(Permission denied)" in problems[0].message
