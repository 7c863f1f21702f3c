"""What is measured and how a user gets it: each server in an environment of its own under `.bench`, by name and version.

This project is built into a wheel and installed like the others, with its pinned packages. A server that does not
install is reported, and the run goes on with the rest.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HERE = ROOT / ".bench"
INSTALL_SECONDS = 300.0

OURS = "openai-responses-mcp"
O3 = "o3-search-mcp"


class NotInstalled(Exception):
    """Carries the last line that the installer wrote."""


@dataclass(frozen=True)
class Server:
    """`command` and `packages` are relative to `folder`; `argument` is where its tool takes the question."""

    name: str
    install: Callable[["Server"], None]
    command: tuple[str, ...]
    packages: Path
    tool: str
    argument: str
    pins: tuple[str, ...] = ()
    module_command: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return HERE / self.name

    def command_line(self, command: tuple[str, ...]) -> list[str]:
        return [str(self.folder / command[0]), *command[1:]]

    def installed_bytes(self) -> int:
        return sum(file.lstat().st_size for file in (self.folder / self.packages).rglob("*") if not file.is_dir())


def install_python_peer(server: Server) -> None:
    _once(server, "\n".join(server.pins), lambda: _pip(server, *server.pins))


def install_node_peer(server: Server) -> None:
    def install() -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise NotInstalled("no npm here")
        server.folder.mkdir(parents=True)
        _run(npm, "install", "--no-audit", "--no-fund", "--prefix", str(server.folder), *server.pins)

    _once(server, "\n".join(server.pins), install)


def install_ours(server: Server) -> None:
    """The packages when their pins have changed, the project itself every time."""
    pins = ROOT / "config" / "lock" / "runtime.txt"
    _once(server, pins.read_text(), lambda: _pip(server, "--require-hashes", "-r", str(pins)))
    built = HERE / "dist"
    shutil.rmtree(built, ignore_errors=True)
    _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(built))
    _pip(server, "--no-deps", "--force-reinstall", *map(str, built.glob("*.whl")))


def _once(server: Server, wanted: str, install: Callable[[], None]) -> None:
    """Install again if the pins or the interpreter have changed; a stamp records them."""
    stamp = server.folder / ".installed"
    digest = hashlib.sha256(f"{sys.version}\n{wanted}".encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    shutil.rmtree(server.folder, ignore_errors=True)
    install()
    stamp.write_text(digest)


def _pip(server: Server, *arguments: str) -> None:
    """Into an environment without pip, so that its size is that of the server alone."""
    python = server.folder / "bin" / "python"
    if not python.exists():
        venv.create(server.folder, symlinks=True)
    _run(sys.executable, "-m", "pip", "--python", str(python), "-qq", "install", *arguments)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{Path(command[0]).name} took more than {INSTALL_SECONDS:g} s") from None
    if done.returncode:
        raise NotInstalled((done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1])


def compile_packages(server: Server) -> None:
    """Users have byte code from their first start on, whatever this shell says about writing it."""
    if server.install is not install_node_peer:
        python = str(server.folder / "bin" / "python")
        subprocess.run([python, "-m", "compileall", "-qq", str(server.folder / server.packages)], env=_plain_environ())


def environment(home: str, base_url: str) -> dict[str, str]:
    """Only the search path of this process: no settings of Python, Node or a proxy, and no files of the user."""
    return {**_plain_environ(), "HOME": home, "OPENAI_API_KEY": "sk-bench", "OPENAI_BASE_URL": base_url}


def _plain_environ() -> Mapping[str, str]:
    return {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}


_SITE_PACKAGES = Path(sysconfig.get_path("purelib", vars={"base": ""}).lstrip("/"))

SERVERS = (
    Server(
        OURS,
        install_ours,
        (f"bin/{OURS}", "--stdio"),
        _SITE_PACKAGES,
        "answer",
        "query",
        module_command=("bin/python", "-m", "openai_responses_mcp", "--stdio"),
    ),
    Server(
        O3,
        install_node_peer,
        (f"node_modules/.bin/{O3}",),
        Path("node_modules"),
        "o3-search",
        "input",
        pins=("o3-search-mcp@0.0.3",),
    ),
    Server(
        "openai-websearch-mcp",
        install_python_peer,
        ("bin/openai-websearch-mcp",),
        _SITE_PACKAGES,
        "openai_web_search",
        "input",
        pins=("openai-websearch-mcp==0.4.3", "pydantic<2.12"),
    ),
    Server(
        "mcp-openai-websearch",
        install_python_peer,
        ("bin/mcp-openai-websearch",),
        _SITE_PACKAGES,
        "web_search",
        "input",
        pins=("mcp-openai-websearch==0.1.5",),
    ),
)
