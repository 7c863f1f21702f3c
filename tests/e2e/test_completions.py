"""`--completion`: a real bash completes with it; the other shells get the same options."""

import subprocess
from pathlib import Path

import pytest

from openai_responses_mcp.commands.completion import SCRIPTS
from openai_responses_mcp.commands.usage import ASKING, COMMANDS, GENERAL, SHELLS
from tests.e2e.client import COMMAND, WAIT_SECONDS, environment


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the real process prints for bash."""
    folder = tmp_path_factory.mktemp("completion")
    done = subprocess.run(
        [*COMMAND, "--completion", "bash"], capture_output=True, env=environment(folder), timeout=WAIT_SECONDS
    )
    assert (done.returncode, done.stderr) == (0, b"")
    path = folder / "completion.bash"
    path.write_bytes(done.stdout)
    return path


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    program = (
        f"source '{script}'; COMP_WORDS=(openai-responses-mcp \"$@\"); COMP_CWORD=$#;"
        " _openai_responses_mcp; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "-c", program, "bash", *words], capture_output=True, text=True, timeout=WAIT_SECONDS, cwd=script.parent
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("--st",), ["--stdio", "--style"]),
        (("ag",), ["agents"]),
        (("--ask", "Why?", "--re"), ["--recency", "--rehearse"]),
        (("--tool", "answer_"), ["answer_detailed", "answer_quick"]),
        (("--style", ""), ["summary", "bullets", "citations-only"]),
        (("--completion", "z"), ["zsh"]),
        (("--config", "comp"), ["completion.bash"]),
        (("--nonsense",), []),
    ],
)
def test_bash_completes(script: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(script, *words) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_every_option(shell: str) -> None:
    text = SCRIPTS[shell]()
    for option in (*COMMANDS, *ASKING, *GENERAL):
        assert option.flag in text or f"-l {option.flag[2:]} " in text
        assert all(choice in text for choice in option.choices)
