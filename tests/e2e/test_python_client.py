"""The newest official Python SDK client, in each of its modes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
from mcp.client import Client
from mcp.client.stdio import PROCESS_TERMINATION_TIMEOUT, StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from tests.e2e.client import COMMAND, KEY, WAIT_SECONDS, environment
from tests.stand_in.server import StandInThread

Mode = Literal["auto", "legacy", "2026-07-28"]
REVISIONS: dict[Mode, str] = {"auto": "2026-07-28", "legacy": "2025-06-18", "2026-07-28": "2026-07-28"}
TOOLS = ["answer", "answer_detailed", "answer_quick"]


@pytest.fixture(params=REVISIONS)
def mode(request: pytest.FixtureRequest) -> Mode:
    mode: Mode = request.param
    return mode


@asynccontextmanager
async def connected(rehearsal: StandInThread, home: Path, mode: Mode) -> AsyncIterator[Client]:
    """A client of a fresh server, which afterwards ends by itself and has had nothing to complain about."""
    environ = environment(home, OPENAI_BASE_URL=rehearsal.base_url)
    parameters = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "--stdio"], env=environ)
    complaints, loop = home / "stderr", asyncio.get_running_loop()
    with complaints.open("w+") as errlog:
        async with Client(stdio_client(parameters, errlog), mode=mode, read_timeout_seconds=WAIT_SECONDS) as client:
            yield client
            leaving = loop.time()
        # Beyond this the SDK would have killed the process.
        assert loop.time() - leaving < PROCESS_TERMINATION_TIMEOUT
    assert complaints.read_text() == ""


async def failure(client: Client) -> str:
    """What the client learns of a call that failed: an error in one era, a result in the other."""
    try:
        result = await client.call_tool("answer", {"query": "Why? [rehearse: status=401]"})
    except MCPError as exc:
        assert client.protocol_version == REVISIONS["legacy"]
        return str(exc.error.data)
    assert result.is_error
    return result.model_dump_json()


async def test_the_sdk_connects_lists_and_calls(rehearsal: StandInThread, tmp_path: Path, mode: Mode) -> None:
    messages: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message)

    async with connected(rehearsal, tmp_path, mode) as client:
        assert client.protocol_version == REVISIONS[mode]
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        result = await client.call_tool("answer", {"query": "What is the latest news?"}, progress_callback=note)
        assert "The API key was refused (401)" in await failure(client)
    assert not result.is_error
    assert result.structured_content is not None
    assert result.structured_content["used_search"] is True
    assert result.structured_content["citations"]
    assert messages[0] == "asking the model"
    assert KEY not in result.model_dump_json()


async def test_the_sdk_cancels_a_call(rehearsal: StandInThread, tmp_path: Path, mode: Mode) -> None:
    async with connected(rehearsal, tmp_path, mode) as client:
        held = asyncio.create_task(client.call_tool("answer", {"query": "Why? [rehearse: delay=60]"}))
        await asyncio.to_thread(rehearsal.wait_for_requests, 1)
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        await asyncio.to_thread(rehearsal.wait_for_abort, 1)
        assert not (await client.call_tool("answer_quick", {"query": "Why?"})).is_error
