"""The guard over HTTP, as a process: one server per session or caller, and nothing shared between callers."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client

from openai_responses_mcp.gate.clock import present
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from openai_responses_mcp.guard.asking import QUESTION_KEY, READING_SECONDS
from tests.e2e.client import COMMAND, WAIT_SECONDS, environment
from tests.e2e.http_process import BOTH, HttpProcess, client, enveloped, events_in, opened, request, routed
from tests.guard.conftest import ENVELOPE, SMALL_SERVER

TOKENS = "ann:token-of-ann-1234567890\nbob:token-of-bob-1234567890"
ANN, BOB = ({"authorization": f"Bearer token-of-{name}-1234567890"} for name in ("ann", "bob"))
RULES = """
version: 1
rules:
  - {tools: [small/write_note], decide: ask}
  - {tools: ["*"], decide: allow}
"""


class GuardedOverHttp(HttpProcess):
    def __init__(self, folder: Path, *options: str, behind: Sequence[str] = (), **variables: str) -> None:
        (folder / "policy.yaml").write_text(RULES)
        self.seen_file = folder / "seen.jsonl"
        self.seen_file.touch()
        self.store = f"sqlite:///{folder / 'guard.db'}"
        command = behind or [sys.executable, str(SMALL_SERVER), str(self.seen_file)]
        given = ["--name", "small", "--policy", str(folder / "policy.yaml"), "--store", self.store, *options]
        super().__init__(environment(folder, **variables), *given, "--", *command, verb="guard")

    @property
    def seen(self) -> list[Any]:
        return [json.loads(line) for line in self.seen_file.read_text().splitlines()]

    async def until_seen(self, is_it: Any) -> Any:
        async with asyncio.timeout(WAIT_SECONDS):
            while not (found := [one for one in self.seen if is_it(one)]):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.05)
        return found[0]


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedOverHttp]:
    with closing(GuardedOverHttp(tmp_path_factory.mktemp("guard"), "--max-servers", "4")) as guard:
        yield guard
        assert guard.process.poll() is None


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedOverHttp]:
    """A guard that knows two callers by their tokens."""
    folder = tmp_path_factory.mktemp("team")
    (folder / "config.yaml").write_text("http: {tokens_env: TEAM}")
    with closing(GuardedOverHttp(folder, "--config", str(folder / "config.yaml"), TEAM=TOKENS)) as guard:
        yield guard


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with client() as http:
        yield http


def tool_call(request_id: int | str, name: str, text: str = "hi", **meta: Any) -> dict[str, Any]:
    return enveloped(request_id, "tools/call", name=name, arguments={"text": text}, _meta={**ENVELOPE, **meta})


async def called(http: httpx2.AsyncClient, url: str, message: dict[str, Any], **headers: str) -> Any:
    reply = await http.post(url, json=message, headers={**routed(message), **headers})
    assert reply.status_code == 200, reply.text
    return reply.json()


def text_in(reply: Any) -> str:
    return str(reply["result"]["content"][0]["text"])


async def test_a_session_has_a_server_of_its_own_that_ends_with_it(
    guard: GuardedOverHttp, http: httpx2.AsyncClient
) -> None:
    sessions = [await opened(http, guard.url) for _ in range(4)]
    full = await http.post(guard.url, json=request(0, "initialize", {}), headers=BOTH)
    assert (full.status_code, full.headers["retry-after"]) == (503, "5")
    for session in sessions:
        call = request(1, "tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        reply = await http.post(guard.url, json=call, headers=session)
        assert json.loads(text_in(reply.json())) == {"got": {"text": "hi"}}
        assert (await http.delete(guard.url, headers=session)).status_code == 200
    await opened_when_there_is_room(http, guard.url)


async def opened_when_there_is_room(http: httpx2.AsyncClient, url: str) -> None:
    """The servers of closed sessions need a moment to end."""
    status = 503
    async with asyncio.timeout(WAIT_SECONDS):
        while status == 503:
            reply = await http.post(url, json=request(0, "initialize", {}), headers=BOTH)
            status = reply.status_code
    assert status == 200


async def test_concurrent_requests_with_the_same_id_get_their_own_replies(
    guard: GuardedOverHttp, http: httpx2.AsyncClient
) -> None:
    messages = [tool_call(1, "echo", str(number), progressToken="a") for number in range(20)]
    replies = await asyncio.gather(*(called(http, guard.url, message) for message in messages))
    assert [json.loads(text_in(reply))["got"]["text"] for reply in replies] == [str(number) for number in range(20)]
    assert {reply["id"] for reply in replies} == {1}


async def test_a_server_that_exits_fails_its_calls_and_is_restarted(
    guard: GuardedOverHttp, http: httpx2.AsyncClient
) -> None:
    ended = await called(http, guard.url, tool_call("a", "die", "3"))
    assert "The guarded server has ended (exit code 3)" in ended["error"]["message"]
    assert "got" in text_in(await called(http, guard.url, tool_call("b", "echo")))


async def test_closing_a_response_cancels_its_call(guard: GuardedOverHttp, http: httpx2.AsyncClient) -> None:
    hang = tool_call("h", "hang", "cancel me")
    waiting = asyncio.create_task(http.post(guard.url, json=hang, headers=routed(hang)))
    at_server = await guard.until_seen(
        lambda message: message.get("params", {}).get("arguments") == {"text": "cancel me"}
    )
    waiting.cancel()
    await guard.until_seen(
        lambda message: (
            message.get("method") == "notifications/cancelled" and message["params"]["requestId"] == at_server["id"]
        )
    )


async def test_the_question_for_a_call_comes_on_the_stream_of_that_call(
    team: GuardedOverHttp, http: httpx2.AsyncClient
) -> None:
    session = await asking_session(http, team.url, **ANN)
    note = request(1, "tools/call", {"name": "write_note", "arguments": {"text": "asked in a session"}})
    async with http.stream("POST", team.url, json=note, headers=session) as stream:
        lines = stream.aiter_lines()
        question = await next_message(lines)
        assert question["method"] == "elicitation/create"
        assert "asked in a session" in question["params"]["message"]
        # An answer faster than a person can read is taken for a program's.
        await asyncio.sleep(READING_SECONDS)
        answer = {"action": "accept", "content": {"decision": "allow_once"}}
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": answer}
        assert (await http.post(team.url, json=reply, headers={**session, **BOB})).status_code == 404
        assert (await http.post(team.url, json=reply, headers=session)).status_code == 202
        assert "asked in a session" in text_in(await next_message(lines))
    await http.delete(team.url, headers=session)


async def asking_session(http: httpx2.AsyncClient, url: str, **headers: str) -> dict[str, str]:
    """The headers for a session of a client that can ask its user."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {}}
    reply = await http.post(url, json=request(0, "initialize", params), headers={**BOTH, **headers})
    return {**BOTH, **headers, "mcp-session-id": reply.headers["mcp-session-id"]}


