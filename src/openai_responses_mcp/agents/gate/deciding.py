"""The gate. `decide` is the whole rule: strictest wins, among scope, risk, verdict and what tool and caller demand.

| from                      | allow                 | needs_human                | deny                    |
| scopes of the profile     | one matches           |                            | none matches            |
| risk level                | up to `allow_up_to`   | in between                 | from `refuse_from`      |
| or a rule's `decide`      | `allow`               | `ask`                      | `deny`                  |
| the judge                 | as it says            | as it says                 | as it says              |
| the tool's own demand     |                       | `require_approval`         |                         |
| the caller's demand       |                       | `require_human_approval`   |                         |
| a budget                  |                       | is used up                 |                         |

The risk level is the greater of the tool's own and the verdict's. A rule of the policy file replaces either the vote of
the risk level or the tool's own risk. A standing approval answers for a human where the risk level, a rule's `ask` or
the tool's own demand asks, unless the tool's definition has changed. It answers nothing else, and lifts no refusal.
`SafetyGate` asks the judge and fails closed.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from openai_responses_mcp.agents.calls import ToolDescription
from openai_responses_mcp.agents.gate.models import Decision, GateDecision
from openai_responses_mcp.agents.policy.profiles import PolicyProfile
from openai_responses_mcp.agents.policy.rules import Choice
from openai_responses_mcp.agents.policy.ruling import Ruling

_Vote = tuple[Decision, str]

STRICTNESS: dict[Decision, int] = {"allow": 0, "needs_human": 1, "deny": 2}
_CHOICES: dict[Choice, Decision] = {"allow": "allow", "ask": "needs_human", "deny": "deny"}


def is_in_scope(tool: ToolDescription, profile: PolicyProfile) -> bool:
    return any(fnmatchcase(tool.scope_name, scope) for scope in profile.allowed_tool_scopes)


def decide(
    tool: ToolDescription,
    verdict: GateDecision,
    profile: PolicyProfile,
    *,
    ruling: Ruling | None = None,
    require_human_approval: bool = False,
    over_budget: str = "",
    standing: str | None = None,
) -> GateDecision:
    """Allow, deny or ask a human, with every reason that led there.

    `over_budget` says which budget is used up, `standing` why a standing approval allows the call.
    """
    own_risk = ruling.risk if ruling and ruling.risk else tool.own_risk
    risk = max(own_risk, verdict.risk_level)
    votes: list[_Vote] = [(verdict.decision, verdict.reason)]
    if not is_in_scope(tool, profile):
        votes.append(("deny", f"{tool.scope_name} is outside the scopes of the profile {profile.name}"))
    answerable = [
        (_CHOICES[ruling.decide], ruling.reason) if ruling and ruling.decide else _vote_on_risk(risk, profile)
    ]
    if tool.require_approval and not tool.definition_change:
        answerable.append(("needs_human", tool.approval_reason))
    votes += answerable if standing is None else _answered(answerable, standing)
    if tool.require_approval and tool.definition_change:
        votes.append(("needs_human", tool.approval_reason))
    if require_human_approval:
        votes.append(("needs_human", "the caller asks for approval"))
    if over_budget:
        votes.append(("needs_human", over_budget))
    strictest = max((decision for decision, _ in votes), key=STRICTNESS.__getitem__)
    reasons = dict.fromkeys(reason for decision, reason in votes if decision == strictest and reason)
    return GateDecision(strictest, risk, "; ".join(reasons))


def _answered(votes: Sequence[_Vote], standing: str) -> list[_Vote]:
    return [("allow", standing) if decision == "needs_human" else (decision, reason) for decision, reason in votes]


def _vote_on_risk(risk: int, profile: PolicyProfile) -> tuple[Decision, str]:
    if risk >= profile.refuse_from:
        return "deny", f"risk {risk} is refused by the profile {profile.name}"
    if risk > profile.allow_up_to:
        return "needs_human", f"risk {risk} needs a human under the profile {profile.name}"
    return "allow", ""
