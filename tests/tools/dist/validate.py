"""Checks manifests, Dockerfile and workflows with the official tools.

    python -m tests.tools.dist.validate --tools <folder with hadolint and zizmor>

A check is a function that returns its findings as text. The Node tools run in their own home, so the user's set-up is neither
read nor changed. Cursor and the MCP registry have no such tool; `test_manifests` checks their files.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.tools.dist.facts import COMMAND, ENTRY, KEY, NAME, PINNED, ROOT
from tests.tools.dist.manifests import stale

HERE = Path(__file__).parent
PACKAGES = HERE / "node_modules"
BUNDLE = ROOT / "dist" / f"{NAME}.mcpb"
SECONDS = 120.0

Check = Callable[[], list[str]]


class Tools:
    """Starts the tools, each with a home that is thrown away."""

    def __init__(self, python_tools: Path, home: Path) -> None:
        self._python_tools = python_tools
        self._environ = {**os.environ, "HOME": str(home), "CODEX_HOME": str(home / "codex"), "NO_COLOR": "1"}
        (home / "codex").mkdir()

    def node(self, script: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
        node = shutil.which("node")
        assert node, "make has looked for node"
        return self._run(node, str(script), *arguments)

    def python(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self._run(str(self._python_tools / name), *arguments)

    def _run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, cwd=ROOT, env=self._environ, capture_output=True, text=True, timeout=SECONDS, check=False
        )


def _words(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """What a tool that failed said."""
    return (done.stdout + done.stderr).strip().splitlines() or ["no words"] if done.returncode else []


def bundle(tools: Tools) -> list[str]:
    script, folder = PACKAGES / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js", ROOT / "config" / "dist" / "mcpb"
    if words := _words(tools.node(script, "validate", str(folder / "manifest.json"))):
        return words
    BUNDLE.parent.mkdir(exist_ok=True)
    if words := _words(tools.node(script, "pack", str(folder), str(BUNDLE))):
        return words
    with zipfile.ZipFile(BUNDLE) as archive:
        packed = sorted(archive.namelist())
    expected = ["manifest.json", "pyproject.toml", "server.py"]
    return [] if packed == expected else [f"the bundle holds {packed} and not {expected}"]


def claude_code(tools: Tools, path: str) -> list[str]:
    script = PACKAGES / "@anthropic-ai" / "claude-code" / "cli-wrapper.cjs"
    return _words(tools.node(script, "plugin", "validate", "--strict", path))


def codex(tools: Tools) -> list[str]:
    """Installs the plugin, and asks Codex what it would start."""
    script = PACKAGES / "@openai" / "codex" / "bin" / "codex.js"
    for arguments in (("plugin", "marketplace", "add", str(ROOT)), ("plugin", "add", f"{NAME}@{NAME}")):
        if words := _words(tools.node(script, *arguments)):
            return words
    done = tools.node(script, "mcp", "get", ENTRY, "--json")
    if words := _words(done):
        return words
    transport = json.loads(done.stdout)["transport"]
    seen = {name: transport.get(name) for name in ("command", "args", "env_vars")}
    expected = {"command": COMMAND, "args": PINNED, "env_vars": [KEY]}
    return [] if seen == expected else [f"Codex would start {seen} and not {expected}"]


def gemini(tools: Tools) -> list[str]:
    script = PACKAGES / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    return _words(tools.node(script, "extensions", "validate", str(ROOT / "config" / "dist" / "gemini")))


def workflows(tools: Tools) -> list[str]:
    paths = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(".github/workflows/*.yml"))
    return _words(tools.node(HERE / "lint_workflows.mjs", *paths))


def checks(tools: Tools) -> dict[str, Check]:
    return {
        "the files are as make manifests writes them": stale,
        "the bundle, by mcpb": partial(bundle, tools),
        "the catalogue, by Claude Code": partial(claude_code, tools, "."),
        "the plugin, by Claude Code": partial(claude_code, tools, "config/dist/claude-code"),
        "the plugin, by Codex": partial(codex, tools),
        "the extension, by Gemini CLI": partial(gemini, tools),
        "the Dockerfile, by hadolint": lambda: _words(tools.python("hadolint", "config/dist/Dockerfile")),
        "the workflows, by actionlint": partial(workflows, tools),
        "the workflows, by zizmor": lambda: _words(
            tools.python(
                "zizmor", "--offline", "--quiet", "--persona", "pedantic", ".github", ".pre-commit-config.yaml"
            )
        ),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, required=True)
    options = parser.parse_args()
    failed = 0
    # Not among the system's temporary files: Codex refuses a home there.
    with TemporaryDirectory(dir=ROOT / ".venv") as home:
        for name, check in checks(Tools(options.tools.resolve(), Path(home))).items():
            wrong = check()
            failed += bool(wrong)
            sys.stdout.write(f"{name}: {'FAILED' if wrong else 'passed'}\n" + "".join(f"  {line}\n" for line in wrong))
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
