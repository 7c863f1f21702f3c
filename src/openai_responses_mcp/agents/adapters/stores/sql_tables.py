"""The tables. Moments are ISO texts in UTC, which sort as the moments do and are the same in every database."""

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

metadata = MetaData()

policies = Table(
    "agents_policies",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("allow_up_to", Integer, nullable=False),
    Column("refuse_from", Integer, nullable=False),
    Column("scopes", Text, nullable=False),
)

runs = Table(
    "agents_runs",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("status", String(16), nullable=False),
    Column("agent_name", Text, nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("updated_at", String(40), nullable=False),
    Column("payload", Text, nullable=False),
)

approvals = Table(
    "agents_approvals",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("approval_id", String(128), nullable=False, unique=True),
    Column("run_id", String(128), nullable=False, index=True),
    Column("pause_id", String(128), nullable=False, index=True),
    Column("tool_call_id", Text, nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("tool_kind", String(16), nullable=False),
    Column("required_action", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("risk_level", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("status", String(16), nullable=False, index=True),
    Column("comment", Text),
    Column("human_response", Text),
    Column("created_at", String(40), nullable=False),
    Column("decided_at", String(40)),
    Column("tool_description", Text, nullable=False),
    Column("definition_change", Text, nullable=False),
    Column("arguments_hash", String(64), nullable=False),
    Column("definition_hash", String(64), nullable=False),
    Column("state_hash", String(64), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("token_hash", String(64), unique=True),
    Column("binding", String(64)),
    Column("expires_at", String(40)),
    Column("used_at", String(40)),
    Column("replaced_by", String(128)),
)

logs = Table(
    "agents_log",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("run_id", String(128), nullable=False),
    Column("tool_call_id", Text, nullable=False),
    Column("event", String(64), nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("tool_kind", String(16), nullable=False),
    Column("decision", String(32), nullable=False),
    Column("risk_level", Integer),
    Column("reason", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("timestamp", String(40), nullable=False),
    Column("previous_hash", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    UniqueConstraint("run_id", "tool_call_id", "event", name="agents_log_once"),
    Index("agents_log_time", "timestamp"),
)

# One row. Whoever appends to the log updates it first and so holds its lock until the record is committed.
log_turns = Table(
    "agents_log_turns",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("taken", BigInteger, nullable=False),
)
