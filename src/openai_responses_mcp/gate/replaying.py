"""What a policy would have decided about calls in the log.

The log has the reasons of each decision, and masked arguments. So a call is decided again by the policy, by the
profile and by what the other voices said then. Where a rule looks at a masked argument, both ways are followed,
and when they differ the outcome is unknown.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast, get_args

from openai_responses_mcp.domain.masking import MASK
from openai_responses_mcp.gate.audit.records import ExecutionLog, ExecutionLogStore
from openai_responses_mcp.gate.calls import GateDecision, ToolDescription, ToolKind
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, texts_in, value_at
from openai_responses_mcp.gate.policy.fitting import RuledCall, place_of
from openai_responses_mcp.gate.policy.rules import PolicyProfile, PolicyStore
from openai_responses_mcp.gate.policy.ruling import PolicyRules, Ruling, ruling_by
from openai_responses_mcp.gate.reasons import OF_POLICY, Decision, Reason, in_old_words
from openai_responses_mcp.gate.safety_gate import STRICTNESS, decide
from openai_responses_mcp.gate.secrets.masking import LABEL

_OFFER = "hosted:"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded call that the policy would decide otherwise; `decision` is None where that is unknown."""

    log: ExecutionLog
    decision: Decision | None
    reason: str
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """The number of calls, and those that would be decided otherwise or whose outcome is unknown."""

    calls: int
    found: tuple[Replayed, ...]


async def replay(
    rules: PolicyRules, profiles: PolicyStore, logs: ExecutionLogStore, annotations: Mapping[str, JsonObject]
) -> Replay:
    """`annotations` are what MCP tools claim about themselves, by their names."""
    policy = rules.policy
    profile = policy.scoped(await profiles.get_profile(policy.profile_name()))
    calls = recorded_calls(await logs.query())
    found = [decided_otherwise(log, rules, profile, annotations.get(log.tool_name, {})) for log in calls]
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


def decided_otherwise(
    log: ExecutionLog, rules: PolicyRules, profile: PolicyProfile, annotations: JsonObject
) -> Replayed | None:
    """None where the decision would be the recorded one."""
    kind = cast(ToolKind, log.tool_kind)
    tool = ToolDescription(log.tool_name, kind, risk_level=log.risk_level, annotations=annotations)
    call = rules.call(tool, log.arguments)
    tool = rules.with_doubts(tool, log.arguments)
    outcomes = [(_decided(log, tool, profile, ruling), doubt) for ruling, doubt in possible_rulings(rules, call)]
    decisions = {outcome.decision for outcome, _ in outcomes}
    if decisions == {log.decision}:
        return None
    if len(decisions) == 1:
        outcome = outcomes[0][0]
        return Replayed(log, outcome.decision, outcome.reason, outcome.reasons)
    return Replayed(log, None, next(doubt for _, doubt in outcomes if doubt))


def possible_rulings(rules: PolicyRules, call: RuledCall) -> Iterator[tuple[Ruling | None, str | None]]:
    """Every ruling that the masked arguments of a recorded call leave possible, with what could not be seen."""
    for rule in rules.policy.rules:
        hidden = [when.steps for when in rule.when if is_masked(value_at(when.steps, call.args))]
        seen = replace(rule, when=tuple(when for when in rule.when if when.steps not in hidden))
        ruling = ruling_by(rule, rules.fit(seen, call))
        if ruling is None:
            continue
        places = ", ".join(map(place_of, hidden))
        yield ruling, f"rule {rule.number} looks at {places}, which the log hides" if hidden else None
        if not hidden:
            return
    yield None, None


def _decided(log: ExecutionLog, tool: ToolDescription, profile: PolicyProfile, ruling: Ruling | None) -> GateDecision:
    new = decide(tool, None, profile, ruling=ruling)
    recorded = log.reasons or tuple(in_old_words(log.reason, cast(Decision, log.decision)))
    if new.decision == "needs_human" and any(one.voice == "standing" for one in recorded):
        # The standing approval would answer again. Whether it has ended by then is unknown.
        return replace(new, decision=cast(Decision, log.decision), reason=log.reason)
    # The judge, the tool or the caller would say again what they said.
    others = [one for one in recorded if one.voice not in OF_POLICY and one.voice != "standing"]
    strictest = max([new.decision, *(one.says for one in others)], key=STRICTNESS.__getitem__)
    decided = GateDecision.because(strictest, new.risk_level, *new.reasons, *others)
    return replace(
        decided, reason=decided.reason or f"risk {new.risk_level} runs alone under the profile {profile.name}"
    )


def is_masked(value: JsonValue) -> bool:
    return any(MASK in text or LABEL.search(text) for text in texts_in(value))
