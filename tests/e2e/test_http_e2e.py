"""The server over HTTP, in a process of its own, as clients of both eras and their proxies see it."""

import asyncio
import json
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.client import Client

from openai_responses_mcp import __version__
from tests.adapters.http.test_access import KEY as ISSUER_KEY
from tests.adapters.http.test_access import OTHER_KEY, published
from tests.e2e.client import KEY, WAIT_SECONDS, environment, run
from tests.e2e.http_process import (
    BOTH,
    ENVELOPE,
    REVISION,
    HttpProcess,
    Message,
    call,
    client,
    enveloped,
    events_in,
    opened,
    request,
    routed,
)
from tests.stand_in.server import StandInThread

TOKENS = "ann:token-of-ann-1234567890\nbob:token-of-bob-1234567890"
ANN, BOB = ({"authorization": f"Bearer token-of-{name}-1234567890"} for name in ("ann", "bob"))
SLOW = "Why? [rehearse: delay=20]"


@pytest.fixture(scope="module")
def server(warm_rehearsal: StandInThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    environ = environment(tmp_path_factory.mktemp("home"), OPENAI_BASE_URL=warm_rehearsal.base_url)
    with closing(HttpProcess(environ)) as server:
        yield server
        assert server.process.poll() is None
        assert server.complaints == []


@pytest.fixture(scope="module")
def guarded(warm_rehearsal: StandInThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    """With tokens for two people."""
    config = tmp_path_factory.mktemp("config") / "config.yaml"
    config.write_text("http: {tokens_env: TEAM, limits: {calls_per_minute: 5}}")
    home = tmp_path_factory.mktemp("home")
    environ = environment(home, OPENAI_BASE_URL=warm_rehearsal.base_url, TEAM=TOKENS)
    with closing(HttpProcess(environ, "--config", str(config), "--debug")) as server:
        yield server


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with client() as http:
        yield http


async def posted(http: httpx2.AsyncClient, server: HttpProcess, message: Any, **changes: Any) -> httpx2.Response:
    return await http.post(server.url, json=message, headers=routed(message, **changes))


def test_a_server_without_a_key_warns_at_its_start(tmp_path: Path) -> None:
    with closing(HttpProcess(environment(tmp_path, OPENAI_API_KEY=""))) as server:
        server.process.terminate()
        server.wait()
    assert any("OPENAI_API_KEY is not set" in line for line in server.complaints)


# ---------------------------------------------------------------------------------------------------------------------
# The official client


@pytest.mark.parametrize(
    ("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
)
async def test_the_official_client_lists_and_calls_in_every_mode(server: HttpProcess, mode: Any, revision: str) -> None:
    progressed: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        progressed.append(message)

    async with asyncio.timeout(WAIT_SECONDS), Client(server.url, mode=mode) as mcp:
        assert mcp.protocol_version == revision
        assert [tool.name for tool in (await mcp.list_tools()).tools] == ["answer", "answer_detailed", "answer_quick"]
        result = await mcp.call_tool("answer", {"query": "Why is the sky blue?"}, progress_callback=note)
        assert not result.is_error
        assert result.structured_content is not None
        assert result.structured_content["response_id"].startswith("resp_")
    assert progressed[0] == "asking the model"


# ---------------------------------------------------------------------------------------------------------------------
# The newer era


async def test_a_call_is_answered_with_json_and_with_events_if_it_has_a_progress_token(
    server: HttpProcess, http: httpx2.AsyncClient
) -> None:
    question = call(1, "Why?")
    # A slash at the end of the address changes nothing.
    plain = await http.post(f"{server.url}/", json=question, headers=routed(question))
    streamed = await posted(http, server, call(1, "Why?", progressToken="t"))
    assert (plain.status_code, plain.headers["content-type"]) == (200, "application/json")
    assert "mcp-session-id" not in plain.headers
    assert streamed.headers["content-type"] == "text/event-stream"
    *progress, last = [json.loads(event) for event in events_in(streamed.text.splitlines())]
    assert {message["method"] for message in progress} == {"notifications/progress"}
    assert last["id"] == plain.json()["id"] == 1
    assert last["result"]["resultType"] == plain.json()["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    ("message", "changes", "status", "code"),
    [
        (enveloped(1, "tools/list"), {}, 200, None),
        (call(1, "Why?"), {"mcp_name": "=?base64?YW5zd2Vy?="}, 200, None),
        (enveloped(1, "no/such"), {}, 404, -32601),
        (enveloped(1, "tools/call", name="nope"), {}, 400, -32602),
        (enveloped(1, "tools/list"), {"mcp_protocol_version": "2025-06-18"}, 400, -32020),
        (enveloped(1, "tools/list"), {"mcp_protocol_version": None}, 400, -32020),
        (enveloped(1, "tools/list"), {"mcp_method": "tools/call"}, 400, -32020),
        (enveloped(1, "tools/call", name="answer"), {"mcp_name": "other"}, 400, -32020),
        (enveloped(1, "tools/call", name="answer"), {"mcp_name": "=?base64?!?="}, 400, -32020),
        (request(1, "tools/list", {"_meta": {REVISION: "2026-07-28"}}), {}, 400, -32602),
        (
            request(1, "tools/list", {"_meta": {**ENVELOPE, REVISION: "2099-01-01"}}),
            {"mcp_protocol_version": "2099-01-01"},
            400,
            -32022,
        ),
        (enveloped(1, "tasks/get", taskId="x"), {}, 400, -32021),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_the_status_follows_the_code(
    server: HttpProcess, http: httpx2.AsyncClient, message: Any, changes: dict[str, str], status: int, code: int | None
) -> None:
    reply = await posted(http, server, message, **changes)
    assert (reply.status_code, reply.json().get("error", {}).get("code")) == (status, code)
    assert reply.json()["id"] == 1


async def test_a_notification_is_accepted(server: HttpProcess, http: httpx2.AsyncClient) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert (await posted(http, server, message)).status_code == 202
    assert (await posted(http, server, message, mcp_protocol_version="2099-01-01")).status_code == 400


async def test_a_closed_response_cancels_the_call_at_the_api(
    server: HttpProcess, warm_rehearsal: StandInThread
) -> None:
    before = warm_rehearsal.server.disconnects
    async with begun(server, call(1, SLOW, progressToken="t")):
        pass
    await asyncio.wait_for(asyncio.to_thread(warm_rehearsal.wait_for_disconnect, before + 1), WAIT_SECONDS)


async def test_there_is_no_stream_and_no_session_to_end(server: HttpProcess, http: httpx2.AsyncClient) -> None:
    headers = {**BOTH, "mcp-protocol-version": "2026-07-28"}
    for method in ("GET", "DELETE", "PUT"):
        reply = await http.request(method, server.url, headers=headers)
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


# ---------------------------------------------------------------------------------------------------------------------
# The older eras


@pytest.mark.parametrize(
    ("asked", "agreed"), [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-06-18")]
)
async def test_initialize_opens_a_session_in_the_revision_that_was_asked_for(
    server: HttpProcess, http: httpx2.AsyncClient, asked: str, agreed: str
) -> None:
    session = await opened(http, server.url, asked)
    assert session["mcp-protocol-version"] == agreed
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(server.url, json=note, headers=session)).status_code == 202
    reply = await http.post(server.url, json=request(1, "no/such"), headers=session)
    assert (reply.status_code, reply.json()["error"]["code"]) == (200, -32601)


async def test_a_call_without_a_session_is_refused_and_one_with_an_unknown_session_is_not_found(
    server: HttpProcess, http: httpx2.AsyncClient
) -> None:
    for method in ("POST", "GET", "DELETE"):
        reply = await http.request(method, server.url, json=request(1, "tools/list"), headers=BOTH)
        assert reply.status_code == 400
        headers = {**BOTH, "mcp-session-id": "made-up"}
        assert (
            await http.request(method, server.url, json=request(1, "tools/list"), headers=headers)
        ).status_code == 404


async def test_a_cancelled_call_ends_with_an_error(server: HttpProcess, http: httpx2.AsyncClient) -> None:
    session = await opened(http, server.url)
    params = {"name": "answer", "arguments": {"query": SLOW}, "_meta": {"progressToken": "t"}}
    async with http.stream("POST", server.url, json=request(7, "tools/call", params), headers=session) as reply:
        lines = reply.aiter_lines()
        async for line in lines:
            if "asking the model" in line:
                break
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        async with client() as other:
            assert (await other.post(server.url, json=note, headers=session)).status_code == 202
        rest = [json.loads(data) for data in events_in([line async for line in lines]) if data]
    assert (rest[-1]["id"], rest[-1]["error"]["code"]) == (7, -32800)


async def test_a_client_that_lost_its_connection_comes_back_for_the_rest(
    server: HttpProcess, http: httpx2.AsyncClient
) -> None:
    session = await opened(http, server.url)
    params = {
        "name": "answer",
        "arguments": {"query": "Why? [rehearse: delay=1; text=Found again.]"},
        "_meta": {"progressToken": "t"},
    }
    last_id = ""
    asked = request(1, "tools/call", params)
    async with client() as losing, losing.stream("POST", server.url, json=asked, headers=session) as reply:
        async for line in reply.aiter_lines():
            if line.startswith("id:"):
                last_id = line.removeprefix("id:").strip()
            if "asking the model" in line:
                break
    assert last_id
    resumed = await http.get(server.url, headers={**session, "last-event-id": last_id})
    assert resumed.status_code == 200
    messages = [json.loads(data) for data in events_in(resumed.text.splitlines()) if data]
    assert messages[-1]["id"] == 1
    assert "Found again." in messages[-1]["result"]["content"][0]["text"]


async def test_the_stream_of_the_server_stays_open_and_is_there_once(
    server: HttpProcess, http: httpx2.AsyncClient
) -> None:
    session = await opened(http, server.url)
    async with http.stream("GET", server.url, headers=session) as reply:
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream")
        async with client() as other:
            assert (await other.get(server.url, headers=session)).status_code == 409
            assert (await other.delete(server.url, headers=session)).status_code == 200
        async with asyncio.timeout(WAIT_SECONDS):
            assert [line async for line in reply.aiter_lines()] == []


# ---------------------------------------------------------------------------------------------------------------------
# Who may


async def test_health_needs_neither_host_nor_token(guarded: HttpProcess, http: httpx2.AsyncClient) -> None:
    reply = await http.get(f"{guarded.root}/healthz", headers={"host": "anything.example"})
    assert (reply.status_code, reply.json()) == (200, {"version": __version__})


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}], ids=str)
async def test_another_host_or_origin_is_forbidden(
    server: HttpProcess, http: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    message = call(1, "Why?")
    reply = await http.post(server.url, json=message, headers={**routed(message), **headers})
    assert reply.status_code == 403


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ({}, "Bearer"),
        ({"authorization": "Bearer token-of-eve-1234567890"}, 'Bearer error="invalid_token"'),
    ],
    ids=str,
)
async def test_without_a_valid_token_a_call_is_refused(
    guarded: HttpProcess, http: httpx2.AsyncClient, headers: dict[str, str], challenge: str
) -> None:
    message = enveloped(1, "tools/list")
    reply = await http.post(guarded.url, json=message, headers={**routed(message), **headers})
    assert (reply.status_code, reply.headers["www-authenticate"]) == (401, challenge)


async def test_a_token_in_the_address_is_refused(guarded: HttpProcess, http: httpx2.AsyncClient) -> None:
    message = enveloped(1, "tools/list")
    for name in ("access_token", "Authorization"):
        url = f"{guarded.url}?{name}=token-of-ann-1234567890"
        assert (await http.post(url, json=message, headers={**routed(message), **ANN})).status_code == 400
        assert (await http.post(url, json=message, headers=routed(message))).status_code == 400


async def test_a_session_belongs_to_its_caller_until_it_is_ended(
    guarded: HttpProcess, http: httpx2.AsyncClient
) -> None:
    session = await opened(http, guarded.url, **ANN)
    assert (await http.post(guarded.url, json=request(1, "ping"), headers=session)).status_code == 200
    for method in ("POST", "GET", "DELETE"):
        reply = await http.request(method, guarded.url, json=request(2, "ping"), headers={**session, **BOB})
        assert reply.status_code == 404
    assert (await http.delete(guarded.url, headers=session)).status_code == 200
    assert (await http.post(guarded.url, json=request(3, "ping"), headers=session)).status_code == 404


async def test_a_caller_over_the_limit_gets_a_result_that_says_when_to_come_back(
    guarded: HttpProcess, http: httpx2.AsyncClient
) -> None:
    session = await opened(http, guarded.url, **ANN)
    params = {"name": "answer", "arguments": {"query": "Why?"}}
    replies = [
        (await http.post(guarded.url, json=request(number, "tools/call", params), headers=session)).json()["result"]
        for number in range(6)
    ]
    assert [bool(reply.get("isError")) for reply in replies] == [False] * 5 + [True]
    assert replies[-1]["content"][0]["text"].startswith("You may call 5 times a minute. Come back in ")
    message = call(1, "Why?")
    of_ann = await http.post(guarded.url, json=message, headers={**routed(message), **ANN})
    assert (of_ann.status_code, of_ann.json()["result"]["resultType"]) == (200, "complete")
    assert of_ann.json()["result"]["isError"] is True
    other = await http.post(guarded.url, json=message, headers={**routed(message), **BOB})
    assert not other.json()["result"].get("isError")
    assert any("caller=ann" in line for line in guarded.complaints)
    assert not any("token-of-ann" in line or KEY in line for line in guarded.complaints)


@pytest.mark.parametrize(
    ("where", "config", "variables", "words"),
    [
        ("0.0.0.0:0", "", {}, "can be reached from outside: set http.tokens_env or http.issuer"),
        ("0.0.0.0:0", "http: {tokens_env: TEAM}", {"TEAM": TOKENS}, "set http.public_url"),
        ("0", "http: {tokens_env: TEAM}", {}, "http.tokens_env: TEAM: it has no name:token lines"),
        ("0", "http: {tokens_env: TEAM}", {"TEAM": "ann"}, "http.tokens_env: TEAM: line 1 is not name:token"),
        ("0", "http: {issuer: 'https://id.example'}", {}, "http.issuer needs http.audience"),
        ("0", "http: {issuer: 'http://id.example', audience: a}", {}, "http.issuer has to be https"),
        ("0", "http: {limits: {calls_at_once: 1}}", {"AGENTS_STORE": "mysql://x/y"}, "AGENTS_STORE: "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_start_that_would_not_be_safe_is_refused(
    tmp_path: Path, where: str, config: str, variables: dict[str, str], words: str
) -> None:
    (tmp_path / "config.yaml").write_text(config)
    given = ("--http", where, "--config", str(tmp_path / "config.yaml"))
    ended = run(environment(tmp_path, **variables), *given, text=True)
    assert ended.returncode == 2
    assert words in ended.stderr


# ---------------------------------------------------------------------------------------------------------------------
# Access tokens of an issuer

AUDIENCE = "https://answers.example/mcp"
CURVE_KEY = ec.generate_private_key(ec.SECP256R1())
CURVE_JWK = {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(CURVE_KEY.public_key())), "kid": "curve"}


class LoopbackIssuer(BaseHTTPRequestHandler):
    """Publishes its metadata, an RSA key and a key on an elliptic curve."""

    def do_GET(self) -> None:
        root = f"http://{self.headers['host']}"
        found = {
            "/.well-known/oauth-authorization-server": {"issuer": root, "jwks_uri": f"{root}/keys"},
            "/keys": {"keys": [published(ISSUER_KEY, "one"), CURVE_JWK]},
        }.get(self.path)
        self.send_response(404 if found is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), LoopbackIssuer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def behind_issuer(
    issuer: str, warm_rehearsal: StandInThread, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpProcess]:
    home = tmp_path_factory.mktemp("home")
    (home / "config.yaml").write_text(f"http: {{public_url: '{AUDIENCE}', issuer: '{issuer}', audience: '{AUDIENCE}'}}")
    environ = environment(home, OPENAI_BASE_URL=warm_rehearsal.base_url)
    with closing(HttpProcess(environ, "--config", str(home / "config.yaml"), "--debug")) as server:
        yield server


def bearer(
    issuer: str, key: Any = ISSUER_KEY, algorithm: str = "RS256", kid: str = "one", **changes: Any
) -> dict[str, str]:
    claims = {"iss": issuer, "aud": AUDIENCE, "exp": time.time() + 60, "sub": "ann@example.com", **changes}
    claims = {name: value for name, value in claims.items() if value is not None}
    return {"authorization": f"Bearer {jwt.encode(claims, key, algorithm, headers={'kid': kid})}"}


async def test_the_subject_of_an_access_token_is_who_asks(
    behind_issuer: HttpProcess, issuer: str, http: httpx2.AsyncClient
) -> None:
    message, token = call(1, "Why?"), bearer(issuer)
    reply = await http.post(behind_issuer.url, json=message, headers={**routed(message), **token})
    assert reply.json()["result"]["resultType"] == "complete"
    assert any("caller=ann@example.com" in line for line in behind_issuer.complaints)
    assert not any(token["authorization"][7:] in line for line in behind_issuer.complaints)
    curve = bearer(issuer, CURVE_KEY, "ES256", "curve", aud=["https://other.example", AUDIENCE])
    assert (await http.post(behind_issuer.url, json=message, headers={**routed(message), **curve})).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://other.example/mcp"},
        {"iss": "https://other.example"},
        {"exp": None},
        {"exp": 1},
        {"sub": "ann\nbob"},
        {"key": OTHER_KEY},
        {"key": "", "algorithm": "none"},
        {"key": "a secret that is as long as it has to be", "algorithm": "HS256"},
    ],
    ids=lambda changes: " ".join(changes),
)
async def test_an_access_token_that_is_not_for_this_server_is_refused(
    behind_issuer: HttpProcess, issuer: str, http: httpx2.AsyncClient, changes: Any
) -> None:
    message = enveloped(1, "tools/list")
    headers = {**routed(message), **bearer(issuer, **changes)}
    reply = await http.post(behind_issuer.url, json=message, headers=headers)
    where = "https://answers.example/.well-known/oauth-protected-resource/mcp"
    challenge = f'Bearer error="invalid_token", resource_metadata="{where}"'
    assert (reply.status_code, reply.headers["www-authenticate"]) == (401, challenge)


@pytest.mark.slow
async def test_an_access_token_that_expires_ends_the_stream_but_not_the_call(
    behind_issuer: HttpProcess, issuer: str, http: httpx2.AsyncClient
) -> None:
    # Valid for two more seconds. The stream checks after fifteen.
    session = await opened(http, behind_issuer.url, **bearer(issuer, exp=time.time() - 3))
    slow = request(1, "tools/call", {"name": "answer", "arguments": {"query": SLOW}})
    calling = asyncio.ensure_future(http.post(behind_issuer.url, json=slow, headers=session))
    async with asyncio.timeout(WAIT_SECONDS):
        stream = await http.get(behind_issuer.url, headers=session)
        assert stream.status_code == 200
        assert (await http.post(behind_issuer.url, json=request(2, "ping"), headers=session)).status_code == 401
        renewed = {**session, **bearer(issuer)}
        assert (await http.post(behind_issuer.url, json=request(3, "ping"), headers=renewed)).status_code == 200
        assert '"structuredContent"' in (await calling).text


# ---------------------------------------------------------------------------------------------------------------------
# Faults


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "text/plain"}, b"{}", 415),
        ({"accept": "application/json"}, b"{}", 406),
        ({}, b"x" * (4 * 1024 * 1024 + 1), 413),
        ({"mcp-protocol-version": "2026-07-28"}, b"{", 400),
        ({"mcp-protocol-version": "2026-07-28"}, b"[]", 400),
    ],
    ids=["content type", "accept", "size", "no JSON", "batch"],
)
async def test_a_body_that_is_no_message_is_refused_with_the_right_status(
    server: HttpProcess, http: httpx2.AsyncClient, headers: dict[str, str], body: bytes, status: int
) -> None:
    reply = await http.post(server.url, content=body, headers={**BOTH, **headers})
    assert reply.status_code == status


