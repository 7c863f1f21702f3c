"""A call through the guard beside the same call without it: what the gate, the log and the store add.

    python -m tests.tools.bench.guard [--calls N]

One client calls one tool of one small server, one call after the other: bare, behind the guard with a store in memory, with
a SQLite file, and with that file in WAL mode, which is what a newer SQLite than this machine's may use. The ways take turns,
so that what else runs on the machine slows down all of them. So does one `fsync`, without which nothing is on the disk. Memory
is what belongs to the guard's process alone.
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.guard.conftest import ALLOW_ALL, SMALL_SERVER, policy_file
from tests.tools.bench.alone import main
from tests.tools.bench.tables import BARE, FILE, MEMORY, WAL, guarded_server

_WARM_UP = 50
_SERVER = (sys.executable, str(SMALL_SERVER))
_IN_WAL = (
    "import sys; from openai_responses_mcp.gate.sql import sql_database;"
    "sql_database.SAFE_WAL_VERSION = (0,);"
    "from openai_responses_mcp.guard.command_line import main; sys.exit(main(sys.argv[1:]))"
)


class Talk:
    """One process and one call at a time."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        environ = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home)}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)
        self._number = 0

    def __enter__(self) -> "Talk":
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._ask("initialize", params)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def call_ms(self) -> float:
        began = time.perf_counter()
        reply = self._ask("tools/call", {"name": "echo", "arguments": {"text": "a short text"}})
        took = time.perf_counter() - began
        if reply["result"]["isError"]:
            raise SystemExit(f"a call failed: {reply}")
        return took * 1000

    def own_memory_mb(self) -> float:
        """What would be free if the process ended."""
        lines = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


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
    talks = {name: Talk(command, folder).__enter__() for name, command in ways(folder).items()}
    times: dict[str, list[float]] = {name: [] for name in talks}
    fsync: list[float] = []
    for number in range(_WARM_UP + calls):
        for name in random.sample(list(talks), len(talks)):
            took = talks[name].call_ms()
            if number >= _WARM_UP:
                times[name].append(took)
        fsync.append(fsync_ms(folder / "written"))
    memory = {name: talk.own_memory_mb() for name, talk in talks.items()}
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
