"""One database, with all stores in it and the head of its log beside it."""

import os
from pathlib import Path

from openai_responses_mcp.agents.adapters.stores.head_file import HeadFile
from openai_responses_mcp.agents.adapters.stores.sql_approvals import SqlApprovalStore, SqlDecisionBook
from openai_responses_mcp.agents.adapters.stores.sql_budgets import SqlBudgetStore
from openai_responses_mcp.agents.adapters.stores.sql_database import IN_MEMORY, SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_log import SqlExecutionLogStore
from openai_responses_mcp.agents.adapters.stores.sql_standing import SqlStandingStore
from openai_responses_mcp.agents.adapters.stores.sql_stores import SqlPins, SqlPolicyStore, SqlRunStateStore
from openai_responses_mcp.agents.adapters.system_clock import SystemClock
from openai_responses_mcp.agents.audit.ports import AuditHead
from openai_responses_mcp.agents.stores import Stores


def open_stores(
    url: str | None = None, audit_head: str | os.PathLike[str] | None = None, *, must_exist: bool = False
) -> Stores:
    """Connects to nothing yet. Without a URL the database is in memory."""
    database = SqlDatabase(IN_MEMORY if url is None else url, must_exist=must_exist)
    head = _head_for(database, audit_head)
    logs = SqlExecutionLogStore(database, head)
    return Stores(
        policies=SqlPolicyStore(database),
        approvals=SqlApprovalStore(database),
        runs=SqlRunStateStore(database),
        logs=logs,
        head=head,
        clock=SystemClock(),
        standing=SqlStandingStore(database),
        budgets=SqlBudgetStore(database),
        decisions=SqlDecisionBook(database, logs),
        pins=None if database.is_in_memory else SqlPins(database),
    )


def _head_for(database: SqlDatabase, path: str | os.PathLike[str] | None) -> AuditHead | None:
    file = database.file
    if path is not None:
        return HeadFile(path, is_sole_writer=file is not None or database.is_in_memory)
    return None if file is None else HeadFile(Path(f"{file}.head"))