async def test_a_body_without_an_end_in_sight_is_refused_by_its_size(
    server: HttpProcess, http: httpx2.AsyncClient
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 100_000

    reply = await http.post(server.url, content=endless(), headers=BOTH)
    assert reply.status_code == 413


@pytest.mark.parametrize(
    "raw",
    [
        b"POST /mcp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /mcp HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    ],
    ids=["chunks", "head"],
)
async def test_garbage_on_the_wire_costs_its_connection_and_nothing_else(
    server: HttpProcess, http: httpx2.AsyncClient, raw: bytes
) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(raw)
        await writer.drain()
        head = await reader.readline()
        writer.close()
    assert head.startswith((b"HTTP/1.1 4",)) or head == b""
    assert (await posted(http, server, enveloped(1, "tools/list"))).status_code == 200


@pytest.mark.parametrize("end", [b"\r\n ", b"\n", b"\r"], ids=["folded", "newline", "return"])
async def test_a_header_of_a_client_never_becomes_one_of_ours(server: HttpProcess, end: bytes) -> None:
    host = f"127.0.0.1:{server.port}".encode()
    named = b"".join(b"%b: a%bSet-Cookie: stolen=1\r\n" % (name, end) for name in (b"Mcp-Session-Id", b"Last-Event-ID"))
    async with asyncio.timeout(WAIT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /mcp HTTP/1.1\r\nHost: %b\r\n%bConnection: close\r\n\r\n" % (host, named))
        await writer.drain()
        reply = await reader.read()
        writer.close()
    assert reply.startswith(b"HTTP/1.1 4")
    assert b"stolen" not in reply


async def test_a_client_that_leaves_after_half_a_body_does_no_harm(
    server: HttpProcess, http: httpx2.AsyncClient
) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
        head += f"Accept: {BOTH['accept']}\r\nContent-Length: 1000\r\n\r\n"
        writer.write(head.encode() + b'{"jsonrpc":')
        await writer.drain()
        writer.close()
    assert (await posted(http, server, enveloped(1, "tools/list"))).status_code == 200


# ---------------------------------------------------------------------------------------------------------------------
# The end


async def test_sigterm_lets_calls_finish_and_takes_no_new_ones(rehearsal: StandInThread, tmp_path: Path) -> None:
    with closing(HttpProcess(environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url))) as server:
        async with begun(server, call(1, "Why? [rehearse: delay=2; text=In time.]", progressToken="t")) as lines:
            server.process.send_signal(signal.SIGTERM)
            async with client() as other:
                refused = await _until_refused(other, server)
            assert refused.headers["retry-after"]
            rest = [line async for line in lines]
        assert "In time." in events_in(rest)[-1]
        assert server.wait() == 0


@asynccontextmanager
async def begun(
    server: HttpProcess, message: Message, sign: str = "asking the model"
) -> AsyncIterator[AsyncIterator[str]]:
    """The lines of the response that follow the sign of life."""
    async with client() as http, http.stream("POST", server.url, json=message, headers=routed(message)) as reply:
        lines = reply.aiter_lines()
        async for line in lines:
            if sign in line:
                break
        yield lines


async def _until_refused(http: httpx2.AsyncClient, server: HttpProcess) -> httpx2.Response:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            reply = await posted(http, server, enveloped(1, "tools/list"))
            if reply.status_code == 503:
                return reply


async def test_a_second_signal_ends_the_drain(rehearsal: StandInThread, tmp_path: Path) -> None:
    with closing(HttpProcess(environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url), "--drain", "600")) as server:
        async with begun(server, call(1, SLOW, progressToken="t")) as lines:
            server.process.send_signal(signal.SIGTERM)
            async with client() as other:
                await _until_refused(other, server)
            server.process.send_signal(signal.SIGTERM)
            rest = [json.loads(data) for data in events_in([line async for line in lines])]
        assert rest[-1]["error"]["code"] == -32800
        assert server.wait() == 0


async def test_research_outlives_the_process_that_asked_for_it(rehearsal: StandInThread, tmp_path: Path) -> None:
    environ = environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url)
    with closing(HttpProcess(environ, "--drain", "0.2")) as server:
        question = {"query": "Why? [rehearse: text=Found later.; slow_stream=0.5]"}
        message = enveloped(1, "tools/call", name="answer_detailed", arguments=question, _meta={"progressToken": 1})
        async with begun(server, message, "thinking") as lines:
            server.process.send_signal(signal.SIGTERM)
            rest = [json.loads(data) for data in events_in([line async for line in lines])]
        assert rest[-1]["error"]["code"] == -32800
        assert server.wait() == 0
    (response_id,) = rehearsal.server.api.background.running
    assert not any(one.path.endswith("/cancel") for one in rehearsal.server.requests)
    found = await asyncio.to_thread(run, environ, "--fetch", response_id)
    assert (found.returncode, b"Found later." in found.stdout) == (0, True), found


def test_an_interrupt_ends_at_once(tmp_path: Path) -> None:
    with closing(HttpProcess(environment(tmp_path), "--rehearse")) as server:
        server.process.send_signal(signal.SIGINT)
        assert server.wait() == 130
        assert server.complaints == []


def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    with closing(HttpProcess(environment(tmp_path), "--rehearse")) as server:
        ended = run(environment(tmp_path), "--http", str(server.port), "--rehearse", text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "cannot be used" in ended.stderr
