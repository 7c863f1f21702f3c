"""The guard in front of a URL, as a process: what reaches the server, what is stored, and what the client gets."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from tests.adapters.remote.stand_in import ENVELOPE, Asked, StandIn, as_json, result, serving
from tests.e2e.client import COMMAND, Message, Server, environment
from tests.fakes import SLOW_SECONDS
from tests.guard.conftest import ALLOW_ALL, policy_file, text_of

SECRET = "planted-value-0123456789"
TOOL = {"name": "echo", "description": f"says {SECRET}", "inputSchema": {"type": "object"}}


class Remote(StandIn):
    """Has one tool, and answers calls in both eras."""

    async def _answer(self, asked: Asked) -> Response:
        if asked.kind == "tools/list":
            return as_json(result(asked.message["id"], tools=[TOOL]))
        if asked.kind == "tools/call":
            content: list[dict[str, Any]] = [{"type": "text", "text": "hello"}]
            return as_json(result(asked.message["id"], content=content))
        return await super()._answer(asked)


class Served:
    """In a thread of its own, because the guard is talked to from the test's."""

    def __init__(self) -> None:
        self.remote: Remote
        self.url = ""
        self._is_ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._is_ready.wait(SLOW_SECONDS)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self.remote = Remote()
        async with serving(self.remote) as url:
            self.url = url
            self._is_ready.set()
            await self._over.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(SLOW_SECONDS)


@pytest.fixture
def served() -> Iterator[Served]:
    with closing(Served()) as served:
        yield served


def guard_before(url: str, folder: Path, *options: str, **variables: str) -> Server:
    environ = environment(folder, XDG_STATE_HOME=str(folder / "state"), **variables)
    return Server([*COMMAND, "guard", *options, "--url", url], environ)


def call(guard: Server, request_id: int, **meta: Any) -> Message:
    params = {"name": "echo", "arguments": {"text": SECRET}, **meta}
    guard.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})
    return guard.reply_to(request_id)


def test_calls_in_both_eras_pass_the_gate_and_secrets_stay_out_of_the_store(served: Served, tmp_path: Path) -> None:
    policy = policy_file(tmp_path, ALLOW_ALL)
    options = ("--policy", policy, "--header-env", "X-Plain=MY_PLAIN_VARIABLE")
    with closing(guard_before(served.url, tmp_path, *options, MY_PLAIN_VARIABLE=SECRET)) as guard:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert guard.result_of("initialize", params)["protocolVersion"] == "2025-11-25"
        guard.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert text_of(call(guard, 11)) == "hello"
        assert text_of(call(guard, 12, _meta=ENVELOPE)) == "hello"
        assert guard.finish() == 0
        assert SECRET not in guard.stderr
    old, new = [one.headers for one in served.remote.asked if one.kind == "tools/call"]
    assert (old["mcp-session-id"], old["x-plain"]) == ("session-1", SECRET)
    assert new["mcp-protocol-version"] == "2026-07-28"
    assert "mcp-session-id" not in new
    assert served.remote.kinds()[-1] == "DELETE"
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert b"127.0.0.1" in kept
    assert SECRET.encode() not in kept


def test_a_server_that_wants_a_login_names_the_command_for_it(served: Served, tmp_path: Path) -> None:
    async def refuse(_: Asked) -> Response:
        return Response(status_code=401)

    served.remote.answers["initialize"] = refuse
    url = f"{served.url}?team=a&token=0123456789abcdef&api_key={SECRET}"
    with closing(guard_before(url, tmp_path, PLAIN=SECRET)) as guard:
        guard.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        said = guard.reply_to(1)["error"]["message"]
        assert f"openai-responses-mcp guard login --url '{served.url}?team=a&token=***&api_key=***'" in said


def test_a_variable_that_is_not_set_is_said_to_the_client(tmp_path: Path) -> None:
    with closing(guard_before("http://127.0.0.1:9/mcp", tmp_path, "--header-env", "X=NOT_SET_AT_ALL")) as guard:
        guard.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert "NOT_SET_AT_ALL" in json.dumps(guard.reply_to(1)["error"])
        assert guard.exit_code() == 2
