"""What every `DefinitionPins` must do: in memory, in a file and in a database."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from openai_responses_mcp.agents.mcp.hosted_server import PinFile
from openai_responses_mcp.gate.definitions import DefinitionPins, MemoryPins, pin_of
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_stores import SqlPins

MAKERS: dict[str, Callable[[Path], DefinitionPins]] = {
    "memory": lambda folder: MemoryPins(),
    "file": lambda folder: PinFile(folder / "pins.json"),
    "sqlite": lambda folder: SqlPins(SqlDatabase(f"sqlite:///{folder}/agents.db")),
}


@pytest.fixture(params=[*MAKERS, pytest.param("postgres", marks=pytest.mark.slow)])
def pins(request: pytest.FixtureRequest, tmp_path: Path) -> DefinitionPins:
    if request.param == "postgres":
        return SqlPins(SqlDatabase(request.getfixturevalue("postgres")()))
    return MAKERS[request.param](tmp_path)


async def test_the_pin_that_was_put_last_counts_and_holds_a_whole_definition(pins: DefinitionPins) -> None:
    assert dict(await pins.known()) == {}
    pin = pin_of({"name": "read", "description": "読む \u202e" * 500, "inputSchema": {"type": "object"}})
    await pins.put("github/read", "one")
    await pins.put("github/書く", "other")
    await pins.put("github/read", pin)
    assert dict(await pins.known()) == {"github/read": pin, "github/書く": "other"}


def test_two_writers_lose_no_pin_of_each_other(tmp_path: Path) -> None:
    file = tmp_path / "pins.json"

    async def put_many(server: str) -> None:
        for number in range(50):
            await PinFile(file).put(f"{server}/{number}", "pin")

    # Each writer opens the lock for itself, so threads exclude each other as processes do.
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda server: asyncio.run(put_many(server)), ("a", "b")))
    assert len(asyncio.run(_known(file))) == 100


async def _known(file: Path) -> Mapping[str, str]:
    return await PinFile(file).known()
