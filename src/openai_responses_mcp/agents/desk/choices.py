"""What a person has chosen on the page, read strictly: whatever is not understood is refused as a whole."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from openai_responses_mcp.agents.approvals.models import HumanDecision
from openai_responses_mcp.agents.checks import LONGEST_ID, is_text, require
from openai_responses_mcp.agents.errors import AgentsError

MOST_CHOICES = 500

_KEYS = {"approval_id", "decision", "comment"}
_CODE = "AGENTS-E-APPROVAL-INVALID"


@dataclass(frozen=True, slots=True)
class Choice:
    approval_id: str
    decision: HumanDecision
    comment: str | None = None


def choices_in(body: object) -> list[Choice]:
    """The decisions of `{"decisions": [...]}`, one for each request. Raises `AGENTS-E-APPROVAL-INVALID`."""
    given = body.get("decisions") if isinstance(body, dict) and set(body) == {"decisions"} else None
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_CHOICES:
        raise AgentsError(_CODE, f"decisions is a list of 1 to {MOST_CHOICES} decisions")
    choices = [_choice(one) for one in given]
    is_once_each = len({choice.approval_id for choice in choices}) == len(choices)
    require(is_once_each, _CODE, "Each request is decided once")
    return choices


def _choice(given: object) -> Choice:
    if not isinstance(given, dict) or not set(given) <= _KEYS:
        raise AgentsError(_CODE, f"a decision has {', '.join(sorted(_KEYS))} and nothing else")
    approval_id, decision, comment = given.get("approval_id"), given.get("decision"), given.get("comment")
    if not is_text(approval_id) or len(cast(str, approval_id)) > LONGEST_ID:
        raise AgentsError(_CODE, f"approval_id has 1 to {LONGEST_ID} characters")
    require(decision in get_args(HumanDecision), _CODE, "decision is approve or deny")
    require(comment is None or isinstance(comment, str), _CODE, "comment is a text")
    return Choice(cast(str, approval_id), cast(HumanDecision, decision), comment)


def read_json(text: str | bytes) -> Any:
    """One way to read it, or none: a key twice, a number that JSON does not have and half a character are refused."""
    try:
        return json.loads(text, object_pairs_hook=_unambiguous, parse_constant=_refused)
    except (ValueError, RecursionError) as exc:
        raise AgentsError(_CODE, f"This is not JSON that can be read in one way: {exc}") from None


def _unambiguous(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is there twice")
    return made


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")
