"""What every memory for approved definitions must do, asked of those in memory, in a file and in a database."""

from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp.agents.adapters.mcp.pin_file import PinFile
from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_stores import SqlPins
from openai_responses_mcp.agents.mcp.gateway import MemoryPins
from openai_responses_mcp.agents.mcp.ports import DefinitionPins

MAKERS: dict[str, Callable[[Path], DefinitionPins]] = {
    "memory": lambda folder: MemoryPins(),
    "file": lambda folder: PinFile(folder / "pins.json"),
    "sqlite": lambda folder: SqlPins(SqlDatabase(f"sqlite:///{folder}/agents.db")),
}


@pytest.fixture(params=[*MAKERS, "postgres"])
def pins(request: pytest.FixtureRequest, tmp_path: Path) -> DefinitionPins:
    if request.param == "postgres":
        return SqlPins(SqlDatabase(request.getfixturevalue("postgres")()))
    return MAKERS[request.param](tmp_path)


async def test_a_tool_that_was_never_let_through_has_no_pin(pins: DefinitionPins) -> None:
    assert dict(await pins.known()) == {}


async def test_the_pin_that_was_put_last_counts(pins: DefinitionPins) -> None:
    await pins.put("github/read", "one")
    await pins.put("github/書く", "other")
    await pins.put("github/read", "two")
    assert dict(await pins.known()) == {"github/read": "two", "github/書く": "other"}
