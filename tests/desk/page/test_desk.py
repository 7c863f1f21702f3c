"""The desk on stores without a database: what a person sees, what becomes of their decisions."""

from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.desk.opening import desk_on
from openai_responses_mcp.desk.page.desk import CALLS_AT_ONCE
from openai_responses_mcp.desk.page.messages import Choice
from openai_responses_mcp.gate.approvals.standing import StandingTerms
from openai_responses_mcp.gate.audit.log import AuditEntry
from openai_responses_mcp.gate.clock import LEASE_SECONDS, Presence, timestamp
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fake_stores import FakeApprovalStore, fake_stores
from tests.agents.fakes import FakeClock, code_of
from tests.desk.page.asking import Asker


@pytest.fixture
def stores(clock: FakeClock) -> Stores:
    return fake_stores(clock)


@pytest.fixture
def desk(stores: Stores) -> Any:
    return desk_on(stores)


@pytest.fixture
def asker(stores: Stores) -> Asker:
    return Asker(stores)


async def test_what_waits_is_listed_oldest_first_and_else_the_guards(
    desk: Any, asker: Asker, stores: Stores, clock: FakeClock
) -> None:
    now = timestamp(clock.now())
    for number, name in enumerate(["notes", "files", "files"]):
        await stores.presence.renew(Presence(f"guard_{number}", "guard", name, now, now))
    assert await desk.waiting() == {"waiting": [], "guards": ["files", "notes"]}
    asked = [await asker.ask({"path": name}) for name in "ab"]
    assert await desk.waiting() == {"waiting": [request.approval_id for request in asked]}


async def test_an_approval_that_expired_unused_is_asked_for_again(desk: Any, asker: Asker, clock: FakeClock) -> None:
    approval_id = (await asker.ask()).approval_id
    assert await desk.waiting() == {"waiting": [approval_id]}
    await desk.decide([Choice(approval_id, "approve")])
    clock.move(901)
    (renewed,) = (await desk.waiting())["waiting"]
    assert renewed != approval_id


async def test_looking_again_writes_nothing(clock: FakeClock) -> None:
    noting = NotingStore()
    desk = desk_on(replace(fake_stores(clock), approvals=noting))
    for _ in range(10):
        await desk.waiting()
        clock.move(2)
    assert noting.moments == 1
    clock.move(30)
    await desk.waiting()
    clock.move(-3600)
    await desk.waiting()
    assert noting.moments == 3


async def one_of(desk: Any, approval_id: str) -> Any:
    (request,) = (await desk.requests([approval_id]))["requests"]
    return request


class NotingStore(FakeApprovalStore):
    moments = 0

    async def latest_moment(self, now: str) -> str:
        self.moments += 1
        return await super().latest_moment(now)


async def test_a_request_shows_who_asks_what_runs_and_why(desk: Any, asker: Asker) -> None:
    change = 'description: "Read." is now "Write."'
    request = await asker.ask({"path": "a.txt", "text": "hi"}, reason="it writes", definition_change=change)
    shown = await one_of(desk, request.approval_id)
    assert (shown["agent_name"], shown["run_id"]) == ("Clerk", "run_1")
    assert (shown["tool_name"], shown["tool_kind"], shown["risk_level"]) == ("files/write_file", "mcp", 3)
    assert shown["arguments"] == '{\n  "path": "a.txt",\n  "text": "hi"\n}'
    assert (shown["reason"], shown["definition_change"]) == ("it writes", change)
    assert (shown["tool_description"], shown["status"]) == ("Write a file.", "pending")


async def test_a_request_of_the_guard_names_its_server_and_needs_no_token(stores: Stores, desk: Any) -> None:
    asker = Asker(stores, run_id="guard_1", agent_name="")
    request = await asker.ask(name="files/write_file")
    assert (await one_of(desk, request.approval_id))["agent_name"] == "guard of files"
    shown = await desk.decide([Choice(request.approval_id, "approve")])
    assert shown["decided"] == [{"approval_id": request.approval_id, "decision": "approve", "token": None}]


