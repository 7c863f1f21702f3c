"""The parts of a decision: changed arguments, the audit record, and the token that resumes the run.

The approver sees a label in place of each secret (`‹OPENAI_API_KEY›`) and must leave it there: it becomes the secret
again when the run resumes. Changed arguments are stored until then, so they must not contain a new secret.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.approvals.models import ApprovalRecord, ApprovalStatus
from openai_responses_mcp.gate.audit.log import AuditEntry
from openai_responses_mcp.gate.errors import LONGEST_TEXT, AgentsError, config_error, is_short_text
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, differences, digest, sealed, texts_in
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import LABEL, Masking

LONGEST_ARGUMENTS = 1_000_000
DEFAULT_LIFETIME_SECONDS = 900
LONGEST_LIFETIME_SECONDS = 10 * 365 * 24 * 3600
_LIFETIME_VARIABLE = "AGENTS_RESUME_TOKEN_TTL_SEC"
_MOST_DIGITS = 12


async def checked_changes(
    record: ApprovalRecord, arguments: object, masking: Masking, schemas: SchemaChecker
) -> JsonObject | None:
    """The approver's arguments, checked; None if they change nothing. Raises `AGENTS-E-APPROVAL-INVALID`."""
    given, shown = _as_json(arguments), record.request.arguments
    if not differences(shown, given):
        return None
    if not record.parameters:
        raise _invalid(
            Sentence("The arguments of this call cannot be changed: its tool has no schema to check them against")
        )
    labels = {label for text in texts_in(shown) for label in LABEL.findall(text)}
    kept = set(_places(shown))
    for place, text in _places(given):
        if (place, text) not in kept and any(label in text for label in labels):
            raise _invalid(
                Sentence(
                    "{place} contains the label of a secret: leave that text unchanged and in its place", place=place
                )
            )
    if masking.shown(given, record.parameters) != given:
        raise _invalid(Sentence("New arguments are stored until the run resumes, so they must not contain a secret"))
    if not any(LABEL.search(text) for text in texts_in(given)):
        # The schema is meant for the secret, not for its label. It is checked once the secret is back.
        problem = (await schemas.check(given, record.parameters)).problem
        if problem is not None:
            raise _invalid(Sentence("The arguments do not fit the tool: {problem}", problem=problem))
    return given


def _as_json(arguments: object) -> JsonObject:
    """The arguments after a round trip through JSON, as the store would return them."""
    if not isinstance(arguments, Mapping):
        raise _invalid(Sentence("arguments must be an object that maps the tool's argument names to values"))
    try:
        text = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False)
        read: JsonObject = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise _invalid(Sentence("arguments contains a value that JSON cannot express")) from None
    if len(text) > LONGEST_ARGUMENTS:
        raise _invalid(Sentence("arguments may have at most {most} characters as JSON", most=LONGEST_ARGUMENTS))
    return read


def _places(value: JsonValue, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text with its path. Keys count as texts."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            inside = f"{place}.{key}" if place else str(key)
            yield inside, str(key)
            yield from _places(inner, inside)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _places(inner, f"{place}[{number}]")


def check_comment(comment: str | None) -> None:
    """Raises `AGENTS-E-APPROVAL-INVALID` for a comment that is too long, or no text."""
    if comment is not None and not is_short_text(comment):
        raise _invalid(Sentence("comment is a text of up to {most} characters", most=LONGEST_TEXT))


def _invalid(message: str) -> AgentsError:
    return AgentsError("AGENTS-E-APPROVAL-INVALID", message)


def entry_about(
    record: ApprovalRecord, event: str, decision: str, comment: str, who: str, changed: JsonObject | None = None
) -> AuditEntry:
    """The audit record of a request or a decision. `changed` holds the approver's arguments; `who` asked or decided."""
    request, reason, reasons = record.request, record.request.reason, record.request.reasons
    if changed is not None:
        reason, reasons = f"a human changed the arguments:\n{differences(request.arguments, changed)}", ()
    return AuditEntry(
        run_id=request.run_id,
        tool_call_id=request.tool_call_id,
        event=event if record.attempt == 1 else f"{event}:{record.attempt}",
        decision=decision,
        tool_name=request.tool_name,
        tool_kind=request.tool_kind,
        risk_level=request.risk_level,
        reason=reason,
        reasons=reasons,
        arguments=request.arguments if changed is None else changed,
        comment=comment,
        who=who,
    )


# ---------------------------------------------------------------------------------------------------------------------
# Tokens


def lifetime_seconds(given: int | None, environ: Mapping[str, str]) -> int:
    """The given lifetime of a token, else the environment's, else the default. Raises `AGENTS-E-RUNNER-CONFIG`."""
    if given is None:
        written = environ.get(_LIFETIME_VARIABLE)
        if written is None:
            return DEFAULT_LIFETIME_SECONDS
        digits = written.strip()
        # Python refuses to read a number with thousands of digits.
        given = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else 0
    if type(given) is not int or not 1 <= given <= LONGEST_LIFETIME_SECONDS:
        message = Sentence(
            "resume_token_ttl_sec ({variable}) is a whole number of seconds from 1 to {most}",
            variable=_LIFETIME_VARIABLE,
            most=LONGEST_LIFETIME_SECONDS,
        )
        raise config_error(message)
    return given


def token_hash(token: str) -> str:
    return digest("token", token)


def seal(token: str, record: ApprovalRecord, status: ApprovalStatus, expires_at: str | None) -> str:
    request = record.request
    # A plain decision is sealed as in earlier versions, so that decisions from before an update stay valid.
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


@dataclass(slots=True)
class Pause:
    """Calls that wait together. `state_hash` is the hash of the saved run. All records are stored at once, or none."""

    state_hash: str = ""
    pause_id: str = field(default_factory=lambda: f"pause_{uuid.uuid4().hex}")
    records: list[ApprovalRecord] = field(default_factory=list)
