"""`--completion`: a real bash completes with it; the other shells get the same options."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from openai_responses_mcp.commands.completion import SCRIPTS
from openai_responses_mcp.commands.usage import AGENTS, ASKING, COMMANDS, GENERAL, GUARDING, SHELLS
from tests.e2e.client import COMMAND, WAIT_SECONDS, environment, run


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the real process prints for bash."""
    folder = tmp_path_factory.mktemp("completion")
    done = run(environment(folder), "--completion", "bash")
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
        (("approvals", "s"), ["show", "standing", "serve"]),
        (("guard", "--p"), ["--policy", "--profile"]),
        (("guard", "--name", "x", "--", "comp"), ["completion.bash"]),
        (("--tool", "answer_"), ["answer_detailed", "answer_quick"]),
        (("--style", ""), ["summary", "bullets", "citations-only"]),
        (("--nonsense",), []),
        (("agents", ""), list(AGENTS)),
        (("agents", "policy", ""), ["check", "test", "suggest"]),
    ],
)
def test_bash_completes(script: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(script, *words) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_every_option(shell: str) -> None:
    text = SCRIPTS[shell]()
    for option in (*COMMANDS, *ASKING, *GENERAL, *GUARDING):
        assert option.flag in text or f"-l {option.flag[2:]} " in text
        assert all(choice in text for choice in option.choices)
    assert all(word in text for area, verbs in AGENTS.items() for word in (area, *verbs))


def test_completions_after_agents_match_the_help() -> None:
    help_of: dict[tuple[str, ...], Iterable[str]] = {
        (): AGENTS,
        **{(area,): verbs for area, verbs in AGENTS.items() if verbs},
    }
    for words, offered in help_of.items():
        done = subprocess.run(
            [*COMMAND, "agents", *words, "--help"], capture_output=True, text=True, timeout=WAIT_SECONDS, check=True
        )
        assert re.findall(r"^    (\S+)", done.stdout, re.MULTILINE) == list(offered)
