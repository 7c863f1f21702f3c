"""A policy or a store that cannot be used is reported before the server starts, also while stdin stays open."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.child_process import StderrLines
from openai_responses_mcp.guard import composition, lifetime
from openai_responses_mcp.guard.servers import GuardOptions
from tests.agents.fakes import WAIT_SECONDS, within


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--policy", "missing.yaml"], "missing.yaml"),
        (["--policy", "broken.yaml"], "broken.yaml:2: profil"),
        (["--store", "sqlite:///folder"], "the store folder is a folder; name a file"),
        (["--store", "sqlite:///broken.yaml"], "the store broken.yaml is not a SQLite database"),
        (["--store", "sqlite:///fifo"], "the store fifo is not a regular file"),
        (["--store", "sqlite:///broken.yaml/x"], "the store broken.yaml/x cannot be read: Not a directory"),
        ([], "the store cannot be created: "),
    ],
)
def test_an_unusable_option_is_reported_to_the_client_and_on_stderr(
    tmp_path: Path, options: list[str], problem: str
) -> None:
    (tmp_path / "broken.yaml").write_text("version: 1\nprofil: fast\n")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    # Only without --store the user's own folder is needed, and that cannot be made here.
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "broken.yaml")} if not options else None
    started = tmp_path / "started"
    command = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
    line = [sys.executable, "-m", "openai_responses_mcp", "guard", *options, "--", *command]
    with subprocess.Popen(
        line,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environ,
    ) as guard:
        assert guard.stdin is not None
        assert guard.stdout is not None
        assert guard.stderr is not None
        said = guard.stderr.readline()
        assert problem in said
        guard.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}\n')
        guard.stdin.flush()
        reply = json.loads(guard.stdout.readline())
        assert reply["id"] == 1
        assert reply["error"]["message"] in said
        assert guard.wait(WAIT_SECONDS * 6) == 2
    assert not started.exists()


@pytest.mark.parametrize("end", ["time", "signal"])
async def test_a_client_that_asks_nothing_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Its stdin stays open. Ten seconds are for clients that are slow to start."""
    assert lifetime.SECONDS_TO_BE_ASKED == 10.0
    monkeypatch.setattr(composition, "SECONDS_TO_BE_ASKED", 0.05 if end == "time" else WAIT_SECONDS * 10)
    (theirs, ours), stopped = (os.pipe(), os.pipe()), asyncio.get_running_loop().create_future()
    options = GuardOptions(("server",), "server", policy=str(tmp_path / "missing.yaml"), store="sqlite:///guard.db")
    lines = StderrLines("guard", ours[1])
    if end == "signal":
        stopped.set_result(128 + 15)
    assert await within(composition.guard(options, (theirs[0], ours[1]), {}, stopped, lines)) == 2
    lines.close(WAIT_SECONDS)
    for descriptor in (theirs[1], theirs[0], *ours):
        os.close(descriptor)
