import pytest

from openai_responses_mcp.adapters.http.sessions import (
    MOST_KEPT_RESPONSES,
    MOST_UNREAD_BYTES,
    Sessions,
    SessionsFull,
)
from openai_responses_mcp.adapters.http.streams import (
    MOST_KEPT_BYTES,
    MOST_KEPT_MESSAGES,
    Outbox,
)


def numbers(outbox: Outbox, after: int = 0) -> list[int]:
    found = []
    while (message := outbox.next_after(after)) is not None:
        after = message.number
        found.append(after)
    return found


def test_messages_are_numbered_and_a_reply_is_the_last() -> None:
    outbox = Outbox(1)
    outbox.send(b"1")
    outbox.reply(b"2", -32601)
    outbox.send(b"3")
    outbox.reply(b"4")
    assert (numbers(outbox), outbox.has_ended, outbox.error_code) == ([1, 2], True, -32601)


async def test_sent_messages_are_kept_only_for_a_client_that_may_resume() -> None:
    for keeps, left in ((False, [2]), (True, [1, 2])):
        outbox = Outbox(1, "1", keeps_sent=keeps)
        outbox.send(b"1")
        outbox.send(b"2")
        outbox.sent(1)
        assert numbers(outbox) == left


async def test_for_an_absent_client_a_bounded_buffer_and_the_reply_are_kept() -> None:
    outbox = Outbox(1, "1", keeps_sent=True)
    for _ in range(10 * MOST_KEPT_MESSAGES):
        outbox.send(b"x")
    outbox.reply(b"y" * 10_000_000)
    assert len(numbers(outbox)) <= MOST_KEPT_MESSAGES
    last = outbox.next_after(10 * MOST_KEPT_MESSAGES)
    assert last is not None
    assert len(last.body) == 10_000_000


async def test_nothing_is_lost_for_a_reader_that_is_there() -> None:
    outbox = Outbox(1, "1", keeps_sent=True)
    outbox.reader = object()
    for _ in range(10 * MOST_KEPT_MESSAGES):
        outbox.send(b"x")
    assert len(numbers(outbox)) == 10 * MOST_KEPT_MESSAGES


async def test_when_there_are_too_many_sessions_one_that_was_idle_for_long_is_closed() -> None:
    now = 1e9
    sessions = Sessions(2, least_idle_seconds=600, monotonic=lambda: now)
    first, second = sessions.open("a"), sessions.open("a")
    first.used_at, second.used_at = now - 601, now - 599
    busy = first.take(b"{}", 1, "a", is_answered=True)
    with pytest.raises(SessionsFull):
        sessions.open("a")
    busy.end()
    third = sessions.open("a")
    assert sessions.find(first.id, "a") is None
    assert sessions.find(second.id, "a") is second
    assert sessions.find(third.id, "a") is third
    third.used_at = now
    with pytest.raises(SessionsFull):
        sessions.open("a")


@pytest.mark.parametrize(("size", "kept"), [(10, MOST_KEPT_RESPONSES), (MOST_KEPT_BYTES // 4, 4)])
async def test_a_session_keeps_only_so_many_responses_that_are_over(size: int, kept: int) -> None:
    session = Sessions(1).open("a")
    unfinished = session.take(b"{}", 1, "a", is_answered=True)
    ended = [session.take(b"{}", 1, "a", is_answered=True) for _ in range(200)]
    for outbox in ended:
        outbox.reply(b"x" * size)
    session.take(b"{}", 1, "a", is_answered=True)
    assert [one for one in ended if session.find(f"{one.name}-0")] == ended[-kept:]
    assert session.find(f"{unfinished.name}-0") == (unfinished, 0)


async def test_a_session_is_full_until_the_server_takes_what_waits() -> None:
    session = Sessions(1).open("a")
    for body, is_full in ((b"x" * MOST_UNREAD_BYTES, False), (b"x", True)):
        session.take(body, None, "a", is_answered=False)
        assert session.is_full is is_full
    await session.receive()
    assert not session.is_full


MADE_UP = ("", "9-1", "1-x", "0", "-1", "1-²", "1-" + "9" * 5000)


async def test_an_event_id_leads_to_its_response() -> None:
    session = Sessions(1).open("a")
    outbox = session.take(b"{}", 1, "a", is_answered=True)
    assert outbox.name == "1"
    assert session.find("1-7") == (outbox, 7)
    assert [session.find(text) for text in MADE_UP] == [None] * len(MADE_UP)
