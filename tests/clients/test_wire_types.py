"""Every message, in both directions and both eras, fits the wire types of its revision."""

import asyncio
import sys
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.clients import recorder
from tests.clients.scenes import BOTH_ERAS, SCENES, Scene, conversation, play
from tests.clients.wire_types import Conversation, check, read_recording
from tests.e2e.client import COMMAND, WAIT_SECONDS, environment


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.title)
def test_a_raw_conversation_fits_the_wire_types(scene: Scene) -> None:
    check(conversation(play(scene)))


def test_neither_era_locks_the_other_out() -> None:
    turns = conversation(play(BOTH_ERAS))
    assert [message["id"] for sender, message in turns if sender == "server"] == ["d1", 1, "d2", 2]
    assert all("result" in message for sender, message in turns if sender == "server")


@pytest.mark.parametrize(
    "mode", ["auto", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("legacy", "2026-07-28"))]
)
async def test_messages_of_the_sdk_and_the_server_fit_the_wire_types(tmp_path: Path, mode: str) -> None:
    async with Client(recorded(tmp_path), mode=mode, read_timeout_seconds=WAIT_SECONDS) as client:
        await client.list_tools()
        await cancel_in_flight(client)
        await client.call_tool("answer", {"query": "What is the latest news?"})
    said = said_in(tmp_path)
    methods = [message["method"] for _, message in said if "method" in message]
    assert {"tools/list", "tools/call", "notifications/progress", "notifications/cancelled"} <= set(methods)
    check(said)


def recorded(folder: Path) -> StdioServerParameters:
    command = [str(recorder.__file__), str(folder), *COMMAND, "--stdio", "--rehearse"]
    return StdioServerParameters(command=sys.executable, args=command, env=environment(folder))


def said_in(folder: Path) -> Conversation:
    (recording,) = folder.glob("*.jsonl")
    return read_recording(recording)


async def cancel_in_flight(client: Client) -> None:
    under_way = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        under_way.set()

    arguments = {"query": "Why? [rehearse: delay=30]"}
    held = asyncio.create_task(client.call_tool("answer", arguments, progress_callback=note))
    await asyncio.wait_for(under_way.wait(), WAIT_SECONDS)
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held
