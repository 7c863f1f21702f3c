"""Notices of questions to a webhook: what is in them, and that nothing waits for them."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.clock import later
from openai_responses_mcp.gate.policy.rules import Policy
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.guard import opened_gate
from openai_responses_mcp.guard.opened_gate import MOST_AT_ONCE, NotTaken, Webhook, is_address, post_json
from openai_responses_mcp.guard.servers import environment_for_server
from tests.fakes import WAIT_SECONDS
from tests.guard.fake_process import FakeNotices
from tests.guard.keepers import GuardScene

ADDRESS = "https://hooks.example.com/services/T0/B0/secret-part"
REQUEST = HumanApprovalRequest(
    "apr_1234567890",
    "guard_1",
    "",
    "",
    "pending",
    tool_name="files/write <!channel> [x](y)",
    arguments={"path": "the argument"},
    reasons=(Reason("profile", "needs_human", {"risk": 3, "profile": "balanced"}),),
)


class Chat:
    """Takes notices after the scripted failures."""

    def __init__(self, failures: list[Exception] | None = None) -> None:
        self.taken: list[Mapping[str, str]] = []
        self.tries = 0
        self._failures = failures or []

    async def post(self, address: str, body: Mapping[str, str]) -> None:
        self.tries += 1
        assert address == ADDRESS
        if self._failures:
            raise self._failures.pop(0)
        self.taken.append(body)


async def _no_sleep(_: float) -> None:
    await asyncio.sleep(0)


async def sent(chat: Chat, *, language: Any = "en", times: int = 1) -> list[str]:
    """The lines on stderr, once nothing is under way any more."""
    notices, before = FakeNotices(), chat.tries
    webhook = Webhook(ADDRESS, "files", notices.tell, language, chat.post, _no_sleep)
    for _ in range(times):
        webhook.tell(REQUEST, "2026-11-18T05:00:00.000000+00:00")
    assert chat.tries == before
    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.gather(*webhook._under_way)
    return notices.lines


async def test_a_notice_has_the_fields_of_the_spec_and_no_arguments() -> None:
    chat = Chat()
    assert await sent(chat) == []
    assert chat.taken == [
        {
            "text": "files/write \\u003c!channel\\u003e \\u005bx\\u005d(y) waits for your decision: no rule covers this tool,"
            " so you are asked. Decide with: openai-responses-mcp approvals show 12345678",
            "approval_id": "apr_1234567890",
            "server": "files",
            "tool": "write <!channel> [x](y)",
            "why": "no rule covers this tool, so you are asked",
            "expires_at": "2026-11-18T05:00:00.000000+00:00",
        }
    ]
    assert "the argument" not in json.dumps(chat.taken)
    await sent(chat, language="ja")
    assert "承認を待っています" in chat.taken[1]["text"]


async def test_a_notice_is_sent_once_more_and_failures_are_warned_of_once() -> None:
    chat = Chat([OSError(ADDRESS)])
    assert await sent(chat) == []
    assert (chat.tries, len(chat.taken)) == (2, 1)
    chat = Chat([NotTaken("it answered with status 500")] * 6)
    assert await sent(chat, times=3) == [
        "a question could not be sent to the webhook (it answered with status 500); this is said once"
    ]
    assert chat.tries == 6
    lines = await sent(Chat([OSError(ADDRESS)] * 2))
    assert "secret-part" not in lines[0]
    assert "OSError" in lines[0]


async def test_each_try_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened_gate.SECONDS_FOR_ONE_TRY == 5.0
    monkeypatch.setattr(opened_gate, "SECONDS_FOR_ONE_TRY", 0.01)

    class Hanging(Chat):
        async def post(self, address: str, body: Mapping[str, str]) -> None:
            self.tries += 1
            await asyncio.get_running_loop().create_future()

    chat = Hanging()
    assert "TimeoutError" in (await sent(chat))[0]
    assert chat.tries == 2


async def test_no_more_than_a_few_are_under_way_at_once() -> None:
    chat = Chat()
    lines = await sent(chat, times=MOST_AT_ONCE + 5)
    assert len(chat.taken) == MOST_AT_ONCE
    assert "too many at once" in lines[0]
    assert len(lines) == 1


@asynccontextmanager
async def http_server(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Answers every request with these bytes; the address, and what was received."""
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        received.append(head + await reader.readexactly(length))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook", received


async def test_it_is_posted_as_json_and_redirects_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with asyncio.timeout(WAIT_SECONDS):
        async with http_server(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as (address, received):
            await post_json(address, {"text": "hello"})
        assert received[0].startswith(b"POST /hook ")
        assert received[0].endswith(b'{"text": "hello"}')
        assert b"application/json" in received[0]
        moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
        async with http_server(moved) as (address, received):
            with pytest.raises(NotTaken, match="status 302"):
                await post_json(address, {"text": "hello"})
        assert len(received) == 1


async def test_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with asyncio.timeout(WAIT_SECONDS):
        async with http_server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (proxy, received):
            monkeypatch.setenv("http_proxy", proxy)
            await post_json("http://chat.example.com/hook", {"text": "hello"})
    assert received[0].startswith(b"POST http://chat.example.com/hook ")


def test_invalid_addresses_are_recognised() -> None:
    cases: list[str] = ["", "hooks.example.com/x", "file:///etc/passwd", "http://", "http://[", "http://a:0/"]
    for address in cases:
        assert not is_address(address)
        assert is_address(ADDRESS)


@pytest.mark.parametrize(("in_policy", "given", "minutes"), [(60, None, 1), (60, 120, 2), (None, None, 5)])
async def test_every_question_is_sent_with_the_moment_when_it_expires(
    in_policy: float | None, given: float | None, minutes: int
) -> None:
    async with GuardScene(Policy(wait_seconds=in_policy), wait_seconds=given) as scene:
        scene.declare(elicitation=True)
        scene.start(1)
        question = await scene.question()
        ((request, expires_at),) = scene.notified
        assert request.tool_name == "small/echo"
        assert expires_at == (await scene.approvals.get(request.approval_id)).waits_until
        assert expires_at == later(request.created_at, minutes * 60)
        scene.answer(question, "deny")
        await scene.to_client(lambda message: message.get("id") == 1)


def test_the_guards_own_settings_and_the_address_are_not_in_the_environment_of_the_server() -> None:
    environ = {"PATH": "/bin", "SLACK_HOOK": ADDRESS, "slack_hook": "x", "AGENTS_STORE": "y", "agents_x": "1"}
    assert environment_for_server(environ, "SLACK_HOOK") == {"PATH": "/bin"}
    assert environment_for_server(environ) == {"PATH": "/bin", "SLACK_HOOK": ADDRESS, "slack_hook": "x"}
