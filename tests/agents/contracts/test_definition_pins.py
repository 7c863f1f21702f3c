"""What every memory for approved definitions must do, asked of the one in memory and of the file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp.agents.adapters.mcp.pin_file import PinFile
from openai_responses_mcp.agents.mcp.gateway import MemoryPins
from openai_responses_mcp.agents.mcp.ports import DefinitionPins


def in_memory(folder: Path) -> DefinitionPins:
    return MemoryPins()


def in_a_file(folder: Path) -> DefinitionPins:
    return PinFile(folder / "pins.json")


@pytest.fixture(params=[pytest.param(in_memory, id="memory"), pytest.param(in_a_file, id="file")])
def pins(request: pytest.FixtureRequest, tmp_path: Path) -> DefinitionPins:
    make: Callable[[Path], DefinitionPins] = request.param
    return make(tmp_path)


def test_a_tool_that_was_never_let_through_has_no_pin(pins: DefinitionPins) -> None:
    assert pins.get("github/read") is None


def test_the_pin_that_was_put_last_counts(pins: DefinitionPins) -> None:
    pins.put("github/read", "one")
    pins.put("github/書く", "other")
    pins.put("github/read", "two")
    assert (pins.get("github/read"), pins.get("github/書く")) == ("two", "other")
