"""Approving with changes: which arguments a human may give instead of the call's own, and how they are checked.

The approver sees a label for each secret (`‹OPENAI_API_KEY›`) and leaves it where it stands: there it becomes the
secret again when the run goes on. New arguments are stored until then, so they must not hold a new secret.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from openai_responses_mcp.gate.approvals.models import ApprovalRecord
from openai_responses_mcp.gate.audit.log import AuditEntry
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, differences
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import Masking

LONGEST_ARGUMENTS = 1_000_000

_LABEL = re.compile(r"‹[^‹›]*›")


async def checked_changes(
    record: ApprovalRecord, arguments: object, masking: Masking, schemas: SchemaChecker
) -> JsonObject | None:
    """The arguments as they are stored; None where nothing is changed. Raises `AGENTS-E-APPROVAL-INVALID`."""
    given, shown = _as_json(arguments), record.request.arguments
    if not differences(shown, given):
        return None
    if not record.parameters:
        raise _invalid("The arguments of this call cannot be changed: its tool has no schema to check them against")
    labels = {label for text in _texts(shown) for label in _LABEL.findall(text)}
    kept = {(place, text) for place, text in _places(shown)}
    for place, text in _places(given):
        if (place, text) not in kept and any(label in text for label in labels):
            raise _invalid(f"{place} holds the mark of a secret: leave such a text whole, and at its place")
    if masking.shown(given, record.parameters) != given:
        raise _invalid("New arguments are stored until the run goes on, and so must not hold a secret")
    if not any(_LABEL.search(text) for text in _texts(given)):
        # A label is not checked in place of its secret. That is done when the secret is back.
        problem = (await schemas.check(given, record.parameters)).problem
        if problem is not None:
            raise _invalid(f"The arguments do not fit the tool: {problem}")
    return given


def _as_json(arguments: object) -> JsonObject:
    """As they would come back from the store."""
    if not isinstance(arguments, Mapping):
        raise _invalid("arguments is an object with the names of the tool's arguments")
    try:
        text = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False)
        read: JsonObject = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise _invalid("arguments holds something that JSON has no word for") from None
    if len(text) > LONGEST_ARGUMENTS:
        raise _invalid(f"arguments may have {LONGEST_ARGUMENTS} characters as JSON")
    return read


def _places(value: JsonValue, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text with its place; a key is a text too."""
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


def _texts(value: JsonValue) -> Iterator[str]:
    return (text for _, text in _places(value))


def _invalid(message: str) -> AgentsError:
    return AgentsError("AGENTS-E-APPROVAL-INVALID", message)


def entry_about(
    record: ApprovalRecord, event: str, decision: str, comment: str, changed: JsonObject | None = None, who: str = ""
) -> AuditEntry:
    """`changed` are the arguments that a human gave instead of the request's. `who` asked, or decided."""
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
        reasons=request.reasons,
        arguments=request.arguments,
        comment=comment,
        who=who,
    )
    if changed is None:
        return entry
    change = differences(request.arguments, changed)
    return replace(entry, reasons=(), reason=f"a human changed the arguments:\n{change}", arguments=changed)
