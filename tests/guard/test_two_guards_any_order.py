"""Two guards of one server on one store, each with a client of its own, in any order of events, against a model.

The model knows what the person at each client was shown and has answered. A call starts with a definition only if that
is the one let through before, or the first one and a rule allows it, or if a person was shown it for this very call and
said yes. So a definition that was only ever refused is never pinned.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.definitions import pin_of
from openai_responses_mcp.gate.policy.rules import Policy, Rule
from openai_responses_mcp.gate.stores import CallStart, StartOutcome
from tests.guard.keepers import GuardScene, entry

ALLOW = Policy(rules=(Rule(1, ("*",), decide="allow"),))
WORDS = ("first", "second", "third")
DEFINITIONS = {words: entry("echo", description=words) for words in WORDS}
WORDS_OF = {pin_of(one).partition(" ")[0]: words for words, one in DEFINITIONS.items()}
CHANGE = re.compile(r'"description": "(\w+)" is now "(\w+)"')


class Shown(NamedTuple):
    """The definition that was let through when a person was asked, and the one that the question is about.

    None where the question names none: then the tool is new, or as it was when it was let through.
    """

    before: str | None
    now: str | None


@dataclass
class Known:
    """What the model knows of one call."""

    yes_to: list[Shown] = field(default_factory=list)
    is_refused: bool = False
    starts: int = 0


class TwoGuards:
    """The guards and the model, side by side."""

    def __init__(self, *, is_allowed: bool) -> None:
        policy = ALLOW if is_allowed else Policy()
        first = GuardScene(policy)
        self.scenes = [first, GuardScene(policy, beside=first)]
        self.is_allowed = is_allowed
        self.known: dict[str, Known] = {}
        self.answered: set[str] = set()
        self.pinned: str | None = None
        self.faults: list[str] = []
        start = first.starts.start

        async def watched(before: Sequence[ExecutionLog], starts: Sequence[CallStart]) -> list[StartOutcome]:
            outcomes = await start(before, starts)
            for one, outcome in zip(starts, outcomes, strict=True):
                if outcome == "started":
                    self.has_started(one)
            return outcomes

        first.starts.start = watched  # type: ignore[method-assign]
        for scene in self.scenes:
            scene.server_lists = [DEFINITIONS["first"]]
            scene.declare(elicitation=True)

    # -----------------------------------------------------------------------------------------------------------------
    # What happens

    async def server_changes(self, guard: int, words: str, is_said: bool) -> None:
        self.scenes[guard].server_lists = [DEFINITIONS[words]]
        if is_said:
            await self.scenes[guard].list_changed()

    async def client_lists(self, guard: int) -> None:
        self.scenes[guard].client.enqueue({"jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": {}})

    async def client_calls(self, guard: int) -> None:
        call_id = f"call {len(self.known)}"
        self.known[call_id] = Known()
        self.scenes[guard].start(call_id, arguments={"text": call_id})

    async def person_answers(self, guard: int, place: int, is_yes: bool) -> None:
        questions = self.questions(guard)
        if not questions:
            return
        question = questions[place % len(questions)]
        self.answered.add(question["id"])
        message = question["params"]["message"]
        known = self.known[call_of(message)]
        if is_yes:
            known.yes_to.append(shown_in(message))
        else:
            known.is_refused = True
        self.scenes[guard].answer(question, "allow_once" if is_yes else "deny")

    async def all_rest(self) -> None:
        """Every call has its reply, or waits for a person."""

        async def is_so() -> bool:
            replied = {message.get("id") for scene in self.scenes for message in scene.client.replies()}
            asked = {call_of(one["params"]["message"]) for guard in (0, 1) for one in self.questions(guard)}
            return self.known.keys() <= replied | asked

        await self.scenes[0].until(is_so)

    def questions(self, guard: int) -> list[Any]:
        """Those that the person has not answered."""
        sent = self.scenes[guard].client.replies()
        asked = [message for message in sent if message.get("method") == "elicitation/create"]
        return [question for question in asked if question["id"] not in self.answered]

    # -----------------------------------------------------------------------------------------------------------------
    # What may not happen

    def has_started(self, start: CallStart) -> None:
        [call_id] = {str(record.arguments["text"]) for record in start.records if record.arguments}
        known, now = self.known[call_id], WORDS_OF[start.pin.partition(" ")[0]]
        known.starts += 1
        is_unchanged = self.pinned in (None, now)
        is_let_through = (self.is_allowed and is_unchanged) or any(
            is_unchanged if yes.now is None else yes.now == now and self.pinned in (None, now, yes.before)
            for yes in known.yes_to
        )
        if known.is_refused or not is_let_through:
            self.faults.append(f"{call_id} ran {now!r} after {self.pinned!r}: {known}")
        self.pinned = now

    def check(self) -> None:
        assert self.faults == []
        ran = [call["arguments"]["text"] for scene in self.scenes for call in scene.calls_at_server()]
        assert len(ran) == len(set(ran))
        assert all(self.known[call_id].starts == 1 for call_id in ran)


def shown_in(message: str) -> Shown:
    """The first change is the one since the approval, if there is one; the last says what the guard sees now."""
    changes = CHANGE.findall(message)
    if not changes:
        return Shown(None, None)
    return Shown(changes[0][0] if "since it was approved" in message else None, changes[-1][1])


def call_of(message: str) -> str:
    return str(re.findall(r'"text": "(call \d+)"', message)[-1])


GUARD = st.sampled_from([0, 1])
CALL = st.tuples(st.just("client_calls"), GUARD)
ANSWER = st.tuples(st.just("person_answers"), GUARD, st.integers(0, 2), st.booleans())
REST = st.just(("all_rest",))
EVENTS = st.one_of(
    CALL,
    CALL,
    ANSWER,
    ANSWER,
    REST,
    REST,
    st.tuples(st.just("client_lists"), GUARD),
    st.tuples(st.just("server_changes"), GUARD, st.sampled_from(WORDS), st.booleans()),
)
ORDERS = st.lists(EVENTS, min_size=20, max_size=50)


@given(st.booleans(), ORDERS)
def test_no_order_of_events_runs_a_definition_that_was_not_let_through(
    is_allowed: bool, order: list[tuple[Any, ...]]
) -> None:
    asyncio.run(played(order, is_allowed=is_allowed))


async def played(order: list[tuple[Any, ...]], *, is_allowed: bool) -> None:
    both = TwoGuards(is_allowed=is_allowed)
    async with both.scenes[0], both.scenes[1]:
        for name, *facts in order:
            await getattr(both, name)(*facts)
            both.check()
        await both.all_rest()
        both.check()
