"""The guard as a process: pipes that close, files, signals, a client that does not read, what a library prints."""

import asyncio
import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from openai_responses_mcp.gate.clock import present, timestamp
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.e2e.client import COMMAND, WAIT_SECONDS, environment, request
from tests.e2e.test_process import own_pipe, stray, wait_for_output
from tests.guard.conftest import ALLOW_ALL, SMALL_SERVER, Guarded, text_of
from tests.guard.test_guard_e2e import until
from tests.guard.test_guard_faults import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("method", ["ping", "hang"])
def test_a_client_that_closes_stdout_ends_guard_and_server(guarded: Guarded, method: str) -> None:
    with own_pipe() as (reading, writing):
        guard = guarded(policy=ALLOW_ALL, stdout=writing)
        guard.send(request(1, "environment"))
        wait_for_output(reading)
        if method == "hang":
            guard.start_call("hang")
    assert guard.exit_code() == 0
    assert "Traceback" not in guard.stderr


def test_descriptors_that_are_closed_at_the_start_are_no_error(guarded: Guarded) -> None:
    guard = guarded(shell="<&- >&- 2>&-")
    assert guard.finish() == 0
    assert guard.stderr == ""
    assert guard.received == []


def test_output_of_a_library_never_reaches_the_wire(guarded: Guarded, tmp_path: Path) -> None:
    (tmp_path / "strays").mkdir()
    (tmp_path / "strays" / "sqlalchemy.py").write_text(stray("sqlalchemy"))
    path = os.pathsep.join([str(tmp_path / "strays"), os.environ.get("PYTHONPATH", "")])
    guard = guarded(policy=ALLOW_ALL, PYTHONPATH=path)
    assert guard.called("echo")["result"]["isError"] is False
    assert guard.finish() == 0
    assert len(guard.received) == 1
    assert [kind for kind in ("print", "write", "puts", "child") if f"a stray {kind}" not in guard.stderr] == []


def test_a_setting_that_makes_no_sense_ends_the_guard_with_what_is_wrong(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL, AGENTS_RESUME_TOKEN_TTL_SEC="soon")
    guard.start_call("echo")
    assert guard.exit_code() == 2
    assert "AGENTS_RESUME_TOKEN_TTL_SEC" in guard.stderr
    assert guard.calls_seen() == []


async def test_a_guard_that_runs_is_shown_by_status_until_it_ends(guarded: Guarded, tmp_path: Path) -> None:
    guard = guarded(policy=ALLOW_ALL)
    guard.called("echo")
    leases = open_stores(guard.store, must_exist=True).presence
    async with asyncio.timeout(WAIT_SECONDS):
        while not await present(leases, datetime.now(UTC), "guard"):
            pass
    line = [*COMMAND, "status", "--store", guard.store, "--json"]
    done = await asyncio.to_thread(
        subprocess.run, line, capture_output=True, env=environment(tmp_path), timeout=WAIT_SECONDS, check=True
    )
    (shown,) = json.loads(done.stdout)["guards"]
    assert (shown["kind"], shown["name"]) == ("guard", "small")
    assert str(tmp_path / "policy.yaml") in shown["detail"]
    assert str(SMALL_SERVER) in shown["detail"]
    assert guard.finish() == 0
    assert await present(leases, datetime.now(UTC), "guard") == []


async def test_a_standing_approval_releases_the_call_that_waits_at_another_guard(
    guarded: Guarded, tmp_path: Path
) -> None:
    guards = [guarded(), guarded()]
    for guard in guards:
        guard.start_call("echo")
        wait_until(lambda guard=guard: "waiting for approval" in guard.stderr)  # type: ignore[misc]
    waiting = await open_stores(guards[0].store, must_exist=True).approvals.list_pending()
    allow = ["approvals", "allow", waiting[0].request.approval_id, "--always", "--json", "--store", guards[0].store]
    done = await asyncio.to_thread(
        subprocess.run,
        [*COMMAND, *allow],
        capture_output=True,
        env=environment(tmp_path),
        timeout=WAIT_SECONDS,
        check=True,
    )
    assert json.loads(done.stdout)["released"] == 1
    for guard in guards:
        assert "hi" in text_of(guard.reply_to("c"))
        assert guard.finish() == 0


async def test_a_yes_to_a_call_of_a_killed_guard_is_kept_for_the_next_one(guarded: Guarded, tmp_path: Path) -> None:
    killed = guarded()
    killed.start_call("echo")
    wait_until(lambda: "waiting for approval" in killed.stderr)
    stores = open_stores(killed.store, must_exist=True)
    [asked] = await stores.approvals.list_pending()
    killed.process.kill()
    killed.process.wait(WAIT_SECONDS)
    line = [*COMMAND, "approvals", "approve", asked.request.approval_id, "--store", killed.store]
    done = await asyncio.to_thread(
        subprocess.run,
        line,
        capture_output=True,
        env=environment(tmp_path),
        timeout=WAIT_SECONDS,
        check=True,
        text=True,
    )
    # Its lease is not void yet, so the desk cannot know that it is gone. But it sees that nothing runs.
    said = " ".join(done.stdout.split())
    assert "its guard has not answered yet. If that guard is gone, the yes counts for ten minutes" in said
    left = await stores.approvals.get(asked.request.approval_id)
    assert left is not None
    await until(lambda: stores.approvals.find_kept(left, timestamp(datetime.now(UTC))))
    again = guarded()
    assert "hi" in text_of(again.called("echo"))
    again.start_call("echo", "d")
    wait_until(lambda: "waiting for approval" in again.stderr)
    found = await killed.desk().audit.verify()
    assert found.is_intact, found
