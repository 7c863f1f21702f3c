"""One guarded call beside the plain SDK: what the gate, the log and the store cost.

    python -m tests.bench.guarded [--runs N]

An agent calls one tool and ends, on a model that is played from a script and takes no time. Each turn is made plain,
guarded with a store in memory, guarded with a SQLite file, and guarded with that file in WAL mode, which is what a newer
SQLite than this machine's may use. The ways take turns, so that what else runs on the machine slows down all of them.
Every run has an agent of its own. Writes are counted where the database is told to commit.
"""

import argparse
import asyncio
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agents import Agent as PlainAgent
from agents import RunConfig, Runner, function_tool
from sqlalchemy import Connection, Engine, event

from openai_responses_mcp.agents import Agent, SafetyAgent, create_runner
from openai_responses_mcp.agents.adapters.stores import sql_database
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.bench.figures import Summary, summary

PLAIN, MEMORY, FILE, WAL = "plain SDK", "guarded, in memory", "guarded, SQLite file", "guarded, SQLite file in WAL mode"
LIMITS = {MEMORY: 1.5, FILE: 3.0}
BEGIN, END = "<!-- bench:guarded:begin -->", "<!-- bench:guarded:end -->"
_WARM_UP = 20

Way = Callable[[], Awaitable[Any]]


@function_tool
def look(what: str) -> str:
    """Look at something."""
    return f"saw {what}"


def _model() -> ScriptedModel:
    return ScriptedModel(ScriptedCall("look", {"what": "the sky"}), "It is blue.")


async def _plain() -> Any:
    agent = PlainAgent(name="Looker", model=_model(), tools=[look])
    return await Runner.run(agent, "Look up.", run_config=RunConfig(tracing_disabled=True))


def _guarded(store: str | None) -> Way:
    runner = create_runner(safety_agent=SafetyAgent.allow_all(), store=store)

    async def run() -> Any:
        return await runner.run(Agent(name="Looker", model=_model(), tools=[look]), "Look up.")

    return run


async def _guarded_in_wal(store: str) -> Way:
    """The journal is chosen when a connection is opened, which the first run does."""
    run, safe = _guarded(store), sql_database.SAFE_WAL_VERSION
    sql_database.SAFE_WAL_VERSION = (0,)  # type: ignore[assignment]
    try:
        await run()
    finally:
        sql_database.SAFE_WAL_VERSION = safe
    return run


class Writes:
    """Counts transactions that write; each is on the disk when its commit returns."""

    def __init__(self) -> None:
        self.count = 0
        event.listen(Engine, "commit", self._committed)

    def _committed(self, connection: Connection) -> None:
        self.count += bool(connection.get_execution_options().get("is_writing"))


async def measured(runs: int, folder: Path) -> dict[str, Any]:
    writes = Writes()
    ways: dict[str, Way] = {
        PLAIN: _plain,
        MEMORY: _guarded(None),
        FILE: _guarded(f"sqlite:///{folder}/agents.db"),
        WAL: await _guarded_in_wal(f"sqlite:///{folder}/wal.db"),
    }
    wall: dict[str, list[float]] = {name: [] for name in ways}
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    count: dict[str, int] = {}
    for number in range(_WARM_UP + runs):
        for name in random.sample(list(ways), len(ways)):
            before, began, began_cpu = writes.count, time.perf_counter(), time.process_time()
            result = await ways[name]()
            took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
            if result.final_output != "It is blue.":
                raise SystemExit(f"{name} did not do its work")
            if number >= _WARM_UP:
                wall[name].append(took * 1000)
                cpu[name].append(took_cpu * 1000)
                count[name] = writes.count - before
    return {"runs": runs, "sqlite": sqlite3.sqlite_version, "wall": wall, "cpu": cpu, "writes": count}


# ---------------------------------------------------------------------------------------------------------------------
# What people read


def as_text(found: dict[str, Any]) -> str:
    wall = {name: summary(samples) for name, samples in found["wall"].items()}
    cpu = {name: summary(samples) for name, samples in found["cpu"].items()}
    rows = [_row(name, wall, cpu, found["writes"][name]) for name in wall]
    about = f"Medians of {found['runs']} runs of each, one call and two model turns, SQLite {found['sqlite']}:"
    head = ["| | time | × plain | wanted | quartiles | CPU | × plain | durable writes |", "| --- " * 8 + "|"]
    return "\n".join([about, "", *head, *rows])


def _row(name: str, wall: dict[str, Summary], cpu: dict[str, Summary], writes: int) -> str:
    def ratio(of: dict[str, Summary]) -> float:
        return of[name].median / of[PLAIN].median

    limit = LIMITS.get(name)
    wanted = "" if limit is None else f"at most {limit:g}: {'yes' if ratio(wall) <= limit else 'no'}"
    cells = [
        name,
        f"{wall[name].median:.1f} ms",
        f"{ratio(wall):.2f}",
        wanted,
        f"{wall[name].spread:.1f} ms apart",
        f"{cpu[name].median:.1f} ms",
        f"{ratio(cpu):.2f}",
        str(writes),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.guarded", description="One guarded call.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="every figure instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measured(options.runs, Path(folder)))
    sys.stdout.write((json.dumps(found) if options.json else as_text(found)) + "\n")


if __name__ == "__main__":
    main()
