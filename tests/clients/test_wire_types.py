"""Every message, in both directions and both eras, fits the wire types of its revision."""

import asyncio
import sys
import time
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.clients import recorder
from tests.clients.scenes import BOTH_ERAS, ENVELOPE, ENVELOPE_CALLS, HANDSHAKE, SCENES, Scene, Talk, conversation, play
from tests.clients.wire_types import REVISION_KEY, Conversation, Message, check, read_recording
from tests.e2e.client import COMMAND, WAIT_SECONDS, environment

LONGEST_SILENCE_SECONDS = 3.0


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.title)
def test_a_raw_conversation_fits_the_wire_types(scene: Scene) -> None:
    check(conversation(play(scene)))


def test_neither_era_locks_the_other_out() -> None:
    turns = conversation(play(BOTH_ERAS))
    assert [message["id"] for sender, message in turns if sender == "server"] == ["d1", 1, "d2", 2]
    assert all("result" in message for sender, message in turns if sender == "server")


def test_what_is_unknown_is_answered_at_once() -> None:
    """Clients take silence for an answer, after 3 to 15 seconds."""

    def act(talk: Talk) -> None:
        talk.ask(0, "ping")
        for request_id, params in (1, {}), (2, {"_meta": ENVELOPE}), (3, {"_meta": {REVISION_KEY: "1999-12-31"}}):
            asked = time.monotonic()
            assert "error" in talk.ask(request_id, "sampling/dream", params)
            assert time.monotonic() - asked < LONGEST_SILENCE_SECONDS

    play(Scene("What is unknown", "", "line", act))


@pytest.mark.parametrize(
    "mode", ["auto", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("legacy", "2026-07-28"))]
)
async def test_what_the_sdk_and_the_server_say_fits_the_wire_types(tmp_path: Path, mode: str) -> None:
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


# The judge itself: whatever is taken away, added or exchanged is noticed.


def result_of(said: Conversation, method: str) -> Message:
    asked = next(message["id"] for _, message in said if message.get("method") == method)
    result: Message = next(message["result"] for _, message in said if "result" in message and message["id"] == asked)
    return result


@pytest.mark.parametrize(
    ("method", "member"),
    [
        ("server/discover", "supportedVersions"),
        ("server/discover", "resultType"),
        ("server/discover", "ttlMs"),
        ("tools/list", "cacheScope"),
        ("tools/list", "tools"),
        ("tools/call", "content"),
    ],
)
def test_a_missing_member_is_noticed(method: str, member: str) -> None:
    said = conversation(play(ENVELOPE_CALLS))
    del result_of(said, method)[member]
    with pytest.raises(AssertionError, match="from the server"):
        check(said)


def test_members_of_the_other_era_are_noticed() -> None:
    said = conversation(play(HANDSHAKE))
    result_of(said, "tools/list")["ttlMs"] = 0
    with pytest.raises(AssertionError, match="the types know only"):
        check(said)


def test_a_request_without_its_envelope_member_is_noticed() -> None:
    said = conversation(play(ENVELOPE_CALLS))
    del said[0][1]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    with pytest.raises(AssertionError, match="from the client"):
        check(said)


def test_progress_for_nobody_and_replies_to_nothing_are_noticed() -> None:
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "other", "progress": 1}},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": 99, "method": "ping"},
    ):
        with pytest.raises(AssertionError, match="from the server"):
            check([*conversation(play(HANDSHAKE)), ("server", message)])
