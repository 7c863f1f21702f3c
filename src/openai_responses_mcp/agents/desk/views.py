"""What the page shows, as JSON: every text is one in which nothing is invisible, and nothing of it is ever markup."""

import json
from dataclasses import asdict

from openai_responses_mcp.agents.approvals.models import ResumeToken, StandingApproval
from openai_responses_mcp.agents.approvals.ports import ApprovalRecord
from openai_responses_mcp.agents.audit.models import ExecutionLog, LogVerification
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonObject, JsonValue
from openai_responses_mcp.domain.texts import revealed, revealed_json

View = dict[str, JsonValue]


def request_view(record: ApprovalRecord, agent_name: str) -> View:
    """All that a person needs to decide. `arguments` are whole, as JSON."""
    request = record.request
    return _revealed(
        {
            "approval_id": request.approval_id,
            "run_id": request.run_id,
            "agent_name": agent_name,
            "tool_name": request.tool_name,
            "tool_kind": request.tool_kind,
            "tool_description": request.tool_description,
            "definition_change": request.definition_change,
            "risk_level": request.risk_level,
            "reason": request.reason,
            "prompt": request.prompt,
            "status": request.status,
            "created_at": request.created_at,
            "can_change_arguments": record.parameters is not None,
        }
    ) | {"arguments": json_view(request.arguments)}


def record_view(log: ExecutionLog, *, is_unknown: bool) -> View:
    """One line of the log. A call of which no outcome is recorded says so."""
    return _revealed(
        {
            "sequence": log.sequence,
            "timestamp": log.timestamp,
            "run_id": log.run_id,
            "event": log.event,
            "decision": "outcome unknown" if is_unknown else log.decision,
            "tool_name": log.tool_name,
            "tool_kind": log.tool_kind,
            "why": log.comment or log.reason,
        }
    ) | {"arguments": json_view(log.arguments) if log.arguments else ""}


def verification_view(found: LogVerification) -> View:
    return _revealed(asdict(found))


def token_view(token: ResumeToken) -> View:
    """The same that a terminal shows: whoever decides has to pass it on."""
    return asdict(token)


def standing_view(standing: StandingApproval) -> View:
    return _revealed(
        {
            "standing_id": standing.standing_id,
            "tool_name": standing.tool_name,
            "tool_kind": standing.tool_kind,
            "made_in": standing.made_in,
            "created_at": standing.created_at,
            "expires_at": standing.expires_at,
            "is_for_session": standing.session_id is not None,
            "is_for_same_arguments": standing.arguments_hash is not None,
            "comment": standing.comment,
        }
    )


def error_view(error: AgentsError) -> View:
    return {"code": error.code, "message": revealed(error.message)}


def json_view(value: JsonObject) -> str:
    return revealed_json(json.dumps(value, ensure_ascii=False, indent=2))


def _revealed(facts: JsonObject) -> View:
    return {str(key): _revealed_value(value) for key, value in facts.items()}


def _revealed_value(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return revealed(value)
    if isinstance(value, list | tuple):
        return [_revealed_value(inner) for inner in value]
    return value
