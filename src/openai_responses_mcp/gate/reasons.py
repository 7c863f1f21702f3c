"""Why the gate decided as it did, as data: one reason for each voice that spoke.

Reasons are stored and chained as they are. `sentences` makes words of them, last, where they are shown. Nothing reads a
reason back out of words, apart from `in_old_words`: the log of an earlier version holds sentences alone.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Literal, get_args

from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, OwnJson

Decision = Literal["allow", "deny", "needs_human"]

# Each with the facts that it refers to.
Voice = Literal[
    "profile",  # risk, profile; rule: the number of the rule that set the risk
    "scope",  # tool, profile
    "rule",  # rule: its number; text: the reason that the file gives; in_doubt: it is not clear which file is meant
    "judge",  # risk, text
    "tool",  # the tool itself asks for approval
    "caller",  # `require_human_approval`
    "definition",  # changed since it was approved
    "own_file",  # a path that leads to the policy file, the store or a client's configuration
    "command",  # another command runs under the name of the server
    "shown",  # the client was shown another definition than the guard
    "budget",  # most, unit, per
    "standing",  # standing_id, until, for_session, same_arguments
    "guardrail",  # code, message
    "failure",  # code, message: the gate could not decide
    "provider",  # profile: the provider runs the tool, call by call and unasked
    "observer",  # the guard only observes
    "schema",  # the schema cannot be checked here
    "result",  # hidden: how many secrets the client was not given; bytes, limit: of a result that it was not given
    "unreadable",  # text: stored by somebody else
]

OF_POLICY: Final = frozenset({"profile", "scope", "rule"})
"""The voices that a policy file replaces."""


@dataclass(frozen=True, slots=True)
class Reason:
    """What one voice says about a call, and what it refers to."""

    voice: Voice
    says: Decision
    about: JsonObject = field(default_factory=dict)

    def masked(self, mask: Callable[[str], str]) -> "Reason":
        texts = {name: mask(fact) if isinstance(fact, str) else fact for name, fact in self.about.items()}
        return replace(self, about=texts)


DEFINITION_CHANGED: Final = Reason("definition", "needs_human")
OWN_FILE: Final = Reason("own_file", "needs_human")


def is_new(reasons: Sequence[Reason], known: Sequence[Reason]) -> bool:
    """Whether a human is asked for a reason that is not among the known ones."""
    return any(reason.says == "needs_human" and reason not in known for reason in reasons)


# ---------------------------------------------------------------------------------------------------------------------
# As JSON


def as_json(reasons: Sequence[Reason]) -> list[JsonValue]:
    return [asdict(reason) for reason in reasons]


def as_text(reasons: Sequence[Reason]) -> str | None:
    """None without any, as in the records of earlier versions."""
    return json.dumps(as_json(reasons), ensure_ascii=False) if reasons else None


def from_text(text: str | None) -> tuple[Reason, ...]:
    """A voice of a later version is kept. What is no list of reasons was not written by us, and does not fit its hash."""
    if text is None:
        return ()
    try:
        return tuple(Reason(**_checked(one)) for one in json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return (Reason("unreadable", "deny", {"text": text}),)


def _checked(one: JsonValue) -> OwnJson:
    if not isinstance(one, dict) or one.keys() != {"voice", "says", "about"} or not isinstance(one["about"], dict):
        raise ValueError
    if not isinstance(one["voice"], str) or one["says"] not in get_args(Decision):
        raise ValueError
    return one


# ---------------------------------------------------------------------------------------------------------------------
# Records of earlier versions

_OLD_STANDING = re.compile(r"a standing approval allows it .*\((sta_\w+)\)", re.ASCII | re.DOTALL)
_OLD_POLICY = re.compile(
    r"risk [1-5] (needs a human under|is refused by) the profile \w+"
    r"|.* is outside the scopes of the profile \w+"
    r"|.* \(policy rule [0-9]+\)",
    re.DOTALL,
)


def in_old_words(text: str, decision: Decision) -> Iterator[Reason]:
    """The reasons in a sentence of an earlier version. Its words will not change any more."""
    for part in text.split("; "):
        if standing := _OLD_STANDING.fullmatch(part):
            yield Reason("standing", decision, {"standing_id": standing[1]})
        elif _OLD_POLICY.fullmatch(part):
            yield Reason("profile", decision)
        elif part or decision != "allow":
            yield Reason("judge", decision, {"text": part})
