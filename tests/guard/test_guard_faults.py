"""Hostile servers, clients that go, processes that die: the guard survives, answers everything once and cleans up."""

import json
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.e2e.client import WAIT_SECONDS, request
from tests.gate.sql.interrupted_writes import leave_journal
from tests.guard.conftest import ALLOW_ALL, Guarded, text_of

pytestmark = pytest.mark.slow

# What the guard promises, with some room for a busy machine.


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: not is_running(pid))


# ---------------------------------------------------------------------------------------------------------------------
# The server


async def test_a_flood_passes_whole_and_without_control_characters_on_stderr(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    assert guard.called("flood")["result"]["isError"] is False
    assert len([message for message in guard.received if message.get("method") == "notifications/message"]) == 2000
    assert guard.finish() == 0
    assert "noise noise" in guard.stderr
    assert "\x1b" not in guard.stderr


async def test_when_the_server_dies_calls_get_an_error_and_the_guard_its_exit_code(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    guard.start_call("hang", "a")
    wait_until(lambda: len(guard.calls_seen()) == 1)
    guard.start_call("die", "b", text="7")
    for call_id in ("a", "b"):
        assert guard.reply_to(call_id)["error"]["message"] == "The guarded server has ended (exit code 7)"
    assert guard.exit_code() == 7
    assert [event for event in await guard.events() if event[0] == "outcome"] == [("outcome", "failed")] * 2


async def test_a_command_that_does_not_exist_is_named_to_the_client_too(guarded: Guarded) -> None:
    guard = guarded(server=("/nowhere/at-all",))
    guard.send(request(1, "initialize"))
    problem = "/nowhere/at-all cannot be started: No such file or directory"
    assert guard.reply_to(1)["error"]["message"] == problem
    assert guard.exit_code() == 127
    assert problem in guard.stderr


# ---------------------------------------------------------------------------------------------------------------------
# The client


async def test_a_thousand_calls_at_once_are_answered_once_each(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    for number in range(1000):
        guard.start_call("echo", number, text=str(number))
    replies = guard.replies_to(range(1000))
    assert [json.loads(text_of(reply))["got"]["text"] for reply in replies] == [str(n) for n in range(1000)]
    assert guard.finish() == 0
    assert len(guard.received) == 1000
    events = await guard.events()
    assert {event: events.count(event) for event in set(events)} == {
        ("decision", "allow"): 1000,
        ("started", "started"): 1000,
        ("outcome", "completed"): 1000,
    }
    assert (await guard.desk().audit.verify()).is_intact


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_the_server_too(guarded: Guarded, number: signal.Signals) -> None:
    guard = guarded(policy=ALLOW_ALL)
    child = int(text_of(guard.called("spawn")))
    guard.start_call("hang", "d")
    guard.process.send_signal(number)
    assert guard.exit_code() == 128 + number
    assert "Traceback" not in guard.stderr
    wait_until_gone(child)


async def test_a_server_that_minds_nothing_is_killed_in_time_with_its_children(guarded: Guarded) -> None:
    stubborn = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '60'], preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))\n"
        "sys.stderr.write(f'{os.getpid()} {child.pid}\\n'); sys.stderr.flush()\n"
        "while True: time.sleep(1)"
    )
    guard = guarded(server=(sys.executable, "-c", stubborn))
    wait_until(lambda: "\n" in guard.stderr)
    pids = [int(pid) for pid in guard.stderr.split()]
    assert guard.finish() == 137
    for pid in pids:
        wait_until_gone(pid)


@pytest.mark.parametrize("audit", ["required", "best_effort"])
async def test_without_the_store_no_call_runs(guarded: Guarded, tmp_path: Path, audit: str) -> None:
    file = tmp_path / "guard.db"
    guard = guarded("--store", f"sqlite:///{file}?timeout=0.1", policy=f"{ALLOW_ALL}audit: {audit}\n")
    assert guard.called("echo", "a")["result"]["isError"] is False
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "database is locked" in text_of(guard.called("echo", "b"))
        other.execute("ROLLBACK")
    assert guard.called("echo", "c")["result"]["isError"] is False
    assert guard.finish() == 0
    logs = await open_stores(f"sqlite:///{file}", must_exist=True).logs.query()
    assert Counter(log.event for log in logs) == {"decision": 2, "started": 2, "outcome": 2}


async def test_the_guard_starts_on_a_store_whose_writer_was_killed(guarded: Guarded, tmp_path: Path) -> None:
    file = tmp_path / "left.db"
    SqlDatabase(f"sqlite:///{file}").work_now(lambda connection: None)
    leave_journal(file)
    guard = guarded("--store", f"sqlite:///{file}", policy=ALLOW_ALL)
    guard.initialize()
    assert "got" in text_of(guard.called("echo"))
    assert guard.finish() == 0


@pytest.mark.parametrize("is_early", [True, False])
def test_a_server_that_dies_at_its_start_is_quoted_to_the_client(guarded: Guarded, is_early: bool) -> None:
    reason = "no \u200btoken: planted-secret-value " + "x" * 1000
    waits = "" if is_early else "sys.stdin.readline();"
    dying = f"import sys;{waits}print('starting\\n' + {reason!r}, file=sys.stderr);sys.exit(4)"
    server = (sys.executable, "-X", "utf8", "-c", dying)
    guard = guarded(server=server, MY_API_KEY="planted-secret-value")
    if is_early:
        # What the server says arrives on stderr before the client sends anything.
        wait_until(lambda: "xxx" in guard.stderr)
    guard.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    message = guard.reply_to(1)["error"]["message"]
    start = 'The guarded server has ended (exit code 4); the last line that it wrote to stderr: "no \\u200btoken: '
    assert message.startswith(start)
    assert "planted-secret-value" not in message
    assert len(message) < 500
    assert guard.exit_code() == 4
