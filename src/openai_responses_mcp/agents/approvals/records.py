"""What the log is told about a request and its decision."""

from dataclasses import replace

from openai_responses_mcp.agents.approvals.ports import ApprovalRecord
from openai_responses_mcp.agents.audit.log import AuditEntry
from openai_responses_mcp.agents.json_values import JsonObject
from openai_responses_mcp.agents.schemas.differences import differences


def entry_about(
    record: ApprovalRecord, event: str, decision: str, comment: str, changed: JsonObject | None = None
) -> AuditEntry:
    """`changed` are the arguments that a human gave instead of the request's."""
    request = record.request
    entry = AuditEntry(
        run_id=request.run_id,
        tool_call_id=request.tool_call_id,
        event=event if record.attempt == 1 else f"{event}:{record.attempt}",
        decision=decision,
        tool_name=request.tool_name,
        tool_kind=request.tool_kind,
        risk_level=request.risk_level,
        reason=request.reason,
        arguments=request.arguments,
        comment=comment,
    )
    if changed is None:
        return entry
    change = differences(request.arguments, changed)
    return replace(entry, reason=f"a human changed the arguments:\n{change}", arguments=changed)
