"""Tokens: how long one lives, what is stored of it, what it is bound to, and the error for one that cannot be used."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from openai_responses_mcp.gate.approvals.models import ApprovalRecord, ApprovalStatus
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import digest, sealed

DEFAULT_LIFETIME_SECONDS = 900
LONGEST_LIFETIME_SECONDS = 10 * 365 * 24 * 3600
_LIFETIME_VARIABLE = "AGENTS_RESUME_TOKEN_TTL_SEC"
_MOST_DIGITS = 12


def lifetime_seconds(given: int | None, environ: Mapping[str, str]) -> int:
    """As given, else as the environment says."""
    if given is None:
        written = environ.get(_LIFETIME_VARIABLE)
        if written is None:
            return DEFAULT_LIFETIME_SECONDS
        given = _number_in(written.strip())
    if type(given) is not int or not 1 <= given <= LONGEST_LIFETIME_SECONDS:
        limits = f"from 1 to {LONGEST_LIFETIME_SECONDS}"
        message = f"resume_token_ttl_sec ({_LIFETIME_VARIABLE}) is a whole number of seconds {limits}"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
    return given


def _number_in(text: str) -> int:
    """0 if the text is not a number. Python refuses to read a number with thousands of digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else 0


def token_hash(token: str) -> str:
    return digest("token", token)


def seal(token: str, record: ApprovalRecord, status: ApprovalStatus, expires_at: str | None) -> str:
    request = record.request
    # A plain decision is sealed as in earlier versions, so that one from before an update still counts.
    more = [request.tell_model, request.changed_arguments]
    return sealed(
        token,
        request.run_id,
        request.tool_call_id,
        request.tool_name,
        record.pause_id,
        record.arguments_hash,
        record.definition_hash,
        record.state_hash,
        status,
        expires_at,
        *(more if any(one not in (False, None) for one in more) else ()),
    )


def bad_token(message: str, reason: str, **facts: object) -> AgentsError:
    return AgentsError("AGENTS-E-RESUME-TOKEN", message, details={"reason": reason, **facts})


def _new_id() -> str:
    return f"pause_{uuid.uuid4().hex}"


@dataclass(slots=True)
class Pause:
    """`state_hash` is of the run as it was saved. The records are stored when the pause is opened, all or none."""

    state_hash: str = ""
    pause_id: str = field(default_factory=_new_id)
    records: list[ApprovalRecord] = field(default_factory=list)
