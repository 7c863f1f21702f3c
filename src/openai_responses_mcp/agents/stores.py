"""Opening the stores behind a URL: one database, four stores, and the head of the log."""

import os
from dataclasses import dataclass
from pathlib import Path

from openai_responses_mcp.agents.adapters.head_file import HeadFile
from openai_responses_mcp.agents.adapters.sql_database import IN_MEMORY, SqlDatabase
from openai_responses_mcp.agents.adapters.sql_stores import (
    SqlApprovalStore,
    SqlExecutionLogStore,
    SqlPolicyStore,
    SqlRunStateStore,
)
from openai_responses_mcp.agents.adapters.system_clock import SystemClock
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.ports import (
    ApprovalStore,
    AuditHead,
    Clock,
    ExecutionLogStore,
    PolicyStore,
    RunStateStore,
)

DEFAULT_TTL_SECONDS = 900
_TTL_VARIABLE = "AGENTS_RESUME_TOKEN_TTL_SEC"


@dataclass(frozen=True, slots=True)
class Stores:
    policies: PolicyStore
    approvals: ApprovalStore
    runs: RunStateStore
    logs: ExecutionLogStore
    head: AuditHead | None
    clock: Clock


def open_stores(url: str | None = None, audit_head: str | os.PathLike[str] | None = None) -> Stores:
    """Nothing is connected to yet. Without a URL the database is in memory."""
    database = SqlDatabase(IN_MEMORY if url is None else url)
    head = _head_for(database, audit_head)
    return Stores(
        policies=SqlPolicyStore(database),
        approvals=SqlApprovalStore(database),
        runs=SqlRunStateStore(database),
        logs=SqlExecutionLogStore(database, head),
        head=head,
        clock=SystemClock(),
    )


def ttl_seconds(given: int | None) -> int:
    """How long a token lives: as given, else as the environment says."""
    if given is None:
        written = os.environ.get(_TTL_VARIABLE)
        if written is None:
            return DEFAULT_TTL_SECONDS
        given = int(written) if written.strip().isascii() and written.strip().isdigit() else 0
    if type(given) is not int or given < 1:
        message = f"resume_token_ttl_sec ({_TTL_VARIABLE}) is a whole number of seconds from 1 up"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
    return given


def _head_for(database: SqlDatabase, path: str | os.PathLike[str] | None) -> AuditHead | None:
    file = database.file
    if path is not None:
        return HeadFile(path, is_sole_writer=file is not None or database.is_in_memory)
    return None if file is None else HeadFile(Path(f"{file}.head"))
