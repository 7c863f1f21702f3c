"""One guarded call beside the plain SDK: what the gate, the log and the store cost.

    python -m tests.tools.bench.guarded [--runs N]

An agent calls one tool and ends, on a model that is played from a script and takes no time. Each turn is made plain,
guarded with a store in memory, guarded with a SQLite file, and guarded with that file in WAL mode, which is what a newer
SQLite than this machine's may use. The ways take turns, so that what else runs on the machine slows down all of them.
Every run has an agent of its own. Writes are counted by commits of the database.
"""

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agents import Agent as PlainAgent
from agents import RunConfig, Runner, function_tool
from sqlalchemy import Connection, Engine, event

from openai_responses_mcp.agents import Agent, SafetyAgent, create_runner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.sql import sql_database
from tests.tools.bench.alone import main
from tests.tools.bench.tables import FILE, MEMORY, PLAIN, WAL, guarded_run

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
    load = round(os.getloadavg()[0], 1)
    return {"runs": runs, "sqlite": sqlite3.sqlite_version, "load": load, "wall": wall, "cpu": cpu, "writes": count}


if __name__ == "__main__":
    main("guarded", "runs", 200, lambda runs, folder: asyncio.run(measured(runs, folder)), guarded_run)