async def test_a_yes_that_no_guard_waits_for_says_who_is_gone(stores: Stores, desk: Any, clock: FakeClock) -> None:
    moment = timestamp(clock.now())
    await stores.presence.renew(Presence("guard_killed", "guard", "files", moment, moment))
    killed = (await Asker(stores, run_id="guard_killed").ask()).approval_id
    asker = Asker(stores, run_id="guard_running")
    given_up = (await asker.ask()).approval_id
    await asker.controller.close_undecided(given_up, "withdrawn", "")
    clock.move(LEASE_SECONDS + 1)
    shown = (await desk.decide([Choice(killed, "approve"), Choice(given_up, "approve")]))["decided"]
    assert [one["kept_because_gone"] for one in shown] == ["guard", "client"]


async def test_nothing_in_it_is_invisible(desk: Any, asker: Asker) -> None:
    hidden = "a\u202eb\u200bc\x1bd\ufe0fe"
    request = await asker.ask({hidden: [hidden]}, reason=hidden, prompt=hidden, name=hidden, description=hidden)
    shown = await one_of(desk, request.approval_id)
    assert shown["reason"] == "a\\u202eb\\u200bc\\x1bd\\ufe0fe"
    assert shown["arguments"].count("a\\u202eb\\u200bc\\u001bd\\ufe0fe") == 2
    texts = [text for text in shown.values() if isinstance(text, str)]
    assert not any(letter in text for text in texts for letter in "\u202e\u200b\x1b\ufe0f")


async def test_several_are_decided_each_by_itself(desk: Any, asker: Asker) -> None:
    one, two = [(await asker.ask()).approval_id for _ in range(2)]
    shown = await desk.decide(
        [Choice(one, "approve", "fine"), Choice("apr_none", "deny"), Choice(two, "deny", tell_model=True)]
    )
    first, missing, last = shown["decided"]
    assert (first["approval_id"], first["decision"], first["token"]["run_id"]) == (one, "approve", "run_1")
    assert missing == {
        "approval_id": "apr_none",
        "error": {
            "code": "AGENTS-E-APPROVAL-NOT-FOUND",
            "message": "There is no such approval",
            "says": {"en": "There is no such approval", "ja": "そのような承認依頼はありません"},
        },
    }
    assert last["decision"] == "deny"
    assert (await asker.controller.get(two)).request.tell_model is True
    assert await desk.requests(["apr_none"]) == {"requests": []}
    assert await desk.waiting() == {"waiting": [], "guards": []}
    assert (await asker.controller.get(one)).request.comment == "fine"


PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}


async def test_a_call_is_approved_with_other_arguments_that_fit_the_tool(desk: Any, asker: Asker) -> None:
    approval_id = (await asker.ask({"path": "a"}, parameters=PATH)).approval_id
    assert (await one_of(desk, approval_id))["can_change_arguments"] is True
    (wrong,) = (await desk.decide([Choice(approval_id, "approve", arguments={"path": 1})]))["decided"]
    assert "do not fit the tool" in wrong["error"]["message"]
    (shown,) = (await desk.decide([Choice(approval_id, "approve", arguments={"path": "b"})]))["decided"]
    assert shown["token"]
    assert (await asker.controller.get(approval_id)).request.changed_arguments == {"path": "b"}
    assert (await one_of(desk, (await asker.ask()).approval_id))["can_change_arguments"] is False


async def test_a_long_text_is_shown_with_its_line_breaks(desk: Any, asker: Asker) -> None:
    approval_id = (await asker.ask({"path": "a", "text": "one\ntwo\u202e", "n": [1]})).approval_id
    assert (await one_of(desk, approval_id))["parts"] == [
        {"name": '"path"', "json": '"a"'},
        {"name": '"text"', "text": "one\ntwo\\u202e", "lines": 2, "characters": 8},
        {"name": '"n"', "json": "[\n  1\n]"},
    ]


