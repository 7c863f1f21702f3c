"""The guard over real pipes: what passes, who is asked, what runs, and what is written down."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from openai_responses_mcp.gate.errors import StoreUnavailable
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.e2e.client import WAIT_SECONDS
from tests.guard.conftest import ALLOW_ALL, ENVELOPE, Guard, Guarded, policy_file, text_of
from tests.guard.test_notifying import http_server

T = TypeVar("T")

RULES = """
version: 1
rules:
  - {tools: [small/echo, small/fail], decide: allow}
  - {tools: [small/write_note], decide: deny, reason: nothing is written here}
"""


async def until(look: Callable[[], Awaitable[T]]) -> T:
    """What `look` gives, as soon as it is something."""
    async with asyncio.timeout(WAIT_SECONDS):
        found = await look()
        while not found:
            await asyncio.sleep(0.05)
            found = await look()
    return found


async def pending_id(guard: Guard) -> str:
    async def look() -> str:
        try:
            waiting = await guard.desk().approvals.pending()
        except StoreUnavailable:  # The guard has not made it yet.
            return ""
        return waiting[0].approval_id if waiting else ""

    return await until(look)


# ---------------------------------------------------------------------------------------------------------------------
# Passing and refusing


async def test_an_allowed_call_runs_a_denied_one_says_why_and_both_are_recorded(guarded: Guarded) -> None:
    guard = guarded(policy=RULES)
    guard.initialize()
    assert json.loads(text_of(guard.called("echo"))) == {"got": {"text": "hi"}}
    denied = guard.called("write_note", "d")
    assert denied["result"]["isError"] is True
    assert text_of(denied) == "The guard did not run small/write_note: nothing is written here (policy rule 2)"
    assert guard.finish() == 0
    assert [call["name"] for call in guard.calls_seen()] == ["echo"]
    events = [("decision", "allow"), ("started", "started"), ("outcome", "completed"), ("decision", "deny")]
    assert await guard.events() == events
    assert (await guard.desk().audit.verify()).is_intact


async def test_lists_results_and_notices_follow_the_policy_file(guarded: Guarded, tmp_path: Path) -> None:
    """The keys of the file that change what the client is given, and the webhook, with the address as a secret."""
    keys = "hide_denied: true\nresults: {secrets: hide}\nnotify: {webhook_env: MY_HOOK}\n"
    rules = "rules:\n  - {tools: [small/echo], decide: allow}\n  - {tools: [small/write_note], decide: deny}\n"
    async with http_server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (address, received):
        guard = guarded(policy=f"version: 1\n{keys}{rules}", MY_HOOK=address, NO_PROXY="127.0.0.1")
        guard.initialize()
        tools = {tool["name"] for tool in guard.result_of("tools/list")["tools"]}
        assert "echo" in tools
        assert "write_note" not in tools
        assert "MY_HOOK" not in guard.result_of("environment")["names"]
        assert address not in text_of(guard.called("echo", text=f"it is {address}"))
        guard.start_call("fail", "f")

        async def look() -> list[bytes]:
            return received

        body = json.loads((await until(look))[0].partition(b"\r\n\r\n")[2])
        assert (body["server"], body["tool"], "small/fail" in body["text"]) == ("small", "fail", True)
        guard.finish()
    logs = await open_stores(guard.store, must_exist=True).logs.query()
    assert [log.reasons[0].about for log in logs if log.event == "outcome"][:1] == [{"hidden": 1}]


async def test_every_other_message_passes_byte_for_byte(guarded: Guarded) -> None:
    guard = guarded()
    odd = b'{ "jsonrpc":"2.0",  "id":"\\u00e9", "method":"x/y","future":{"a":[1.0,1e5,"\xe2\x80\xa8"]} , "params":{"b":null}}'
    guard.send_bytes(odd + b"\n")
    assert guard.reply_to("é")["result"] == {"method": "x/y"}
    assert guard.seen_file.read_bytes() == odd + b"\n"


async def test_observing_lets_everything_pass_and_records_what_would_have_been(guarded: Guarded) -> None:
    guard = guarded("--observe", policy=RULES)
    assert guard.called("write_note")["result"]["isError"] is False
    assert guard.called("nope", "d")["result"]["isError"] is False
    assert guard.finish() == 0
    assert (await guard.events())[:4] == [
        ("observed", "deny"),
        ("decision", "allow"),
        ("started", "started"),
        ("outcome", "completed"),
    ]
    assert (await guard.desk().audit.verify()).is_intact


async def test_a_changed_policy_counts_from_the_next_call_on_and_a_broken_one_does_not(guarded: Guarded) -> None:
    guard = guarded(policy=RULES)
    assert guard.called("echo")["result"]["isError"] is False
    policy_file(guard.folder, "version: 1\nrules: [{tools: ['*'], decide: deny}]\n")
    assert guard.called("echo", "d")["result"]["isError"] is True
    policy_file(guard.folder, "version: 1\nrules: [{tools: ['*'], decide: perhaps}]\n")
    assert guard.called("echo", "e")["result"]["isError"] is True
    assert guard.finish() == 0
    assert "the last good policy stays in force" in guard.stderr


async def test_a_call_that_touches_the_policy_file_asks(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    guard.initialize(elicitation={})
    params = {"name": "echo", "arguments": {"text": str(guard.folder / "policy.yaml")}}
    guard.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    question = guard.question()
    assert "leads to the policy file" in question["params"]["message"]
    guard.answer(question, "deny")
    assert guard.reply_to(7)["result"]["isError"] is True
    assert guard.calls_seen() == []


# ---------------------------------------------------------------------------------------------------------------------
# Asking in the client


async def test_a_client_of_the_handshake_era_is_asked_and_runs_what_was_shown(guarded: Guarded) -> None:
    guard = guarded()
    guard.initialize(elicitation={})
    guard.start_call("echo", text="a\u202eb\u0007")
    question = guard.question()
    assert '"text": "a\\u202eb\\u0007"' in question["params"]["message"]
    assert "no rule covers this tool, so you are asked" in question["params"]["message"]
    guard.answer(question, "allow_once", "fine")
    assert json.loads(text_of(guard.reply_to("c")))["got"] == {"text": "a\u202eb\u0007"}
    guard.start_call("echo", "d")
    guard.answer(guard.question(), "deny", "not again")
    assert text_of(guard.reply_to("d")).endswith("denied in the client. The approver says: not again")
    assert len(guard.calls_seen()) == 1
    assert guard.finish() == 0
    events = await guard.events()
    assert ("approval", "approved") in events
    assert ("approval", "denied") in events
    assert (await guard.desk().audit.verify()).is_intact


async def test_a_client_of_the_newer_era_is_asked_by_the_reply(guarded: Guarded) -> None:
    guard = guarded()
    guard.start_call("echo", _meta=ENVELOPE)
    asked = guard.reply_to("c")["result"]
    assert asked["resultType"] == "input_required"
    assert '"text": "hi"' in asked["inputRequests"]["guard-approval"]["params"]["message"]
    again = {
        "requestState": asked["requestState"],
        "inputResponses": {"guard-approval": {"action": "accept", "content": {"decision": "allow_once"}}},
        "_meta": ENVELOPE,
    }
    assert json.loads(text_of(guard.called("echo", "d", **again)))["got"] == {"text": "hi"}
    assert guard.calls_seen() == [{"name": "echo", "arguments": {"text": "hi"}, "_meta": ENVELOPE}]
    used = guard.called("echo", "e", **again)["result"]
    assert used["resultType"] == "complete"
    assert used["isError"] is True
    assert len(guard.calls_seen()) == 1


# ---------------------------------------------------------------------------------------------------------------------
# Asking at the desk


async def test_at_the_desk_the_call_waits_with_progress_until_somebody_decides(guarded: Guarded) -> None:
    guard = guarded()
    guard.initialize()
    guard.start_call("echo", _meta={"progressToken": "p"})
    approval_id = await pending_id(guard)
    short = approval_id.removeprefix("apr_")[:4]
    progress = guard.receive()["params"]
    assert progress["progressToken"] == "p"
    assert progress["message"] == f"waiting for approval {short}…: openai-responses-mcp approvals show {short}"
    await guard.desk().approvals.submit_decision(approval_id, "approve", "go on")
    assert guard.reply_to("c")["result"]["isError"] is False
    assert guard.finish() == 0
