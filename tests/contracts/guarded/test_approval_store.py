"""What every `ApprovalStore` must do, asked of the fake, of SQLite and of PostgreSQL."""

import asyncio
from dataclasses import replace

import pytest

from openai_responses_mcp.gate.approvals.models import (
    ApprovalChoice,
    ApprovalRecord,
    ApprovalStore,
    HumanApprovalRequest,
)
from openai_responses_mcp.gate.clock import later
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fakes import ODD_TEXTS, within

NOW = "2026-11-16T09:00:00.000000+00:00"
LATER = "2026-11-16T09:15:00.000000+00:00"
MUCH_LATER = "2026-11-16T10:00:00.000000+00:00"


@pytest.fixture
def store(stores: Stores) -> ApprovalStore:
    return stores.approvals


def a_record(approval_id: str = "a1", *, run: str = "r1", pause: str = "p1") -> ApprovalRecord:
    call = ("c1", "tool", "mcp", {"a": {"b": 1}}, 3, "why")
    request = HumanApprovalRequest(approval_id, run, "Approve", "May it?", "pending", *call, created_at=NOW)  # type: ignore[arg-type]
    return ApprovalRecord(request, pause, "args", "definition", "state")


def a_choice(approval_id: str = "a1", *, expires_at: str = LATER) -> ApprovalChoice:
    return ApprovalChoice(approval_id, "approved", "fine", NOW, f"hash-{approval_id}", expires_at, "seal")


async def test_a_request_is_read_back_as_it_was_created(store: ApprovalStore) -> None:
    reading = replace(a_record("a2"), reading={"files/読む": "d1", "files/list": "d2"})
    await store.create([a_record(), reading])
    assert await store.get("a1") == a_record()
    assert await store.get("a2") == reading
    assert await store.get("a3") is None


async def test_requests_are_created_all_or_none(store: ApprovalStore) -> None:
    await store.create([a_record("a1")])
    with pytest.raises(Exception, match="AGENTS-E-LOG-STORE"):
        await store.create([a_record("a2"), a_record("a1")])
    assert await store.get("a2") is None


async def test_pending_requests_are_listed_oldest_first(store: ApprovalStore) -> None:
    await store.create([a_record("b"), a_record("a"), a_record("c", run="r2", pause="p2")])
    await store.decide(a_choice("a"))
    assert [record.request.approval_id for record in await store.list_pending()] == ["b", "c"]
    assert [record.request.approval_id for record in await store.list_pending("r1")] == ["b"]
    assert [record.request.approval_id for record in await store.list_of_pause("p1")] == ["b", "a"]


async def test_a_decision_falls_once(store: ApprovalStore) -> None:
    await store.create([a_record()])
    assert await store.decide(a_choice()) is True
    assert await store.decide(replace(a_choice(), status="denied", token_hash="other")) is False
    record = await store.get("a1")
    assert record is not None
    assert (record.request.status, record.request.comment, record.token_hash) == ("approved", "fine", "hash-a1")
    assert await store.find_by_token("hash-a1") == record
    assert await store.find_by_token("other") is None


async def test_of_many_decisions_at_once_one_counts(store: ApprovalStore) -> None:
    await store.create([a_record()])
    choices = [replace(a_choice(), token_hash=f"hash-{number}") for number in range(10)]
    decided = await within(asyncio.gather(*(store.decide(choice) for choice in choices)))
    assert sorted(decided) == [False] * 9 + [True]


@pytest.mark.parametrize(
    ("pause", "token", "now"), [("p2", "hash-a1", NOW), ("p1", "wrong", NOW), ("p1", "hash-a1", LATER)]
)
async def test_wrong_and_expired_tokens_consume_nothing(store: ApprovalStore, pause: str, token: str, now: str) -> None:
    await store.create([a_record()])
    await store.decide(a_choice())
    assert await store.consume(pause, token, now) is False
    assert await store.consume("p1", "hash-a1", NOW) is True


async def test_an_expired_sibling_holds_the_whole_pause_back(store: ApprovalStore) -> None:
    await store.create([a_record("a1"), a_record("a2")])
    await store.decide(a_choice("a1"))
    await store.decide(a_choice("a2", expires_at=MUCH_LATER))
    assert await store.consume("p1", "hash-a2", LATER) is False


async def test_an_expired_denial_holds_nothing_back(store: ApprovalStore) -> None:
    await store.create([a_record("a1"), a_record("a2")])
    await store.decide(replace(a_choice("a1"), status="denied"))
    await store.decide(a_choice("a2", expires_at=MUCH_LATER))
    assert await store.consume("p1", "hash-a2", LATER) is True