async def next_message(lines: AsyncIterator[str]) -> Any:
    async with asyncio.timeout(WAIT_SECONDS):
        async for line in lines:
            if (found := events_in([line])) and found[0]:
                return json.loads(found[0])
    raise AssertionError("the stream has ended")


async def test_an_approval_by_one_caller_does_not_count_for_another(
    team: GuardedOverHttp, http: httpx2.AsyncClient
) -> None:
    asked = await called(http, team.url, tool_call(1, "write_note"), **ANN)
    assert asked["result"]["resultType"] == "input_required"
    await asyncio.sleep(READING_SECONDS)
    answer = {QUESTION_KEY: {"action": "accept", "content": {"decision": "allow_tool_for_good"}}}
    again = tool_call(2, "write_note")
    again["params"] |= {"inputResponses": answer, "requestState": asked["result"]["requestState"]}
    # The state belongs to Ann's server, so Bob's does not accept it.
    taken = await called(http, team.url, again, **BOB)
    assert taken["result"].get("resultType") == "input_required" or taken["result"]["isError"] is True
    assert "got" in text_in(await called(http, team.url, again, **ANN))
    assert "got" in text_in(await called(http, team.url, tool_call(3, "write_note"), **ANN))
    of_bob = await called(http, team.url, tool_call(3, "write_note"), **BOB)
    assert of_bob["result"]["resultType"] == "input_required"
    logs = await open_stores(team.store, must_exist=True).logs.query()
    assert {log.who for log in logs if log.event == "decision"} == {"ann", "bob"}
    assert [(log.event, log.who) for log in logs if log.event.startswith("standing_")] == [
        ("standing_made", ""),
        ("standing_used", "ann"),
    ]
    assert [log.who for log in logs if log.event == "approval" and log.decision == "approved"][-1] == "ann"


async def test_a_caller_without_a_token_is_refused_and_the_server_never_sees_the_tokens(
    team: GuardedOverHttp, http: httpx2.AsyncClient
) -> None:
    message = tool_call(1, "echo")
    assert (await http.post(team.url, json=message, headers=routed(message))).status_code == 401
    environ = await called(http, team.url, enveloped("e", "environment"), **ANN)
    assert "TEAM" not in environ["result"]["names"]


