"""The policy in force, applied to calls. A ruling is one voice among those of the gate."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from openai_responses_mcp.agents.calls import ToolDescription
from openai_responses_mcp.agents.json_values import JsonObject
from openai_responses_mcp.agents.policy.fitting import RuledCall, fits, policy_name
from openai_responses_mcp.agents.policy.ports import Paths, PolicySource
from openai_responses_mcp.agents.policy.rules import Choice, PathGlob, Policy, Rule

_SAYS: Mapping[Choice | None, str] = {
    "allow": "the policy file allows it",
    "ask": "the policy file asks for a human",
    "deny": "the policy file refuses it",
    None: "the policy file sets the risk",
}


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a rule says about a call: `decide`, instead of the profile's limits, or the `risk` that it sets."""

    decide: Choice | None
    risk: int | None
    reason: str

    @classmethod
    def of(cls, rule: Rule) -> "Ruling":
        return cls(rule.decide, rule.risk, f"{rule.reason or _SAYS[rule.decide]} (policy rule {rule.number})")


class PolicyRules:
    def __init__(self, source: PolicySource, paths: Paths) -> None:
        self._source = source
        self._paths = paths
        self._known = self._looked_up(source.current())

    @property
    def policy(self) -> Policy:
        policy = self._source.current()
        if policy is not self._known:
            self._known = self._looked_up(policy)
        return policy

    def _looked_up(self, policy: Policy) -> Policy:
        """Where its globs begin is looked up now, before any call could put a link there."""
        for glob in _path_globs(policy):
            self._paths.anchor(glob.folder, "")
        return policy

    def ruling(self, tool: ToolDescription, args: JsonObject) -> Ruling | None:
        """Of the first rule that fits; None where the profile decides."""
        call = RuledCall(policy_name(tool.kind, tool.name), args, tool.directory)
        fitting = (rule for rule in self.policy.rules if fits(rule, call, self._paths))
        return next(map(Ruling.of, fitting), None)


def _path_globs(policy: Policy) -> Iterator[PathGlob]:
    for rule in policy.rules:
        for when in rule.when:
            yield from (condition for condition in when.conditions if isinstance(condition, PathGlob))
