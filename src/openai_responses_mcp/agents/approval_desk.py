"""Approvals and the log of a store, without agents: what a terminal needs, and quick to open."""

import os

from openai_responses_mcp.agents.approvals import ApprovalController
from openai_responses_mcp.agents.audit import AuditLog
from openai_responses_mcp.agents.masking import Masking
from openai_responses_mcp.agents.stores import open_stores, ttl_seconds


def open_desk(store: str, audit_head: str | os.PathLike[str] | None = None) -> tuple[ApprovalController, AuditLog]:
    """Raises `AGENTS-E-RUNNER-CONFIG` for a store that is none."""
    stores = open_stores(store, audit_head)
    masking = Masking()
    # Somebody's decision that cannot be recorded must not count.
    audit = AuditLog(stores.logs, stores.clock, masking, "required", stores.head)
    return ApprovalController(stores.approvals, audit, stores.clock, masking, ttl_seconds(None)), audit
