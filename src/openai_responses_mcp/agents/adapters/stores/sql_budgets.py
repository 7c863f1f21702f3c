"""What is used of budgets, in the database. Each change is one statement, so that none is lost."""

from sqlalchemy import Connection, case, select
from sqlalchemy.dialects import postgresql, sqlite

from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_tables import budgets
from openai_responses_mcp.agents.gate.ports import BudgetStore


class SqlBudgetStore(BudgetStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def read(self, window: str) -> tuple[int, int]:
        query = select(budgets.c.used, budgets.c.allowed_to).where(budgets.c.window == window)
        row = await self._database.work(lambda connection: connection.execute(query).first(), is_writing=False)
        return (0, 0) if row is None else (int(row.used), int(row.allowed_to))

    async def spend(self, window: str, amount: int) -> None:
        await self._database.work(lambda connection: _put(connection, window, used=amount))

    async def allow_to(self, window: str, amount: int) -> None:
        await self._database.work(lambda connection: _put(connection, window, allowed_to=amount))


def _put(connection: Connection, window: str, used: int = 0, allowed_to: int = 0) -> None:
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(budgets)
    statement = insert.values(window=window, used=used, allowed_to=allowed_to).on_conflict_do_update(
        index_elements=[budgets.c.window],
        set_={
            "used": budgets.c.used + used,
            "allowed_to": case((budgets.c.allowed_to < allowed_to, allowed_to), else_=budgets.c.allowed_to),
        },
    )
    connection.execute(statement)