async def test_decisions_are_used_up_without_a_token_once_and_only_when_all_are_there(store: ApprovalStore) -> None:
    await store.create([a_record("a1"), a_record("a2")])
    await store.decide(a_choice("a1"))
    assert [await store.consume("p1", token, NOW) for token in (None, "hash-a1")] == [False, False]
    await store.decide(a_choice("a2"))
    assert await store.consume("p1", None, LATER) is False
    assert await store.consume("p1", None, NOW) is True
    assert await store.consume("p1", None, NOW) is False
    assert await store.consume("p1", "hash-a1", NOW) is False


async def test_of_many_with_and_without_a_token_one_uses_the_decisions_up(store: ApprovalStore) -> None:
    await store.create([a_record()])
    await store.decide(a_choice())
    consumed = await within(asyncio.gather(*(store.consume("p1", token, NOW) for token in [None, "hash-a1"] * 8)))
    assert consumed.count(True) == 1


async def test_the_newest_pause_of_a_run_is_found(store: ApprovalStore) -> None:
    assert await store.list_newest_pause("r1") == []
    await store.create([a_record("a1"), a_record("a2")])
    await store.create([a_record("b1", pause="p2"), a_record("b2", pause="p2")])
    await store.create([a_record("c1", run="r2", pause="p3")])
    assert [record.request.approval_id for record in await store.list_newest_pause("r1")] == ["b1", "b2"]
    await store.replace("b1", replace(a_record("b3", pause="p2"), attempt=2))
    assert [record.request.approval_id for record in await store.list_newest_pause("r1")] == ["b2", "b3"]


async def test_approvals_that_were_not_used_in_time_are_listed(store: ApprovalStore) -> None:
    await store.create([a_record("a1"), a_record("a2"), a_record("a3"), a_record("a4", run="r2", pause="p2")])
    await store.decide(a_choice("a1"))
    await store.decide(replace(a_choice("a2"), status="denied"))
    await store.decide(a_choice("a4"))
    assert await store.list_expired(NOW) == []
    assert [record.request.approval_id for record in await store.list_expired(LATER)] == ["a1", "a4"]
    assert [record.request.approval_id for record in await store.list_expired(LATER, "r2")] == ["a4"]
    await store.replace("a1", a_record("a5"))
    await store.consume("p2", "hash-a4", NOW)
    assert await store.list_expired(LATER) == []


async def test_a_request_is_replaced_once_and_then_counts_no_more(store: ApprovalStore) -> None:
    await store.create([a_record("a1")])
    await store.decide(a_choice("a1"))
    renewed = replace(a_record("a2"), attempt=2)
    assert await store.replace("a1", renewed) is True
    assert await store.replace("a1", a_record("a3")) is False
    assert await store.list_of_pause("p1") == [renewed]
    old = await store.get("a1")
    assert old is not None
    assert old.replaced_by == "a2"
    assert await store.consume("p1", "hash-a1", NOW) is False
    assert await store.decide(a_choice("a1")) is False


async def test_a_used_request_is_not_replaced(store: ApprovalStore) -> None:
    await store.create([a_record("a1")])
    await store.decide(a_choice("a1"))
    await store.consume("p1", "hash-a1", NOW)
    assert await store.replace("a1", a_record("a2")) is False


async def test_the_response_of_the_human_is_stored(store: ApprovalStore) -> None:
    await store.create([a_record()])
    await store.respond("a1", "only once, please")
    record = await store.get("a1")
    assert record is not None
    assert record.human_response == "only once, please"


async def test_the_latest_moment_is_remembered(store: ApprovalStore) -> None:
    assert await store.latest_moment(LATER) == LATER
    assert await store.latest_moment(NOW) == LATER
    await store.create([a_record()])
    assert await store.latest_moment(NOW) == LATER
    late = a_record("a2")
    await store.create([replace(late, request=replace(late.request, created_at=MUCH_LATER))])
    assert await store.latest_moment(NOW) == MUCH_LATER


async def test_any_text_is_stored(store: ApprovalStore) -> None:
    await store.create([a_record()])
    for number, text in enumerate(ODD_TEXTS):
        request = HumanApprovalRequest(
            f"a{text}", f"r{text}", text, text, "pending", text, text, "mcp", {text: text}, 3, text, created_at=NOW
        )
        odd = ApprovalRecord(request, f"p{text}", "args", "definition", "state")
        await store.create([odd])
        assert await store.get(f"a{text}") == odd
        assert await store.list_pending(f"r{text}") == [odd]
        await store.decide(replace(a_choice(f"a{text}"), comment=text, token_hash=f"hash {number}"))
        await store.respond(f"a{text}", text)
        record = await store.find_by_token(f"hash {number}")
        assert record is not None
        assert (record.request.comment, record.human_response) == (text, text)
        assert await store.list_pending() == [a_record()]
        assert await store.consume(f"p{text}", f"hash {number}", NOW) is True


