"""What a person has chosen on the page, read strictly: whatever is not understood is refused as a whole."""

from dataclasses import dataclass
from typing import cast, get_args

from openai_responses_mcp.domain import strict_json
from openai_responses_mcp.gate.approvals.models import HumanDecision
from openai_responses_mcp.gate.approvals.standing import StandingTerms
from openai_responses_mcp.gate.errors import LONGEST_ID, AgentsError, require
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue

MOST_CHOICES = 500

_KEYS = {"approval_id", "decision", "comment", "from_now_on", "tell_model", "arguments"}
_TERMS = {"for_seconds", "for_session", "always", "same_arguments", "reads"}
_CODE = "AGENTS-E-APPROVAL-INVALID"


@dataclass(frozen=True, slots=True)
class Choice:
    """An approval may hold for later calls (`from_now_on`) or other `arguments`; a denial may be passed to the model."""

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
    """As a text, so that it is read here and in one way."""
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
        read: JsonValue = strict_json.read_json(text)
    except strict_json.UnreadableJson as exc:
        raise AgentsError(_CODE, f"This is not JSON that can be read in one way: {exc}") from None
    return read
