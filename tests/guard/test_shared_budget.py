"""Several guards on one store share one budget: exactly as many calls run as it allows."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.conftest import Guard, Guarded, policy_file, text_of

pytestmark = pytest.mark.slow

RAN = '{"got": {"text": "hi"}}'
REFUSED = "The guard did not run small/echo: a person is to be asked in the client, and this client cannot ask"


def policy(folder: Path, most: int) -> str:
    """With no client that can be asked, a call beyond the budget is refused."""
    budget = f"budget: {{calls: {most}, per: day}}\nask: client\n"
    return policy_file(folder, f"version: 1\n{budget}rules:\n  - {{tools: ['small/echo'], decide: allow}}\n")


def all_call_at_once(guards: list[Guard], calls: int) -> list[str]:
    """The text of each reply. Each guard gets all of its calls before any reply is read."""
    for guard in guards:
        guard.initialize()
    ids = [f"call-{number}" for number in range(calls)]
    for call_id in ids:
        for guard in guards:
            guard.start_call("echo", call_id)
    return [text_of(reply) for guard in guards for reply in guard.replies_to(ids)]


def check(guards: list[Guard], replies: list[str], most: int) -> None:
    assert Counter(replies) == {RAN: most, REFUSED: len(replies) - most}
    assert len(guards[0].calls_seen()) == most, "the servers of all guards write to one file"


def test_four_guards_on_one_file_run_exactly_the_budget(guarded: Guarded, tmp_path: Path) -> None:
    file = policy(tmp_path, 3)
    guards = [guarded("--policy", file) for _ in range(4)]
    check(guards, all_call_at_once(guards, 15), 3)


def test_two_guards_on_postgres_run_exactly_the_budget(
    guarded: Guarded, tmp_path: Path, postgres: Callable[[], str]
) -> None:
    file, store = policy(tmp_path, 100), postgres()
    guards = [guarded("--policy", file, "--store", store) for _ in range(2)]
    check(guards, all_call_at_once(guards, 75), 100)
