"""Standing approvals in the database."""

from sqlalchemy import bindparam, insert, select, update

from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_tables import standing
from openai_responses_mcp.agents.approvals.models import StandingApproval
from openai_responses_mcp.agents.approvals.ports import StandingStore
from openai_responses_mcp.agents.calls import ToolKind

# Made once: putting a statement together takes longer than running it.
_COLUMNS = [standing.c[name] for name in StandingApproval.__slots__]
_ALL = select(*_COLUMNS).where(standing.c.ended_at.is_(None)).order_by(standing.c.number)
_OF_TOOL = _ALL.where(standing.c.tool_kind == bindparam("kind"), standing.c.tool_name == bindparam("name"))


class SqlStandingStore(StandingStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def create(self, made: StandingApproval) -> None:
        values = {name: getattr(made, name) for name in StandingApproval.__slots__}
        await self._database.work(lambda connection: connection.execute(insert(standing).values(values)))

    async def get(self, standing_id: str) -> StandingApproval | None:
        query = select(*_COLUMNS).where(standing.c.standing_id == standing_id)
        row = await self._database.work(lambda connection: connection.execute(query).first(), is_writing=False)
        return None if row is None else StandingApproval(**row._mapping)

    async def list_standing(
        self, tool_kind: ToolKind | None = None, tool_name: str | None = None
    ) -> list[StandingApproval]:
        query = _ALL if tool_name is None else _OF_TOOL
        tool = {} if tool_name is None else {"kind": tool_kind, "name": tool_name}
        rows = await self._database.work(lambda connection: connection.execute(query, tool).all(), is_writing=False)
        return [StandingApproval(**row._mapping) for row in rows]

    async def end(self, standing_id: str, ended_at: str, because: str) -> bool:
        statement = (
            update(standing)
            .where(standing.c.standing_id == standing_id, standing.c.ended_at.is_(None))
            .values(ended_at=ended_at, ended_because=because)
        )
        return await self._database.work(lambda connection: connection.execute(statement).rowcount == 1)
