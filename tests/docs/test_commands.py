"""Every command of the pages runs as it is written: in an empty home, with the repository's address on a local clone.

The blocks of a page (`sh`, and lines with `$ ` in `console`) are one script, in order. Two things are left out: blocks below
`<!-- not run: why -->`, and lines with a word in capitals, such as APPROVAL, which the reader replaces. A YAML or JSON block
is saved as the file that is named right before it. Clients, `npx` and the API are stand-ins; uv, pip, git and what they
install are real. `test_guard_page.py` plays the page about the guard, because it needs decisions between the commands.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.stand_in.server import StandInThread
from tests.tools.docs.site import DOCS, README, REPOSITORY, ROOT, read

pytestmark = pytest.mark.slow

PAGES = (README, *(DOCS / f"{name}.md" for name in ("index", "agents", "http", "terminal")))
LONGEST_SECONDS = 600.0
INSTALL = re.compile(r"^[ $]*(?:uv tool|pip) install", re.MULTILINE)
COMING_FROM_README = f"openai-responses-mcp[guard] @ git+{REPOSITORY}"
CLIENTS = ("claude", "codex", "gemini", "code")
HERE = Path(__file__).parent

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>sh|console|yaml|json)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)
_NOT_RUN = re.compile(r"<!-- not run: [^>]+ -->\s*\Z")
_FILE = re.compile(r"`(~/[\w./-]+\.(?:yaml|json))`[^`]*\Z")
_SERVES = re.compile(r"^openai-responses-mcp [^#]*(?:--http|approvals serve|approvals watch)")
_OWN = re.compile(r"[A-Z]{2,}(?:_[A-Z]+)*")


class Block(NamedTuple):
    language: str
    text: str
    before: str
    """The page up to the block."""

    @property
    def is_left_out(self) -> bool:
        return _NOT_RUN.search(self.before) is not None


def blocks_of(page: str) -> list[Block]:
    return [
        Block(
            found["language"],
            re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE),
            page[: found.start()],
        )
        for found in _BLOCK.finditer(page)
    ]


def script_of(page: str, port: int) -> str:
    """A reader of a page without an install line has installed it with the README."""
    lines = [] if INSTALL.search(page) else [f'uv tool install "{COMING_FROM_README}"']
    for number, block in enumerate(blocks_of(page), start=1):
        if not block.is_left_out:
            lines += [f"echo '# block {number}'", *_commands(block, port)]
    return "\n".join(lines) + "\n"


def _commands(block: Block, port: int) -> list[str]:
    text = re.sub(r"\b808\d\b", str(port), block.text)
    if block.language in ("yaml", "json"):
        named = _FILE.search(block.before)
        return (
            [f"mkdir -p $(dirname {named[1]})", f"cat > {named[1]} <<'END_OF_FILE'\n{text}END_OF_FILE"] if named else []
        )
    if block.language == "console":
        text = "".join(line.removeprefix("$ ") for line in text.splitlines(keepends=True) if line.startswith("$ "))
    # A backslash continues a command on the next line.
    commands = re.sub(r"\\\n\s*", "", text).splitlines()
    return [f"until_up {line}" if _SERVES.match(line) else line for line in commands if not _has_a_placeholder(line)]


def _has_a_placeholder(line: str) -> bool:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # Quoted text that continues on the next line.
        return False
    return any(_OWN.fullmatch(word) for word in words)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as it is now, committed."""
    clone = tmp_path_factory.mktemp("repository") / "clone"
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(clone))
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(clone)], check=True)
    tracked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "now"], check=True)
    return clone


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by all pages, so that only the first one downloads."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def home(tmp_path: Path, repository: Path) -> Path:
    home = tmp_path / "home"
    programs = home / "programs"
    programs.mkdir(parents=True)
    (home / ".gitconfig").write_text(f'[url "file://{repository}"]\n\tinsteadOf = {REPOSITORY}\n')
    for client in CLIENTS:
        _write_program(programs / client, str(HERE / "client_stand_in.py"), client)
    _write_program(programs / "until_up", str(HERE / "until_up.py"))
    # In place of `npx -y @modelcontextprotocol/server-filesystem FOLDER`.
    npx = programs / "npx"
    npx.write_text(f'#!/bin/sh\nexec {sys.executable} {DOCS / "examples" / "files_server.py"} "$3"\n')
    npx.chmod(0o755)
    (programs / "uv").symlink_to(Path(sys.executable).parent / "uv")
    (programs / "uvx").symlink_to(Path(sys.executable).parent / "uvx")
    return home


def _write_program(path: Path, *words: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *words])} "$@"\n')
    path.chmod(0o755)


@pytest.mark.timeout(LONGEST_SECONDS + 60)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page: Path, home: Path, cache: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free, StandInThread() as api:
        port = free.getsockname()[1]
        free.close()
        done = _run(script_of(read(page), port), home, cache, tmp_path / "folder", api.base_url)
    assert done.returncode == 0, done.stdout[-4000:]


def _run(script: str, home: Path, cache: Path, folder: Path, api: str) -> "subprocess.CompletedProcess[str]":
    folder.mkdir()
    passed = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    environ = passed | {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "NO_PROXY": "127.0.0.1",
        "OPENAI_BASE_URL": api,
        "PATH": f"{home}/environment/bin:{home}/.local/bin:{home}/programs:/usr/local/bin:/usr/bin:/bin",
        "PIP_CACHE_DIR": str(cache / "pip"),
        "UV_CACHE_DIR": str(cache / "uv"),
        "UV_PYTHON": sys.executable,
    }
    # What the pages expect: an environment for pip, a certificate, a token.
    ready = (
        f"{shlex.quote(sys.executable)} -m venv {home}/environment\n"
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost 2>/dev/null\n"
        "export MY_TOKEN=a-token-of-mine\n"
    )
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", ready + script],
        cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=LONGEST_SECONDS, check=False,
    )  # fmt: skip
