"""What news of decisions must do: at once if the database notifies, and never in the way if it does not."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from openai_responses_mcp.gate.approvals.models import DecisionNews
from openai_responses_mcp.gate.sql.sql_approvals import SqlDecisionNews, payload_of
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.desk.page.asking import Asker
from tests.fakes import WAIT_SECONDS


async def test_without_notifications_the_time_passes(tmp_path: Path) -> None:
    stores = open_stores(f"sqlite:///{tmp_path}/agents.db")
    news: DecisionNews | None = stores.news
    assert news is not None
    with news.about("a1") as bell, news.about("a1") as another:
        await asyncio.wait_for(bell(0.01), WAIT_SECONDS)
        await asyncio.wait_for(another(0.01), WAIT_SECONDS)


async def test_a_bell_is_rung_from_any_thread_and_remembers_it(tmp_path: Path) -> None:
    news = SqlDecisionNews(SqlDatabase(f"sqlite:///{tmp_path}/agents.db"))
    with news.about("a1") as bell, news.about("a2") as other:
        await asyncio.to_thread(news._ring, payload_of("a1"))
        await asyncio.wait_for(bell(30), WAIT_SECONDS)
        await asyncio.to_thread(news._ring, None)
        await asyncio.wait_for(asyncio.gather(bell(30), other(30)), WAIT_SECONDS)
    assert not news.is_listening


@pytest.mark.slow
async def test_a_decision_made_anywhere_is_heard_of_everywhere_at_once(postgres: Callable[[], str]) -> None:
    url = postgres()
    here, there = open_stores(url), open_stores(url)
    asker = Asker(here, "guard_1")
    request, other = await asker.ask(), await asker.ask()
    assert isinstance(here.news, SqlDecisionNews)
    with here.news.about(request.approval_id) as bell:
        # It is rung once when the process begins to listen. A request that is awaited later is not.
        await asyncio.wait_for(bell(30), 30)
        assert here.news.is_listening
        with here.news.about(other.approval_id) as silent:
            heard, unheard = (asyncio.ensure_future(one(30)) for one in (bell, silent))
            await Asker(there, "guard_1").controller.submit_decision(request.approval_id, "approve")
            await asyncio.wait_for(heard, 5)
            assert not unheard.done()
            unheard.cancel()


@pytest.mark.slow
async def test_a_listener_comes_back_after_its_connection_was_cut(postgres: Callable[[], str]) -> None:
    url = postgres()
    here, there = open_stores(url), open_stores(url)
    request = await Asker(here, "guard_1").ask()
    assert here.news is not None
    with here.news.about(request.approval_id) as bell:
        await asyncio.wait_for(bell(30), 30)
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        await SqlDatabase(url).work(lambda connection: connection.execute(text(cut)).all())
        # Rung again once it listens again, with another connection.
        await asyncio.wait_for(bell(30), 30)
        await Asker(there, "guard_1").controller.submit_decision(request.approval_id, "deny")
        await asyncio.wait_for(bell(30), 5)
