import os
from pathlib import Path

import pytest

from openai_responses_mcp.commands.asking import LastAnswer


def place(environ: dict[str, str], platform: str, *, rehearses: bool = False) -> str:
    return LastAnswer(environ, rehearses=rehearses, platform=platform).path


def test_the_place_is_that_for_the_state_of_programs(tmp_path: Path) -> None:
    name = os.path.join("openai-responses-mcp", "last-answer")
    at_home = os.path.join("/h", ".local", "state", name)
    assert place({"HOME": "/h"}, "linux") == at_home
    assert place({"HOME": "/h", "XDG_STATE_HOME": "relative"}, "linux") == at_home
    stated = str(tmp_path)
    assert place({"HOME": "/h", "XDG_STATE_HOME": stated}, "linux") == os.path.join(stated, name)
    assert place({"HOME": "/h", "LOCALAPPDATA": "/l"}, "win32") == os.path.join("/l", name)
    assert place({"HOME": "/h"}, "linux", rehearses=True).endswith("last-rehearsal")
    assert place({}, "linux").startswith(os.path.expanduser("~"))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path)}


def test_the_last_answer_takes_the_place_of_the_one_before(environ: dict[str, str]) -> None:
    memory = LastAnswer(environ, rehearses=False, platform="linux")
    assert memory.remember("resp_1", "Why?")
    assert memory.remember("resp_2", "Why?")
    assert memory.maybe_recall() == "resp_2"
    assert memory.rehearsed() == {}
    assert Path(memory.path).read_text() == "resp_2\n"
    assert os.listdir(os.path.dirname(memory.path)) == ["last-answer"]


def test_a_rehearsal_remembers_its_question(environ: dict[str, str]) -> None:
    memory = LastAnswer(environ, rehearses=True, platform="linux")
    assert memory.remember("resp_1", "なぜ？\nくわしく")
    assert memory.rehearsed() == {"resp_1": "なぜ？\nくわしく"}
    assert memory.remember("resp_2", "half a pair: \ud83d")
    assert memory.rehearsed() == {"resp_2": "half a pair: \ufffd"}


@pytest.mark.parametrize("content", [b"", b"something else\n", b"\xff\xfe", b"resp_" + b"x" * 100_000])
def test_a_file_that_holds_something_else_is_no_memory(environ: dict[str, str], content: bytes) -> None:
    memory = LastAnswer(environ, rehearses=False, platform="linux")
    os.makedirs(os.path.dirname(memory.path))
    Path(memory.path).write_bytes(content)
    assert memory.maybe_recall() is None


def test_a_temporary_file_of_a_killed_process_with_the_same_id_is_overwritten(environ: dict[str, str]) -> None:
    memory = LastAnswer(environ, rehearses=False, platform="linux")
    os.makedirs(os.path.dirname(memory.path))
    Path(f"{memory.path}.{os.getpid()}").write_text("half of something longer")
    assert memory.remember("resp_1", "Why?")
    assert memory.maybe_recall() == "resp_1"
