"""One database, with all stores in it and the head of its log beside it."""

import os
from pathlib import Path

from openai_responses_mcp.gate.audit.records import AuditHead
from openai_responses_mcp.gate.clock import SystemClock
from openai_responses_mcp.gate.sql.head_file import HeadFile
from openai_responses_mcp.gate.sql.sql_approvals import SqlApprovalStore, SqlDecisionBook
from openai_responses_mcp.gate.sql.sql_database import IN_MEMORY, SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from openai_responses_mcp.gate.sql.sql_news import SqlDecisionNews
from openai_responses_mcp.gate.sql.sql_starts import SqlStartBook
from openai_responses_mcp.gate.sql.sql_stores import (
    SqlBudgetStore,
    SqlPins,
    SqlPolicyStore,
    SqlPresenceStore,
    SqlRunStateStore,
    SqlStandingStore,
)
from openai_responses_mcp.gate.stores import Stores


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
        presence=SqlPresenceStore(database),
        decisions=SqlDecisionBook(database, logs),
        starts=SqlStartBook(database, logs),
        pins=None if database.is_in_memory else SqlPins(database),
        news=SqlDecisionNews(database),
    )


def _head_for(database: SqlDatabase, path: str | os.PathLike[str] | None) -> AuditHead | None:
    file = database.file
    if path is not None:
        return HeadFile(path, is_sole_writer=file is not None or database.is_in_memory)
    return None if file is None else HeadFile(Path(f"{file}.head"))