async def test_a_server_at_a_url_can_be_guarded_over_http(tmp_path: Path) -> None:
    """HTTP on both sides, in both eras."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    given = ("--policy", str(rules), "--store", f"sqlite:///{tmp_path / 'guard.db'}")
    with (
        closing(HttpProcess(environment(tmp_path), "--rehearse")) as server,
        closing(HttpProcess(environment(tmp_path), *given, "--url", server.url, verb="guard")) as guard,
    ):
        for mode, revision in (("auto", "2026-07-28"), ("legacy", "2025-11-25")):
            messages: list[str | None] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                messages.append(message)  # noqa: B023 - called within the round

            async with asyncio.timeout(WAIT_SECONDS), Client(guard.url, mode=mode) as mcp:
                assert mcp.protocol_version == revision
                assert "answer" in [tool.name for tool in (await mcp.list_tools()).tools]
                result = await mcp.call_tool("answer", {"query": "Why is the sky blue?"}, progress_callback=note)
                assert not result.is_error
            assert messages[0] == "asking the model"


async def test_a_call_that_outlasts_the_drain_is_cancelled_and_the_exit_code_is_0(
    http: httpx2.AsyncClient, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("http: {tokens_env: TEAM}")
    options = ("--drain", "0.2", "--max-servers", "1", "--config", str(tmp_path / "config.yaml"))
    with closing(GuardedOverHttp(tmp_path, *options, TEAM=TOKENS)) as guard:
        hang = tool_call("h", "hang", "to the end")
        waiting = asyncio.create_task(http.post(guard.url, json=hang, headers={**routed(hang), **ANN}))
        await guard.until_seen(lambda message: message.get("params", {}).get("arguments") == {"text": "to the end"})
        full = await http.post(guard.url, json=hang, headers={**routed(hang), **BOB})
        assert (full.status_code, full.headers["retry-after"]) == (503, "5")
        guard.process.send_signal(signal.SIGTERM)
        assert (await waiting).json()["error"]["code"] == -32800
        assert await asyncio.to_thread(guard.wait) == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--http", "0.0.0.0:0"], "can be reached from outside"),
        (["--http", "nowhere"], "--http takes [HOST:]PORT"),
        (["--http", "0", "--drain", "-1"], "--drain takes"),
        (["--http", "0", "--policy", "/nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_options_that_cannot_be_served_exit_with_2(options: list[str], problem: str, tmp_path: Path) -> None:
    found = subprocess.run(
        [*COMMAND, "guard", *options, "--", "true"],
        env=environment(tmp_path),
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert found.returncode == 2
    assert problem in found.stderr.decode()


async def test_status_shows_the_port_that_the_guard_listens_on(
    guard: GuardedOverHttp, http: httpx2.AsyncClient
) -> None:
    await called(http, guard.url, tool_call(1, "echo"))
    stores = open_stores(guard.store)
    presence = stores.presence
    async with asyncio.timeout(WAIT_SECONDS):
        while not (found := await present(presence, datetime.now(UTC), "guard")):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
    address = guard.url.removeprefix("http://").partition("/")[0]
    assert found[0].detail.startswith(f"over HTTP, {address}: ")
    # The desk finds the guard of a request by this id.
    assert {log.run_id.rpartition("_")[0] for log in await stores.logs.query()} == {found[0].presence_id}


async def test_a_call_over_the_limit_takes_no_place_of_a_server(http: httpx2.AsyncClient, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("http: {tokens_env: TEAM, limits: {calls_per_minute: 1}}")
    with closing(GuardedOverHttp(tmp_path, "--max-servers", "1", "--config", str(config), TEAM=TOKENS)) as guard:
        for caller in (ANN, BOB):
            ended = await called_when_there_is_room(http, guard.url, tool_call(1, "die"), **caller)
            assert "The guarded server has ended" in ended["error"]["message"]
        over = "You may call once a minute."
        assert over in text_in(await called_when_there_is_room(http, guard.url, tool_call(2, "echo"), **ANN))
        assert over in text_in(await called(http, guard.url, tool_call(2, "echo"), **BOB))


async def called_when_there_is_room(http: httpx2.AsyncClient, url: str, message: dict[str, Any], **headers: str) -> Any:
    """A server that has ended keeps its place for a moment."""
    async with asyncio.timeout(WAIT_SECONDS):
        while (reply := await http.post(url, json=message, headers={**routed(message), **headers})).status_code == 503:
            pass
    return reply.json()


DEAF_SERVER = """
import json, sys, time
asked = json.loads(sys.stdin.readline())
result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "deaf", "version": "1"}}
print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
time.sleep(600)
"""


async def test_a_session_takes_only_so_much_that_its_server_does_not_read(
    http: httpx2.AsyncClient, tmp_path: Path
) -> None:
    with closing(GuardedOverHttp(tmp_path, behind=[sys.executable, "-c", DEAF_SERVER])) as guard:
        session = await opened(http, guard.url)
        note = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"filling": "x" * 3_000_000}}
        replies = [await http.post(guard.url, json=note, headers=session) for _ in range(8)]
        assert {reply.status_code for reply in replies} == {202, 503}
        assert (replies[-1].status_code, replies[-1].headers["retry-after"]) == (503, "5")
        # Other sessions are served.
        await opened(http, guard.url)
