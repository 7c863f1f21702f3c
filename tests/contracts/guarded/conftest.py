"""The stores that the contracts run on: the fakes, and the real ones on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from openai_responses_mcp.gate.sql.sql_approvals import SqlApprovalStore
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore, SqlStartBook
from openai_responses_mcp.gate.sql.sql_stores import (
    SqlBudgetStore,
    SqlPolicyStore,
    SqlPresenceStore,
    SqlRunStateStore,
    SqlStandingStore,
)
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fake_stores import fake_stores
from tests.agents.fakes import FakeClock


@pytest.fixture(params=["fake", "sqlite-file", pytest.param("postgres", marks=pytest.mark.slow)])
def stores(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Stores]:
    if request.param == "fake":
        yield fake_stores(clock)
        return
    is_file = request.param == "sqlite-file"
    database = SqlDatabase(f"sqlite:///{tmp_path}/agents.db" if is_file else request.getfixturevalue("postgres")())
    logs = SqlExecutionLogStore(database)
    yield Stores(
        policies=SqlPolicyStore(database),
        approvals=SqlApprovalStore(database),
        runs=SqlRunStateStore(database),
        logs=logs,
        head=None,
        clock=clock,
        standing=SqlStandingStore(database),
        budgets=SqlBudgetStore(database),
        presence=SqlPresenceStore(database),
        starts=SqlStartBook(database, logs),
    )
    database.close()
