"""A call through the guard beside the same call without it: what the gate, the log and the store add.

    python -m tests.tools.bench.guard [--calls N]

One client calls one tool of one small server, one call after the other: bare, behind the guard with a store in memory, with
a SQLite file, and with that file in WAL mode, which is what a newer SQLite than this machine's may use. The ways take turns,
so that what else runs on the machine slows down all of them. So does one `fsync`, without which nothing is on the disk. Memory
is what belongs to the guard's process alone.
"""

import os
import random
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.guard.conftest import ALLOW_ALL, SMALL_SERVER, policy_file
from tests.tools.bench.alone import main
from tests.tools.bench.conversation import Conversation
from tests.tools.bench.tables import BARE, FILE, MEMORY, WAL, guarded_server

_WARM_UP = 50
_TEXT = "a short text"
_SERVER = (sys.executable, str(SMALL_SERVER))
_IN_WAL = (
    "import sys; from openai_responses_mcp.gate.sql import sql_database;"
    "sql_database.SAFE_WAL_VERSION = (0,);"
    "from openai_responses_mcp.guard.command_line import main; sys.exit(main(sys.argv[1:]))"
)


def started(command: Sequence[str], home: Path) -> Conversation:
    talk = Conversation(command, {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home)})
    talk.initialize()
    return talk


def call_ms(talk: Conversation) -> float:
    began = time.perf_counter()
    return (talk.call("echo", {"text": _TEXT}, sign=_TEXT.encode()) - began) * 1000


def own_memory_mb(pid: int) -> float:
    """What would be free if the process ended."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def ways(folder: Path) -> dict[str, list[str]]:
    guard = [sys.executable, "-m", "openai_responses_mcp", "agents", "guard"]
    rules, behind = ["--policy", policy_file(folder, ALLOW_ALL)], ["--", *_SERVER]
    return {
        BARE: [*_SERVER],
        MEMORY: [*guard, *rules, "--store", "sqlite://", *behind],
        FILE: [*guard, *rules, "--store", f"sqlite:///{folder}/plain.db", *behind],
        WAL: [sys.executable, "-c", _IN_WAL, *rules, "--store", f"sqlite:///{folder}/wal.db", *behind],
    }


def measured(calls: int, folder: Path) -> dict[str, Any]:
    talks = {name: started(command, folder) for name, command in ways(folder).items()}
    times: dict[str, list[float]] = {name: [] for name in talks}
    fsync: list[float] = []
    for number in range(_WARM_UP + calls):
        for name in random.sample(list(talks), len(talks)):
            took = call_ms(talks[name])
            if number >= _WARM_UP:
                times[name].append(took)
        fsync.append(fsync_ms(folder / "written"))
    memory = {name: own_memory_mb(talk.pid) for name, talk in talks.items()}
    for talk in talks.values():
        talk.__exit__(None, None, None)
    load = round(os.getloadavg()[0], 1)
    found = {"calls": calls, "sqlite": sqlite3.sqlite_version, "load": load}
    return {**found, "times": times, "fsync": fsync, "memory": memory}


def fsync_ms(file: Path) -> float:
    with file.open("wb", buffering=0) as opened:
        began = time.perf_counter()
        opened.write(b"x" * 4096)
        os.fsync(opened.fileno())
        return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main("guard", "calls", 500, measured, guarded_server)
