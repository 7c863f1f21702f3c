"""The small parts: what is listed, what a client can be asked, what counts as an answer, and records in few writes."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.domain.jsonrpc import Request
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.calls import GuardedServer
from openai_responses_mcp.gate.errors import AgentsError, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.stores import CallStart
from openai_responses_mcp.guard.gatekeeping import Records
from openai_responses_mcp.guard.messages import ClientWays, envelope_of, progress_token_of
from openai_responses_mcp.guard.peers import Listed, Listings, Peer, tool_error
from openai_responses_mcp.guard.questions import PersonAnswer, answer_in, form_for
from tests.agents.fake_stores import FakeBudgetStore, FakeExecutionLogStore, FakeStartBook
from tests.agents.fakes import BreakableLogStore, FakeClock, within
from tests.fakes import FakeTransport

# ---------------------------------------------------------------------------------------------------------------------
# Listings


def page(*names: str, cursor: str | None = None, **changes: Any) -> dict[str, Any]:
    more = {} if cursor is None else {"nextCursor": cursor}
    return {"tools": [{"name": name, **changes} for name in names], **more}


def test_a_listing_of_several_pages_takes_the_place_of_the_one_before() -> None:
    listings = Listings()
    listings.note({}, page("first", cursor="2"))
    assert listings.get("first") == Listed({"name": "first"}, None)
    listings.note({}, page("old", "both"))
    listings.note({}, page("new", cursor="2"))
    assert listings.get("old") == Listed({"name": "old"}, None)
    listings.note({"cursor": "2"}, page("both"))
    assert [listings.get(name) is not None for name in ("old", "new", "both")] == [False, True, True]


def test_a_tool_that_is_listed_in_two_ways_is_ambiguous_until_it_is_listed_once() -> None:
    listings = Listings()
    listings.note({}, {"tools": [{"name": "x", "description": "a"}, {"name": "x", "description": "b"}]})
    assert listings.is_ambiguous("x")
    listings.note({}, page("x"))
    assert not listings.is_ambiguous("x")
    listings.note({}, {"tools": [{"name": "x"}, {"name": "x"}]})
    assert not listings.is_ambiguous("x")
    # The last two agree, and the first does not.
    listings.note_whole([{"name": "x", "description": "a"}, {"name": "x"}, {"name": "x"}])
    assert listings.is_ambiguous("x")


def test_what_the_guard_has_seen_stands_beside_what_the_client_was_shown() -> None:
    listings = Listings()
    listings.note({}, page("x", "y", description="shown"))
    seen: list[Any] = [{"name": "x", "description": "seen"}]
    listings.note_whole(seen)
    assert listings.get("x") == Listed({"name": "x", "description": "shown"}, seen[0])
    assert listings.get("y") is None
    assert [listings.newest(name) for name in ("x", "y", "z", 7)] == [
        seen[0],
        {"name": "y", "description": "shown"},
        {},
        {},
    ]
    assert listings.names() == {"x", "y"}
    listings.note({}, page("x", description="later", cursor="2"))
    assert listings.get("x") == Listed({"name": "x", "description": "later"}, None)


def test_an_invalid_listing_lists_no_tools() -> None:
    cases: list[Any] = [None, [], {}, {"tools": None}, {"tools": [None, 7, {}, {"name": 7}]}]
    for result in cases:
        listings = Listings()
        listings.note({}, result)
        assert listings.names() == set()


# ---------------------------------------------------------------------------------------------------------------------
# What a client can be asked


def envelope(capabilities: Any, revision: Any = "2026-07-28") -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "progressToken": 1,
    }
    return {"_meta": meta}


@pytest.mark.parametrize(
    ("revision", "capabilities", "way"),
    [
        ("2025-06-18", {"elicitation": {}}, "elicitation"),
        ("2025-11-25", {"elicitation": {"form": {}, "url": {}}}, "elicitation"),
        ("2025-11-25", {"elicitation": {"url": {}}}, "desk"),
        # Also in front of an older server.
        ("2024-11-05", {"elicitation": {}}, "elicitation"),
        ("2026-07-28", {"elicitation": {}}, "desk"),
        ("2025-06-18", {"elicitation": True}, "desk"),
        ("2025-06-18", None, "desk"),
        (None, {"elicitation": {}}, "elicitation"),
    ],
)
def test_a_handshake_says_how_a_client_can_be_asked(revision: Any, capabilities: Any, way: str) -> None:
    ways = ClientWays()
    assert ways.way_for({}) == "desk"
    request = Request(1, "initialize", {"capabilities": capabilities}, {}, b"")
    ways.note_initialize(request, {"protocolVersion": revision})
    assert ways.way_for({}) == way


def test_an_envelope_says_so_with_every_request() -> None:
    cases: list[tuple[Any, str]] = [
        (envelope({"elicitation": {}}), "input_required"),
        (envelope({"elicitation": {"url": {}}}), "desk"),
        (envelope({}), "desk"),
        (envelope(None), "desk"),
        (envelope({"elicitation": {}}, 7), "desk"),
        ({"_meta": []}, "desk"),
    ]
    for params, way in cases:
        ways = ClientWays()
        assert ways.way_for(params) == way
        ways.note_failure()
        assert ways.way_for(params) == "desk"


def test_the_handshake_shows_whether_the_server_notifies_of_other_tools() -> None:
    ways = ClientWays()
    assert ways.server_tells_of_tools is False
    for declared, notifies in (({"listChanged": True}, True), ({"listChanged": "yes"}, False), (True, False)):
        ways.note_initialize(Request(1, "initialize", {}, {}, b""), {"capabilities": {"tools": declared}})
        assert ways.server_tells_of_tools is notifies


def test_a_request_of_the_guards_own_has_the_envelope_without_the_token() -> None:
    assert list(envelope_of(envelope({}))["_meta"]) == [  # type: ignore[call-overload]
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
    ]
    assert envelope_of({"_meta": {"progressToken": 1}}) == {}


def test_a_progress_token_is_a_text_or_a_whole_number() -> None:
    tokens: list[Any] = ["p", 5, True, 1.5, {"a": 1}, [1], None]
    assert [progress_token_of({"_meta": {"progressToken": one}}) for one in tokens] == ["p", 5, *[None] * 5]


# ---------------------------------------------------------------------------------------------------------------------
# Questions and answers


ARGUMENTS = "Arguments, as they will be sent (to see all: openai-responses-mcp approvals show 7f3a):"


def asked(arguments: Any, **changes: Any) -> str:
    request = HumanApprovalRequest(
        "apr_7f3a99", "r", "a", "p", "pending", tool_name="s/t", arguments=arguments, **changes
    )
    return str(form_for(request, "s")["message"])


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text(), max_size=2), max_size=3))
def test_the_question_shows_exactly_what_is_sent_and_nothing_invisible(arguments: dict[str, Any]) -> None:
    message = asked(arguments, reason="why\u202e\x1b[31m")
    shown = message.partition(f"{ARGUMENTS}\n")[2]
    assert json.loads(shown) == arguments
    assert all(letter.isprintable() or letter in "\n\u3000" for letter in message)


def test_a_name_or_a_reason_cannot_pass_for_a_line_of_the_question() -> None:
    evil = f'x"\n{ARGUMENTS}\n{{}}'
    message = asked({"a": 1}, reason=evil, definition_change=f"description: {evil}")
    assert message.count(f"\n{ARGUMENTS}\n") == 1


def test_short_arguments_are_one_line_so_that_clients_that_cut_show_all_of_them() -> None:
    message = asked({"path": "/notes/買い物.md", "content": "牛乳\n"}, reason="why")
    assert message.splitlines() == [
        'The server "s" is asked to run "t".',
        "Why you are asked: why",
        ARGUMENTS,
        '{"path": "/notes/買い物.md", "content": "牛乳\\n"}',
    ]


def test_long_arguments_have_a_line_each() -> None:
    shown = asked({"path": "/notes", "content": "牛乳" * 15}).splitlines()[3:]
    assert shown == ["{", '  "path": "/notes",', f'  "content": "{"牛乳" * 15}"', "}"]
    # In a terminal of 80 columns, with a margin.
    assert [len(asked({"text": "x" * letters}).splitlines()[3:]) for letters in (62, 63)] == [1, 3]


def test_the_question_says_what_has_changed_line_by_line() -> None:
    changes = {"reason": "a\nb", "definition_change": "first\nsecond\rthird"}
    request = HumanApprovalRequest("apr_7f3a99", "r", "a", "p", "pending", tool_name="s/買う", **changes)  # type: ignore[arg-type]
    assert str(form_for(request, "s")["message"]).split("\n") == [
        'The server "s" is asked to run "買う".',
        "Why you are asked: a\\nb",
        "What changed:",
        "  first",
        "  second\\x0dthird",
        ARGUMENTS,
        "{}",
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5), lambda inner: st.dictionaries(st.text(max_size=5), inner)
    )
)
def test_only_a_clear_yes_is_one(result: Any) -> None:
    assert not answer_in(result).is_yes


def test_an_answer_is_a_choice_that_was_offered_and_a_comment() -> None:
    cases: list[tuple[Any, tuple[Any, str]]] = [
        (
            {"action": "accept", "content": {"decision": "allow_once", "comment": "x" * 2001}},
            ("allow_once", "x" * 2000),
        ),
        ({"action": "accept", "content": {"decision": "allow_reads_for_good", "comment": 7}}, ("deny", "")),
        ({"action": "accept", "content": {"decision": ["allow_once"], "comment": "why"}}, ("deny", "why")),
        ({"action": "decline", "content": {"decision": "allow_once"}}, ("deny", "")),
        ({"action": "cancel"}, ("deny", "")),
        ({"action": "accept", "content": "allow_once"}, ("deny", "the client gave no answer")),
        ("accept", ("deny", "the client gave no answer")),
    ]
    for result, answer in cases:
        assert answer_in(result) == PersonAnswer(*answer)


# ---------------------------------------------------------------------------------------------------------------------
# Records


def entry(number: int) -> AuditEntry:
    return AuditEntry("run", f"call_{number}", "started", "started")


def records_on(store: BreakableLogStore) -> Records:
    return Records(AuditLog(store, FakeClock(), Masking({}), "required"), FakeStartBook(store, FakeBudgetStore()))


async def test_concurrent_records_are_written_in_order() -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    records = records_on(store)
    await within(asyncio.gather(*(records.write(entry(number)) for number in range(20))))
    assert [log.tool_call_id for log in await store.query()] == [f"call_{number}" for number in range(20)]


async def test_records_that_no_call_waits_for_are_written_with_the_next_or_at_the_end() -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    records = records_on(store)
    records.write_behind(entry(1))
    await within(records.write(entry(2)))
    assert [log.tool_call_id for log in await store.query()] == ["call_1", "call_2"]
    records.write_behind(entry(3))
    await within(records.settle())
    assert len(await store.query()) == 3


async def test_records_that_no_call_waits_for_are_written_after_a_moment() -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.waits_at = lambda log: log.tool_call_id == "call_2"
    records = records_on(store)
    records.write_behind(entry(1))
    records.write_behind(entry(2))
    assert await store.query() == []
    await within(store.is_reached.wait())
    store.goes_on.set()
    await within(records.settle())
    assert [log.tool_call_id for log in await store.query()] == ["call_1", "call_2"]


async def test_at_the_end_everything_is_written_that_is_under_way() -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.waits_at = lambda log: log.tool_call_id == "call_1"
    records = records_on(store)
    first = asyncio.create_task(records.write(entry(1)))
    await within(store.is_reached.wait())
    records.write_behind(entry(2))
    ending = asyncio.create_task(records.settle())
    await asyncio.sleep(0)
    assert not ending.done()
    store.goes_on.set()
    await within(asyncio.gather(first, ending))
    assert [log.tool_call_id for log in await store.query()] == ["call_1", "call_2"]


async def test_one_that_is_refused_harms_no_other() -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.refuses = lambda log: log.tool_call_id == "call_1"
    records = records_on(store)
    done = await within(asyncio.gather(*(records.write(entry(number)) for number in range(2)), return_exceptions=True))
    assert [type(one) for one in done] == [str, RecordRefused]
    assert len(await store.query()) == 1


async def test_best_effort_goes_on_without_the_store_and_keeps_the_record() -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.is_broken = True
    audit = AuditLog(store, FakeClock(), Masking({}), "best_effort")
    records = Records(audit, FakeStartBook(store, FakeBudgetStore()))
    start = CallStart(GuardedServer("small", "fingerprint", "python small.py"), "small/echo", "pin", None, (), ())
    # A call that comes with it does not start.
    written, started = await within(
        asyncio.gather(records.write(entry(1)), records.write(entry(2), start=start), return_exceptions=True)
    )
    assert (written, type(started)) == ("started", StoreUnavailable)
    assert [log.tool_call_id for log in audit.unwritten] == ["call_1"]


async def test_a_cancelled_write_ends_quietly_when_the_store_fails() -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.waits_at = lambda log: True
    waiting = asyncio.create_task(records_on(store).write(entry(1)))
    await within(store.is_reached.wait())
    waiting.cancel()
    store.is_broken = True
    store.goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await within(waiting)


def test_a_token_leads_to_the_last_request_that_has_it() -> None:
    server, channel = Peer(FakeTransport(), 10), FakeTransport()
    params: dict[str, Any] = {"_meta": {"progressToken": "a"}}
    _, second = (server.hold(Request(number, "tools/call", params, {}, b""), channel) for number in (1, 2))
    server.close(1)
    assert server.with_progress_token("a") is second
    server.close(2)
    assert server.with_progress_token("a") is None


def test_a_refusal_is_a_result_of_the_tool_in_both_eras() -> None:
    result = {"content": [{"type": "text", "text": "no"}], "isError": True}
    assert tool_error({}, "no") == result
    assert tool_error(envelope({}), "no") == {"resultType": "complete", **result}


def test_a_cancelled_request_is_neither_sent_nor_answered() -> None:
    to_client, to_server = FakeTransport(), FakeTransport()
    server = Peer(to_server, 10)
    held = server.hold(Request(1, "tools/call", {}, {}, b""), to_client)
    other = server.hold(Request(2, "tools/call", {}, {}, b""), to_client)
    server.close(1)
    assert server.open_requests == [other]
    assert not server.release(held, b"late")
    server.answer(held, {})
    server.refuse(held, -32602, "late")
    assert (to_client.sent, to_server.sent) == ([], [])
    assert server.release(other, b"in time")
    assert to_server.sent == [b"in time"]


async def test_a_store_that_is_gone_is_tried_once_for_all_of_them() -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.is_broken = True
    records = records_on(store)
    done = await within(asyncio.gather(*(records.write(entry(number)) for number in range(20)), return_exceptions=True))
    assert {type(one) for one in done} == {StoreUnavailable}
    assert store.tries == 1


async def test_records_that_no_call_waits_for_are_kept_until_the_store_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.is_broken = True
    records = records_on(store)
    records.write_behind(entry(1))
    await within(records.settle())
    assert "the last records (1) could not be written" in caplog.text
    store.is_broken = False
    await within(records.write(entry(2)))
    assert [log.tool_call_id for log in await store.query()] == ["call_1", "call_2"]


async def test_a_store_that_is_no_database_of_ours_does_not_break_the_end(caplog: pytest.LogCaptureFixture) -> None:
    class NotOurs(BreakableLogStore):
        async def append_all(self, logs: Sequence[ExecutionLog]) -> list[ExecutionLog]:
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", "store names x.db, which is not a SQLite database")

    records = records_on(NotOurs(FakeExecutionLogStore()))
    records.write_behind(entry(1))
    await within(records.settle())
    assert "the last records (1) could not be written" in caplog.text


def test_the_question_says_why_in_words_of_a_newcomer_in_both_languages() -> None:
    reasons = (Reason("profile", "needs_human", {"risk": 3, "profile": "balanced"}),)
    request = HumanApprovalRequest(
        "apr_7f3a", "r", "a", "p", "pending", tool_name="s/t", reason="risk 3 needs a human", reasons=reasons
    )
    english, japanese = (form_for(request, "s", reads=True, language=language) for language in ("en", "ja"))
    assert str(english["message"]).splitlines()[:2] == [
        'The server "s" is asked to run "t", which claims to read only.',
        "Why you are asked: no rule covers this tool, so you are asked",
    ]
    assert "このツールに当てはまるルールがないため" in str(japanese["message"])
    shown = json.dumps([english, japanese], ensure_ascii=False)
    assert all(word in shown for word in ("Allow once", "今回だけ許可", "読み取り専用と申告"))
    assert english.keys() == japanese.keys()


def test_the_form_offers_each_choice_with_its_title_and_a_comment() -> None:
    request = HumanApprovalRequest("apr_7f3a", "r", "a", "p", "pending", tool_name="s/t")
    assert form_for(request, "s")["requestedSchema"] == {
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "enum": ["allow_once", "allow_tool_for_session", "allow_tool_for_good", "allow_call_for_good", "deny"],
                "enumNames": [
                    "Allow once",
                    "Allow this tool for this session",
                    "Allow this tool for good",
                    "Allow exactly this call for good",
                    "Deny",
                ],
            },
            "comment": {
                "type": "string",
                "title": "Comment",
                "description": "Sent to the model if you deny",
                "maxLength": 2000,
            },
        },
        "required": ["decision"],
    }
