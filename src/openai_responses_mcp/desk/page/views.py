"""What the page shows, as JSON: every text is one in which nothing is invisible, and nothing of it is ever markup."""

import json
from dataclasses import asdict
from typing import get_args

from openai_responses_mcp.desk.calls import LoggedCall, reason_of
from openai_responses_mcp.desk.words import Words
from openai_responses_mcp.domain.texts import revealed, revealed_json
from openai_responses_mcp.gate.approvals.models import ApprovalRecord, ResumeToken, StandingApproval
from openai_responses_mcp.gate.audit.records import ExecutionLog, LogVerification
from openai_responses_mcp.gate.calls import GUARD_RUN
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.sentences import Language, shown

View = dict[str, JsonValue]

_LONG_TEXT = 120
_BEGINNING = 300


def request_view(record: ApprovalRecord, agent_name: str) -> View:
    """All that a person needs to decide. `arguments` are whole, as JSON."""
    request = record.request
    return _revealed(
        {
            "approval_id": request.approval_id,
            "run_id": request.run_id,
            "agent_name": agent_name,
            "is_of_guard": request.run_id.startswith(GUARD_RUN),
            "tool_name": request.tool_name,
            "tool_kind": request.tool_kind,
            "tool_description": request.tool_description,
            "definition_change": request.definition_change,
            "risk_level": request.risk_level,
            "reason": request.reason,
            "why": {
                language: shown(request.reasons, "needs_human", language, otherwise=request.reason)
                for language in get_args(Language)
            },
            "prompt": request.prompt,
            "status": request.status,
            "created_at": request.created_at,
            "waits_until": record.waits_until,
            "can_change_arguments": record.parameters is not None,
            "reading_tools": list(record.reading),
        }
    ) | {"arguments": json_view(request.arguments), "parts": [_part(*one) for one in request.arguments.items()]}


def _part(name: str, value: JsonValue) -> View:
    """One argument: a long text with its line breaks, anything else as JSON."""
    shown: View = {"name": _json_line(str(name))}
    if isinstance(value, str) and ("\n" in value or len(value) > _LONG_TEXT):
        return shown | {
            "text": revealed(value),
            "lines": value.count("\n") + (not value.endswith("\n")),
            "characters": len(value),
        }
    return shown | {"json": revealed_json(json.dumps(value, ensure_ascii=False, indent=2))}


def _json_line(value: JsonValue) -> str:
    return revealed_json(json.dumps(value, ensure_ascii=False))


def call_view(call: LoggedCall) -> View:
    """One line of the log, with the records behind it."""
    return {
        "number": call.number,
        "timestamp": call.first.timestamp,
        "tool_name": revealed(call.first.tool_name),
        "run_id": revealed(call.first.run_id),
        "decided": call.decided,
        "by": call.by,
        "outcome": call.outcome,
        "beginning": _json_line(dict(call.first.arguments))[:_BEGINNING] if call.first.arguments else "",
        "arguments": json_view(call.first.arguments) if call.first.arguments else "",
        "records": [_record_view(log) for log in call.records],
    }


def _record_view(log: ExecutionLog) -> View:
    return _revealed(
        {
            "sequence": log.sequence,
            "timestamp": log.timestamp,
            "event": log.event,
            "decision": log.decision,
            "why": {language: log.comment or reason_of(log, language) for language in get_args(Language)},
        }
    )


def verification_view(found: LogVerification) -> View:
    def said(words: Words) -> View:
        return {
            "findings": list(map(words.of, found.findings)),
            "accepted": list(map(words.of, found.accepted)),
            "uncovered": words.of(found.uncovered),
        }

    says = {language: said(Words(language)) for language in get_args(Language)}
    return _revealed({"is_intact": found.is_intact, "records": found.records, "says": says})


def token_view(token: ResumeToken) -> View:
    """The same that a terminal shows: the approver has to pass it on."""
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
    says = {language: revealed(Words(language).of(error.message)) for language in get_args(Language)}
    return {"code": error.code, "message": says["en"], "says": says}


def json_view(value: JsonObject) -> str:
    return revealed_json(json.dumps(value, ensure_ascii=False, indent=2))


def _revealed(facts: JsonObject) -> View:
    return {str(key): _revealed_value(value) for key, value in facts.items()}


def _revealed_value(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return revealed(value)
    if isinstance(value, list | tuple):
        return [_revealed_value(inner) for inner in value]
    if isinstance(value, dict):
        return _revealed(value)
    return value