async def test_changed_arguments_and_tell_model_are_stored(store: ApprovalStore) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    await store.create([replace(a_record("a1"), parameters=schema), a_record("a2"), a_record("a3")])
    await store.decide(replace(a_choice("a1"), changed_arguments={"a": 2, "名": ["x", None]}))
    await store.decide(replace(a_choice("a2"), status="denied", tell_model=True))
    await store.decide(replace(a_choice("a3"), changed_arguments={}))
    changed, denied, emptied = await store.list_of_pause("p1")
    assert (changed.parameters, denied.parameters) == (schema, None)
    assert (changed.request.changed_arguments, changed.request.tell_model) == ({"a": 2, "名": ["x", None]}, False)
    assert (denied.request.changed_arguments, denied.request.tell_model) == (None, True)
    assert emptied.request.changed_arguments == {}


async def kept(store: ApprovalStore, *, expires_at: str = LATER) -> bool:
    """The request is withdrawn, and approved after that."""
    await store.create([a_record()])
    assert await store.decide(replace(a_choice(), status="withdrawn"))
    return await store.decide(replace(a_choice(expires_at=expires_at), status="kept", token_hash="kept"))


async def test_a_yes_to_a_withdrawn_request_is_kept_for_the_identical_call_and_used_once(store: ApprovalStore) -> None:
    assert await kept(store)
    found = await store.find_kept(a_record("new", run="r2", pause="p2"), NOW)
    assert found is not None
    assert (found.request.approval_id, found.request.status) == ("a1", "kept")
    assert await store.list_expired(MUCH_LATER) == []
    assert await store.consume("p1", None, NOW) is True
    assert await store.consume("p1", None, NOW) is False
    assert await store.find_kept(a_record("new"), NOW) is None


async def test_a_kept_approval_is_found_only_for_the_same_call_and_until_it_expires(store: ApprovalStore) -> None:
    await kept(store)
    like = a_record("new")
    others = [
        replace(like, arguments_hash="other"),
        replace(like, definition_hash="other"),
        replace(like, origin="other"),
        replace(like, request=replace(like.request, tool_name="other")),
        replace(like, request=replace(like.request, tool_kind="function")),
        replace(like, request=replace(like.request, caller="somebody else")),
    ]
    assert [await store.find_kept(other, NOW) for other in others] == [None] * 6
    assert await store.find_kept(like, LATER) is None
    assert await store.consume("p1", None, LATER) is False


async def test_a_yes_that_a_killed_guard_left_unused_is_found_for_the_identical_call(store: ApprovalStore) -> None:
    waited_for = replace(a_record("a1"), waits_until=LATER)
    await store.create(
        [
            waited_for,
            replace(waited_for, request=replace(waited_for.request, approval_id="a2"), arguments_hash="changed"),
            replace(a_record("a3"), arguments_hash="of a run"),
        ]
    )
    like = a_record("new", run="r2", pause="p2")
    # A guard that runs has used it by then.
    after = [later(NOW, seconds) for seconds in (4, 5, 599, 600)]
    assert [await store.find_kept(like, moment) for moment in after] == [None] * 4
    await store.decide(a_choice("a1"))
    await store.decide(replace(a_choice("a2"), changed_arguments={}))
    await store.decide(a_choice("a3"))
    assert [await store.find_kept(like, moment) is not None for moment in after] == [False, True, True, False]
    for other in ("changed", "of a run"):
        assert await store.find_kept(replace(like, arguments_hash=other), after[1]) is None
    assert await store.consume("p1", None, after[1]) is True
    assert await store.find_kept(like, after[1]) is None


async def test_only_what_was_withdrawn_or_approved_and_never_used_is_kept(store: ApprovalStore) -> None:
    keep = replace(a_choice(), status="kept")
    await store.create([a_record()])
    assert await store.decide(keep) is False
    await store.decide(a_choice())
    assert await store.decide(keep) is True
    await store.create([a_record("a2", pause="p2"), a_record("a3", pause="p3")])
    await store.decide(a_choice("a2"))
    await store.consume("p2", None, NOW)
    assert await store.decide(replace(keep, approval_id="a2")) is False
    await store.decide(replace(a_choice("a3"), status="denied"))
    assert await store.decide(replace(keep, approval_id="a3")) is False
