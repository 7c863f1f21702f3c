"""What a policy would have decided about calls in the log.

The log shows the strictest voices of each decision and masked arguments. So a call is decided anew by the policy, by the
profile and by what the log shows of the other voices. Where a rule looks at a masked argument, both ways are followed,
and when they differ it cannot be told.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast, get_args

from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.audit.ports import ExecutionLogStore
from openai_responses_mcp.agents.calls import ToolDescription, ToolKind
from openai_responses_mcp.agents.gate.deciding import STRICTNESS, decide
from openai_responses_mcp.agents.gate.models import Decision, GateDecision
from openai_responses_mcp.agents.json_values import JsonValue
from openai_responses_mcp.agents.policy.fitting import RuledCall, fits, policy_name
from openai_responses_mcp.agents.policy.pointers import place_of, value_at
from openai_responses_mcp.agents.policy.ports import Paths, PolicyStore
from openai_responses_mcp.agents.policy.profiles import PolicyProfile
from openai_responses_mcp.agents.policy.rules import Policy, Rule
from openai_responses_mcp.agents.policy.ruling import Ruling
from openai_responses_mcp.domain.masking import MASK

_LABEL = re.compile(r"‹[^‹›]*›")
_OFFER = "hosted:"

_STANDING = "a standing approval allows it"

# The reasons that a policy replaces, in the words of `deciding` and `ruling`.
_OWN_VOICE = re.compile(
    r"risk [1-5] (needs a human under|is refused by) the profile \w+"
    r"|.* is outside the scopes of the profile \w+"
    r"|.* \(policy rule [0-9]+\)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded call that the policy would decide otherwise; `decision` is None where that cannot be told."""

    log: ExecutionLog
    decision: Decision | None
    reason: str


@dataclass(frozen=True, slots=True)
class Replay:
    """How many calls were looked at, and those of them that would be decided otherwise or cannot be told."""

    calls: int
    found: tuple[Replayed, ...]


async def replay(policy: Policy, profiles: PolicyStore, logs: ExecutionLogStore, paths: Paths) -> Replay:
    profile = policy.scoped(await profiles.get_profile(policy.profile_name()))
    calls = recorded_calls(await logs.query())
    found = [decided_otherwise(log, policy, profile, paths) for log in calls]
    return Replay(len(calls), tuple(one for one in found if one is not None))


def recorded_calls(logs: Iterable[ExecutionLog]) -> list[ExecutionLog]:
    """The decisions on calls. An offer of a tool that the provider runs is not a call."""
    return [
        log
        for log in logs
        if log.event == "decision"
        and log.decision in get_args(Decision)
        and log.tool_kind in get_args(ToolKind)
        and not log.tool_call_id.startswith(_OFFER)
    ]


def decided_otherwise(log: ExecutionLog, policy: Policy, profile: PolicyProfile, paths: Paths) -> Replayed | None:
    """None where the decision would be the recorded one."""
    outcomes = list(_outcomes(log, policy, profile, paths))
    decisions = {outcome.decision for outcome, _ in outcomes}
    if decisions == {log.decision}:
        return None
    if len(decisions) == 1:
        return Replayed(log, outcomes[0][0].decision, outcomes[0][0].reason)
    return Replayed(log, None, next(doubt for _, doubt in outcomes if doubt))


def _outcomes(
    log: ExecutionLog, policy: Policy, profile: PolicyProfile, paths: Paths
) -> Iterator[tuple[GateDecision, str]]:
    """Every decision that the masked arguments leave possible, with what could not be seen."""
    kind = cast(ToolKind, log.tool_kind)
    tool = ToolDescription(log.tool_name, kind, risk_level=log.risk_level)
    call = RuledCall(policy_name(kind, log.tool_name), log.arguments)
    for rule in policy.rules:
        hidden = [when.steps for when in rule.when if is_masked(value_at(when.steps, call.args))]
        seen = replace(rule, when=tuple(when for when in rule.when if when.steps not in hidden))
        if not fits(seen, call, paths):
            continue
        places = ", ".join(map(place_of, hidden))
        doubt = f"rule {rule.number} looks at {places}, which the log hides" if hidden else ""
        yield _decided(log, tool, profile, rule), doubt
        if not hidden:
            return
    yield _decided(log, tool, profile, None), ""


def _decided(log: ExecutionLog, tool: ToolDescription, profile: PolicyProfile, rule: Rule | None) -> GateDecision:
    ruling = Ruling.of(rule) if rule else None
    new = decide(tool, GateDecision("allow", 1, ""), profile, ruling=ruling)
    recorded = cast(Decision, log.decision)
    if new.decision == "needs_human" and _STANDING in log.reason:
        # The standing approval would answer again. Whether it has ended by then cannot be told.
        return replace(new, decision=recorded, reason=log.reason)
    if STRICTNESS[new.decision] < STRICTNESS[recorded] and _has_other_voices(log.reason):
        # The judge, the tool or the caller would say again what they said.
        return replace(new, decision=recorded, reason=log.reason)
    return replace(new, reason=new.reason or f"risk {new.risk_level} runs alone under the profile {profile.name}")


def _has_other_voices(reason: str) -> bool:
    return not all(_OWN_VOICE.fullmatch(part) for part in reason.split("; "))


def is_masked(value: JsonValue) -> bool:
    if isinstance(value, str):
        return MASK in value or _LABEL.search(value) is not None
    if isinstance(value, Mapping):
        return any(map(is_masked, (*value.keys(), *value.values())))
    return isinstance(value, list | tuple) and any(map(is_masked, value))
