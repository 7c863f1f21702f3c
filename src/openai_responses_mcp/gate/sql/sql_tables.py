"""The tables. Moments are ISO texts in UTC, which sort as the moments do and are the same in every database.

`AnyText` is for what comes from outside; a plain text is one that we make ourselves. PostgreSQL refuses NUL, and no
database takes half a surrogate pair. Both can stand in what models, judges and people write. In `AnyText` such a
character is kept as DLE and four hexadecimal digits, and DLE itself likewise, so that each text comes back as it was.
"""

import re
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator

_DLE = "\x10"
_TROUBLE = re.compile("[\x00\x10\ud800-\udfff]")
_ESCAPED = re.compile(f"{_DLE}([0-9a-f]{{4}})")


class AnyText(TypeDecorator[str]):
    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or value.isprintable():  # no such character is printable
            return value
        return _TROUBLE.sub(lambda found: f"{_DLE}{ord(found[0]):04x}", value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        # SQLite also keeps numbers in a column of texts, which a person can write there by hand.
        if not isinstance(value, str) or _DLE not in value:
            return value
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)


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
    Column("run_id", AnyText, primary_key=True),
    Column("status", String(16), nullable=False),
    Column("agent_name", AnyText, nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("updated_at", String(40), nullable=False),
    Column("payload", AnyText, nullable=False),
)

approvals = Table(
    "agents_approvals",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("approval_id", AnyText, nullable=False, unique=True),
    Column("run_id", AnyText, nullable=False, index=True),
    Column("pause_id", AnyText, nullable=False, index=True),
    Column("tool_call_id", AnyText, nullable=False),
    Column("tool_name", AnyText, nullable=False),
    Column("tool_kind", String(16), nullable=False),
    Column("required_action", AnyText, nullable=False),
    Column("prompt", AnyText, nullable=False),
    Column("arguments", AnyText, nullable=False),
    Column("risk_level", Integer, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("status", String(16), nullable=False, index=True),
    Column("comment", AnyText),
    Column("human_response", AnyText),
    Column("created_at", String(40), nullable=False),
    Column("decided_at", String(40)),
    Column("tool_description", AnyText, nullable=False),
    Column("definition_change", AnyText, nullable=False),
    Column("arguments_hash", String(64), nullable=False),
    Column("definition_hash", String(64), nullable=False),
    Column("state_hash", String(64), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("token_hash", String(64), unique=True),
    Column("binding", String(64)),
    Column("expires_at", String(40)),
    Column("used_at", String(40)),
    Column("replaced_by", AnyText),
    # Added later: NULL in older rows.
    Column("parameters", AnyText),
    Column("tell_model", Boolean),
    Column("changed_arguments", AnyText),
    Column("origin", String(64)),
    Column("waits_until", String(40)),
    Column("reasons", AnyText),
    Column("caller", AnyText),
    Column("reading", AnyText),
)

logs = Table(
    "agents_log",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("run_id", AnyText, nullable=False),
    Column("tool_call_id", AnyText, nullable=False),
    Column("event", String(64), nullable=False),
    Column("tool_name", AnyText, nullable=False),
    Column("tool_kind", String(16), nullable=False),
    Column("decision", String(32), nullable=False),
    Column("risk_level", Integer),
    Column("reason", AnyText, nullable=False),
    Column("arguments", AnyText, nullable=False),
    Column("comment", AnyText, nullable=False),
    Column("timestamp", String(40), nullable=False),
    Column("previous_hash", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    # Added later: NULL in older rows.
    Column("reasons", AnyText),
    Column("who", AnyText),
    UniqueConstraint("run_id", "tool_call_id", "event", name="agents_log_once"),
    Index("agents_log_time", "timestamp"),
)

# One row. An append updates it first and so holds its lock until the record is committed.
log_turns = Table(
    "agents_log_turns",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("taken", BigInteger, nullable=False),
)

# One row: the latest moment that any process has seen. A clock that is set back cannot revive an expired token.
clock = Table(
    "agents_clock",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("latest", String(40), nullable=False),
)

# The definitions with which tools of MCP servers were let through.
pins = Table(
    "agents_pins",
    metadata,
    Column("tool", AnyText, primary_key=True),
    Column("pin", AnyText, nullable=False),
)

# Standing approvals.
standing = Table(
    "agents_standing",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("standing_id", AnyText, nullable=False, unique=True),
    Column("tool_kind", String(16), nullable=False),
    Column("tool_name", AnyText, nullable=False, index=True),
    Column("definition_hash", String(64), nullable=False),
    Column("arguments_hash", String(64)),
    Column("session_id", AnyText),
    Column("expires_at", String(40)),
    Column("created_at", String(40), nullable=False),
    Column("made_from", AnyText, nullable=False),
    Column("made_in", AnyText, nullable=False),
    Column("comment", AnyText, nullable=False),
    Column("ended_at", String(40)),
    Column("ended_because", String(32), nullable=False),
    # Added later: NULL in older rows.
    Column("origin", String(64)),
    Column("caller", AnyText),
)

# How much of a budget is used, and up to how much a person has allowed.
budgets = Table(
    "agents_budgets",
    metadata,
    Column("window", AnyText, primary_key=True),
    Column("used", BigInteger, nullable=False),
    Column("allowed_to", BigInteger, nullable=False),
)

# Guards that run and desks that are open, each with a lease that it renews.
presence = Table(
    "agents_presence",
    metadata,
    Column("presence_id", AnyText, primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("name", AnyText, nullable=False),
    Column("detail", AnyText, nullable=False),
    Column("since", String(40), nullable=False),
    Column("renewed_at", String(40), nullable=False),
)

# The commands that have run under the name of a guarded server.
servers = Table(
    "agents_servers",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("name", AnyText, nullable=False, index=True),
    Column("fingerprint", String(64), nullable=False),
    Column("command", AnyText, nullable=False),
)

# The definitions with which tools of guarded servers were let through, by the server's name and command.
definitions = Table(
    "agents_definitions",
    metadata,
    Column("tool", AnyText, primary_key=True),
    Column("fingerprint", String(64), primary_key=True),
    Column("pin", AnyText, nullable=False),
)

# Calls that count against a caller's limits. A running call renews its lease.
caller_calls = Table(
    "agents_caller_calls",
    metadata,
    Column("call_id", String(64), primary_key=True),
    Column("caller", AnyText, nullable=False, index=True),
    Column("started_at", String(40), nullable=False),
    Column("renewed_at", String(40), nullable=False),
    Column("ended_at", String(40)),
)

NEWEST = (caller_calls.c.call_id, approvals.c.reading)
"""A store that lacks one of these columns is new, or of an earlier version."""
