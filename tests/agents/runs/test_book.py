"""What this process remembers of its runs."""

from openai_responses_mcp.agents.runs.book import MOST_REMEMBERED, Remembered, RunBook
from tests.agents.fake_stores import FakeRunStateStore
from tests.agents.fakes import FakeClock


async def test_only_so_many_runs_are_remembered(clock: FakeClock) -> None:
    book = RunBook(FakeRunStateStore(), clock)
    first = await book.begin("an agent", {"context": 1})
    assert book.remembered(first.run_id) == Remembered("an agent", {"context": 1})
    for number in range(MOST_REMEMBERED):
        book.remember(f"run_{number}", Remembered("another agent"))
    assert book.remembered(first.run_id) == Remembered()
    assert book.agents == ["another agent"] * MOST_REMEMBERED