async def test_somebody_is_at_the_desk_while_a_page_looks(desk: Any, stores: Stores, clock: FakeClock) -> None:
    assert await stores.presence.renewed_since("") == []
    await desk.waiting()
    (lease,) = await stores.presence.renewed_since("", "desk")
    clock.move(9)
    await desk.waiting()
    assert await stores.presence.renewed_since("") == [lease]
    clock.move(1)
    await desk.waiting()
    (renewed,) = await stores.presence.renewed_since("")
    assert (renewed.presence_id, renewed.since) == (lease.presence_id, lease.since)
    assert renewed.renewed_at > lease.renewed_at
    await desk.leave()
    assert await stores.presence.renewed_since("") == []


async def test_the_log_comes_newest_first_and_in_parts(desk: Any, asker: Asker) -> None:
    count = CALLS_AT_ONCE + 5
    for number in range(count):
        await asker.audit.record(AuditEntry("run_1", f"c{number}", "decision", "allow", "look", who="ann"))
    first = await desk.log()
    assert first["calls"][0]["caller"] == "ann"
    assert [call["number"] for call in first["calls"]] == list(range(count, 5, -1))
    assert (first["total"], first["has_older"]) == (count, True)
    rest = await desk.log(before=first["calls"][-1]["number"])
    assert [call["number"] for call in rest["calls"]] == [5, 4, 3, 2, 1]
    assert rest["has_older"] is False
    assert (await desk.log(before=1))["calls"] == []


async def test_the_log_is_verified(desk: Any, asker: Asker) -> None:
    await asker.ask()
    assert (await desk.verify())["is_intact"] is True
    await asker.audit.record(AuditEntry("run_1", "c9", "started", "started", "look\u202e"))
    found = await desk.verify()
    assert found["is_intact"] is False
    assert "\\u202e" in found["says"]["en"]["findings"][0]
    assert "判断の記録がありません" in found["says"]["ja"]["findings"][0]


# ---------------------------------------------------------------------------------------------------------------------
# Standing approvals


async def test_an_approval_can_hold_from_now_on_and_be_revoked(desk: Any, asker: Asker) -> None:
    one, two = [(await asker.ask()).approval_id for _ in range(2)]
    await desk.decide([Choice(one, "approve", "fine", StandingTerms(for_seconds=3600))])
    await desk.decide([Choice(two, "approve", None, StandingTerms(for_session=True, same_arguments=True))])
    first, second = (await desk.standing())["standing"]
    assert (first["tool_name"], first["comment"], first["made_in"]) == ("files/write_file", "fine", "run_1")
    assert (first["is_for_session"], first["is_for_same_arguments"]) == (False, False)
    assert first["expires_at"].startswith("2026-11-16T10:00:00")
    assert (second["is_for_session"], second["is_for_same_arguments"], second["expires_at"]) == (True, True, None)
    assert (await desk.revoke(first["standing_id"]))["revoked"]["standing_id"] == first["standing_id"]
    assert [one["standing_id"] for one in (await desk.standing())["standing"]] == [second["standing_id"]]
    assert await code_of(desk.revoke(first["standing_id"])) == "AGENTS-E-APPROVAL-INVALID"
    events = [log.event for log in await asker.audit.query()]
    assert (events.count("standing_made"), events.count("standing_ended")) == (2, 1)


async def test_a_request_that_is_already_decided_makes_no_standing_approval(desk: Any, asker: Asker) -> None:
    approval_id = (await asker.ask()).approval_id
    await desk.decide([Choice(approval_id, "deny")])
    (shown,) = (await desk.decide([Choice(approval_id, "approve", None, StandingTerms(always=True))]))["decided"]
    assert shown["error"]["code"] == "AGENTS-E-APPROVAL-INVALID"
    assert await desk.standing() == {"standing": []}
