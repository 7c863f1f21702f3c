"""The gate. `decide` is the whole rule: strictest wins, among scope, risk, verdict and what tool and caller demand.

| from                      | allow                 | needs_human                | deny                    |
| scopes of the profile     | one matches           |                            | none matches            |
| risk level                | up to `allow_up_to`   | in between                 | from `refuse_from`      |
| or a rule's `decide`      | `allow`               | `ask`                      | `deny`                  |
| the judge                 | as it says            | as it says                 | as it says              |
| the tool's own demand     |                       | `require_approval`         |                         |
| doubts about the tool     |                       | one, such as a new definition |                      |
| the caller's demand       |                       | `require_human_approval`   |                         |
| a budget                  |                       | is used up                 |                         |

The risk level is the greater of the tool's own and the verdict's. A rule of the policy file replaces either the vote of
the risk level or the tool's own risk. A standing approval answers for a human where the risk level, a rule's `ask` or
the tool's own demand asks, unless there is a doubt about the tool. It answers nothing else, and lifts no refusal.
`SafetyGate` asks the judge and fails closed.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from openai_responses_mcp.gate.calls import GateDecision, ToolDescription
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.policy.rules import PolicyProfile, RuleDecision
from openai_responses_mcp.gate.policy.ruling import Ruling
from openai_responses_mcp.gate.reasons import Decision, Reason

STRICTNESS: dict[Decision, int] = {"allow": 0, "needs_human": 1, "deny": 2}
_CHOICES: dict[RuleDecision, Decision] = {"allow": "allow", "ask": "needs_human", "deny": "deny"}


def is_in_scope(tool: ToolDescription, profile: PolicyProfile) -> bool:
    return any(fnmatchcase(tool.scope_name, scope) for scope in profile.allowed_tool_scopes)


def decide(
    tool: ToolDescription,
    verdict: GateDecision | None,
    profile: PolicyProfile,
    *,
    ruling: Ruling | None = None,
    require_human_approval: bool = False,
    over_budget: Sequence[Reason] = (),
    standing: Reason | None = None,
) -> GateDecision:
    """Allow, deny or ask a human, with the reasons of every voice.

    `verdict` is None if the judge was not asked. `over_budget` names the budgets that are used up, `standing` the
    standing approval that allows the call.
    """
    own_risk = ruling.risk if ruling and ruling.risk else tool.own_risk
    risk = max(own_risk, verdict.risk_level) if verdict else own_risk
    # A judge that allows without a word has nothing to record.
    voices = [_of_judge(verdict)] if verdict and (verdict.reason or verdict.decision != "allow") else []
    if not is_in_scope(tool, profile):
        voices.append(Reason("scope", "deny", {"tool": tool.scope_name, "profile": profile.name}))
    answerable = [_of_rule(ruling, ruling.decide) if ruling and ruling.decide else _of_profile(risk, profile, ruling)]
    if tool.require_approval and not tool.doubts:
        answerable.append(Reason("tool", "needs_human"))
    voices += [standing if standing and one.says == "needs_human" else one for one in answerable]
    voices += tool.doubts
    if require_human_approval:
        voices.append(Reason("caller", "needs_human"))
    voices += over_budget
    strictest = max((voice.says for voice in voices), key=STRICTNESS.__getitem__)
    return GateDecision.because(strictest, risk, *_once(voices))


def _once(voices: Sequence[Reason]) -> list[Reason]:
    return [voice for place, voice in enumerate(voices) if voice not in voices[:place]]


def _of_judge(verdict: GateDecision) -> Reason:
    return Reason("judge", verdict.decision, {"risk": verdict.risk_level, "text": verdict.reason})


def _of_rule(ruling: Ruling, choice: RuleDecision) -> Reason:
    about: JsonObject = {"rule": ruling.rule, "text": ruling.text}
    return Reason("rule", _CHOICES[choice], {**about, "in_doubt": True} if ruling.in_doubt else about)


def _of_profile(risk: int, profile: PolicyProfile, ruling: Ruling | None) -> Reason:
    says: Decision = "allow"
    if risk > profile.allow_up_to:
        says = "deny" if risk >= profile.refuse_from else "needs_human"
    return Reason("profile", says, {"risk": risk, "profile": profile.name, **({"rule": ruling.rule} if ruling else {})})
