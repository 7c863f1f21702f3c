"""Every block of the pages about skills and providers, as a reader would use it: pasted into a file, typed into a shell."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.agents.providers.stand_in import ChatStandIn

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("skills.md", "providers.md")

# A process that imports the SDK and starts another one that does.
SLOW_START_SECONDS = 60.0


class Block(NamedTuple):
    language: str
    text: str
    shown: str | None
    """What the page says that it prints, in a block of text right below."""


def blocks_of(page: str) -> list[Block]:
    found = re.findall(r"^```(\w+)\n(.*?)^```\n", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    after = [*found[1:], ("", "")]
    return [
        Block(language, text, shown if kind == "text" else None)
        for (language, text), (kind, shown) in zip(found, after, strict=True)
    ]


def numbered(language: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{page}-{number}")
        for page in PAGES
        for number, block in enumerate((one for one in blocks_of(page) if one.language == language), start=1)
    ]


def environment(provider: str | None) -> dict[str, str]:
    """The environment of a user who has this package, and Ollama where its address is given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTS_", "OPENAI_"))}
    ollama = {
        "AGENTS_MODEL_PROVIDER": "ollama",
        "AGENTS_OLLAMA_BASE_URL": provider or "",
        "AGENTS_OLLAMA_MODEL": "llama3.2",
    }
    return {
        **kept,
        **(ollama if provider else {}),
        "NO_PROXY": "127.0.0.1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}",
        "PYTHONPATH": str(Path(sys.modules["openai_responses_mcp"].__path__[0]).parent),
        "PYTHONIOENCODING": "utf-8",
    }


async def printed_by(command: list[str], folder: Path, provider: str | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a process, while this one goes on to play the provider."""

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=folder, env=environment(provider), capture_output=True, text=True, encoding="utf-8",
            timeout=SLOW_START_SECONDS, check=False,
        )  # fmt: skip

    done = await asyncio.to_thread(run)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the skill that the page shows, saved where it says."""
    skill = tmp_path / "skills" / "summarise-report"
    skill.mkdir(parents=True)
    (block,) = [one for one in blocks_of("skills.md") if one.language == "markdown"]
    (skill / "SKILL.md").write_text(block.text)
    return tmp_path


@pytest.mark.parametrize("block", numbered("python"))
async def test_a_block_of_python_is_a_script(block: Block, folder: Path) -> None:
    (folder / "script.py").write_text(block.text, encoding="utf-8")
    async with ChatStandIn("ollama") as ollama:
        ollama.models = ["llama3.2"]
        code, out, err = await printed_by([sys.executable, "script.py"], folder, ollama.base_url)
    assert (code, err) == (0, "")
    assert out
    assert block.shown is None or out == block.shown


@pytest.mark.parametrize("block", numbered("console"))
async def test_a_block_of_console_is_what_a_terminal_shows(block: Block, folder: Path) -> None:
    prompt, _, shown = block.text.partition("\n")
    assert await printed_by(shlex.split(prompt.removeprefix("$ ")), folder) == (0, shown, "")
