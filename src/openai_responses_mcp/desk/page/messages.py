"""The log as calls, and the JSON that the page gets and sends.

Texts for the page have no invisible characters, and are never markup. What the page sends is read strictly: a body with
anything unknown is refused as a whole.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from openai_responses_mcp.desk.words import Words
from openai_responses_mcp.domain import jsonrpc
from openai_responses_mcp.domain.texts import Language, revealed
from openai_responses_mcp.gate.approvals.models import ApprovalRecord, HumanDecision, StandingApproval
from openai_responses_mcp.gate.approvals.standing import StandingTerms
from openai_responses_mcp.gate.audit.records import ExecutionLog, LogVerification
from openai_responses_mcp.gate.calls import GUARD_RUN
from openai_responses_mcp.gate.errors import LONGEST_ID, AgentsError, require
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, shown_json
from openai_responses_mcp.gate.reasons import reason_in_record, shown

Decided = Literal["allowed", "refused", "asked", "observed"]
DecidedBy = Literal["policy", "person", "standing", "client", "nobody"]

_NOT_BY_A_PERSON: Mapping[str, DecidedBy] = {"unasked": "client", "expired": "nobody", "withdrawn": "nobody"}
Outcome = Literal["done", "failed", "unknown", "waiting", "none"]


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """All records of one call, oldest first. Its number is the sequence number of the first."""

    records: tuple[ExecutionLog, ...]

    @property
    def number(self) -> int:
        return self.records[0].sequence

    @property
    def first(self) -> ExecutionLog:
        return self.records[0]

    @property
    def decided(self) -> Decided:
        approval = self._last("approval")
        if self._last("observed"):
            return "observed"
        if approval:
            return "allowed" if approval.decision == "approved" else "refused"
        if self._decision == "needs_human" or (not self._decision and self._last("approval_requested")):
            return "asked"
        return "allowed" if self._decision == "allow" else "refused"

    @property
    def by(self) -> DecidedBy:
        if approval := self._last("approval"):
            return _NOT_BY_A_PERSON.get(approval.decision, "person")
        return "standing" if self._last("standing_used") and self._decision == "allow" else "policy"

    @property
    def caller(self) -> str:
        """Who asked for the call, if known."""
        return "" if self.first.event == "approval" else self.first.who

    @property
    def who(self) -> str:
        """The name of the person who decided, if known."""
        approval = self._last("approval")
        return approval.who if approval and self.by == "person" else ""

    @property
    def outcome(self) -> Outcome:
        if end := self._last("outcome"):
            return "failed" if end.decision in ("failed", "error") else "done"
        if self._last("started"):
            return "unknown"
        return "waiting" if self.decided == "asked" else "none"

    @property
    def _decision(self) -> str:
        decision = self._last("decision")
        return decision.decision if decision else ""

    def _last(self, event: str) -> ExecutionLog | None:
        """The last record of this event. A second decision is recorded as `decision:2`."""
        return next((one for one in reversed(self.records) if one.event.partition(":")[0] == event), None)


def reason_of(log: ExecutionLog, language: Language) -> str:
    """The reason in the given language, or the text of the record if that says more."""
    for says in {one.says for one in log.reasons}:
        if reason_in_record(log.reasons, says) == log.reason:
            return shown(log.reasons, says, language)
    return log.reason


STEPS: Mapping[tuple[str, str], str] = {
    ("decision", "allow"): "allowed",
    ("decision", "deny"): "refused",
    ("decision", "needs_human"): "needs a person",
    ("observed", "allow"): "would be allowed",
    ("observed", "deny"): "would be refused",
    ("observed", "needs_human"): "would need a person",
    ("approval_requested", "pending"): "a person is asked",
    ("approval", "approved"): "approved",
    ("approval", "denied"): "denied",
    ("approval", "expired"): "not decided in time",
    ("approval", "withdrawn"): "withdrawn",
    ("approval", "unasked"): "no person was asked",
    ("standing_used", "allow"): "a standing approval is used",
    ("started", "started"): "started",
    ("outcome", "completed"): "completed",
    ("outcome", "failed"): "failed",
}


def step_of(log: ExecutionLog, words: Words) -> str:
    """What happened, in words. A record that has no words shows its fields."""
    says = STEPS.get((log.event.partition(":")[0], log.decision))
    return words(says) if says else f"{log.event}: {log.decision}"


def calls_in(logs: Iterable[ExecutionLog]) -> list[LoggedCall]:
    """Oldest first, without records that belong to no call."""
    found: dict[tuple[str, str], list[ExecutionLog]] = {}
    for log in logs:
        if log.tool_name and log.event not in ("standing_made", "standing_ended"):
            found.setdefault((log.run_id, log.tool_call_id), []).append(log)
    return [LoggedCall(tuple(records)) for records in found.values()]


# ---------------------------------------------------------------------------------------------------------------------
# Views

View = dict[str, JsonValue]

_LONG_TEXT = 120
_BEGINNING = 300


def request_view(record: ApprovalRecord, agent_name: str) -> View:
    """All that an approver needs. `arguments` are complete, as JSON."""
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
    ) | {
        "arguments": shown_json(request.arguments, indent=2),
        "parts": [_part(*one) for one in request.arguments.items()],
    }


def _part(name: str, value: JsonValue) -> View:
    """One argument: a long text with its line breaks, anything else as JSON."""
    shown: View = {"name": shown_json(str(name))}
    if isinstance(value, str) and ("\n" in value or len(value) > _LONG_TEXT):
        return shown | {
            "text": revealed(value),
            "lines": value.count("\n") + (not value.endswith("\n")),
            "characters": len(value),
        }
    return shown | {"json": shown_json(value, indent=2)}


def call_view(call: LoggedCall) -> View:
    """One line of the log, with the records behind it."""
    return {
        "number": call.number,
        "timestamp": call.first.timestamp,
        "tool_name": revealed(call.first.tool_name),
        "caller": revealed(call.caller),
        "run_id": revealed(call.first.run_id),
        "decided": call.decided,
        "by": call.by,
        "who": revealed(call.who),
        "outcome": call.outcome,
        "beginning": shown_json(call.first.arguments)[:_BEGINNING] if call.first.arguments else "",
        "arguments": shown_json(call.first.arguments, indent=2) if call.first.arguments else "",
        "records": [_record_view(log) for log in call.records],
    }


def _record_view(log: ExecutionLog) -> View:
    return _revealed(
        {
            "sequence": log.sequence,
            "timestamp": log.timestamp,
            "event": log.event,
            "decision": log.decision,
            "who": log.who,
            "says": {language: step_of(log, Words(language)) for language in get_args(Language)},
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


# ---------------------------------------------------------------------------------------------------------------------
# Decisions

MOST_CHOICES = 500

_KEYS = {"approval_id", "decision", "comment", "from_now_on", "tell_model", "arguments"}
_TERMS = {"for_seconds", "for_session", "always", "same_arguments", "reads"}
_CODE = "AGENTS-E-APPROVAL-INVALID"


@dataclass(frozen=True, slots=True)
class Choice:
    """An approval may cover later calls (`from_now_on`) or change `arguments`; a denial may be passed to the model."""

    approval_id: str
    decision: HumanDecision
    comment: str | None = None
    from_now_on: StandingTerms | None = None
    tell_model: bool = False
    arguments: JsonObject | None = None


def choices_in(body: JsonValue) -> list[Choice]:
    """The decisions of `{"decisions": [...]}`, one for each request. Raises `AGENTS-E-APPROVAL-INVALID`."""
    given = body.get("decisions") if isinstance(body, dict) and set(body) == {"decisions"} else None
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_CHOICES:
        raise AgentsError(_CODE, f"decisions is a list of 1 to {MOST_CHOICES} decisions")
    choices = [_choice(one) for one in given]
    is_once_each = len({choice.approval_id for choice in choices}) == len(choices)
    require(is_once_each, _CODE, "Each request is decided once")
    return choices


def _choice(given: JsonValue) -> Choice:
    if not isinstance(given, dict) or not set(given) <= _KEYS:
        raise AgentsError(_CODE, f"a decision has {', '.join(sorted(_KEYS))} and nothing else")
    decision, comment, tell_model = given.get("decision"), given.get("comment"), given.get("tell_model", False)
    terms, arguments = given.get("from_now_on"), given.get("arguments")
    require(decision in get_args(HumanDecision), _CODE, "decision is approve or deny")
    require(comment is None or isinstance(comment, str), _CODE, "comment is a text")
    require(isinstance(tell_model, bool), _CODE, "tell_model is true or false")
    require(terms is None or decision == "approve", _CODE, "from_now_on is for approvals")
    require(terms is None or arguments is None, _CODE, "What is changed is approved once, not from now on")
    return Choice(
        _id_in(given, "approval_id"),
        cast(HumanDecision, decision),
        comment,
        None if terms is None else _terms(terms),
        tell_model,
        None if arguments is None else _arguments(arguments),
    )


def _arguments(given: JsonValue) -> JsonObject:
    """Sent as text, so that it is parsed here, strictly."""
    read = read_json(given) if isinstance(given, str) else None
    if not isinstance(read, dict):
        raise AgentsError(_CODE, 'arguments is a JSON object, such as {"amount": 5}')
    return read


def _terms(given: JsonValue) -> StandingTerms:
    if not isinstance(given, dict) or not set(given) <= _TERMS:
        raise AgentsError(_CODE, f"from_now_on has {', '.join(sorted(_TERMS))} and nothing else")
    are_plain = all(isinstance(value, bool) for name, value in given.items() if name != "for_seconds")
    require(are_plain, _CODE, "for_session, always, same_arguments and reads are true or false")
    return StandingTerms(**given)


def revocation_in(body: JsonValue) -> str:
    """The id of `{"standing_id": ...}`. Raises `AGENTS-E-APPROVAL-INVALID`."""
    if not isinstance(body, dict) or set(body) != {"standing_id"}:
        raise AgentsError(_CODE, "a revocation has standing_id and nothing else")
    return _id_in(body, "standing_id")


def _id_in(given: JsonObject, name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_ID:
        raise AgentsError(_CODE, f"{name} has 1 to {LONGEST_ID} characters")
    return value


def read_json(text: str | bytes) -> JsonValue:
    try:
        read: JsonValue = jsonrpc.read_json(text)
    except jsonrpc.UnreadableJson as exc:
        raise AgentsError(_CODE, f"This is not JSON that can be read in one way: {exc}") from None
    return read
