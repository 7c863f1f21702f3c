"""Rules of a policy that can never apply, and why: an earlier one is always first, or no argument can fit."""

from collections.abc import Iterator, Sequence

from openai_responses_mcp.agents.policy.fitting import Fit, condition_fit
from openai_responses_mcp.agents.policy.glob_cover import NAMES_OF_TOOLS, is_covered
from openai_responses_mcp.agents.policy.pointers import place_of
from openai_responses_mcp.agents.policy.ports import Paths
from openai_responses_mcp.agents.policy.rules import AtMost, Matches, OneOf, PathGlob, Policy, Rule, When


def rules_that_never_apply(policy: Policy, paths: Paths) -> Iterator[tuple[Rule, str]]:
    for place, rule in enumerate(policy.rules):
        reason = _impossible(rule, paths) or _shadowed(rule, policy.rules[:place])
        if reason:
            yield rule, reason


def _impossible(rule: Rule, paths: Paths) -> str:
    for when in rule.when:
        if _is_impossible(when, paths):
            return f"no value of {place_of(when.steps)} can fit all that its when asks for"
    return ""


def _is_impossible(when: When, paths: Paths) -> bool:
    lists = [condition for condition in when.conditions if isinstance(condition, OneOf)]
    if not lists:
        kinds = {type(condition) for condition in when.conditions}
        return {AtMost, Matches} <= kinds  # a number and a text
    return not any(_holds(when, value, paths) for value in lists[0].values)


def _holds(when: When, value: object, paths: Paths) -> bool:
    return all(condition_fit(condition, value, "", paths) is Fit.YES for condition in when.conditions)


def _shadowed(rule: Rule, earlier: Sequence[Rule]) -> str:
    before = [one for one in earlier if _asks_no_more(one, rule)]
    for one in before:
        if _covers([one], rule):
            return f"rule {one.number} always comes first"
    if not _covers(before, rule):
        return ""
    for one in tuple(before):
        without = [other for other in before if other is not one]
        before = without if _covers(without, rule) else before
    return f"rules {', '.join(str(one.number) for one in before)} together always come first"


def _covers(rules: Sequence[Rule], rule: Rule) -> bool:
    globs = [glob for one in rules for glob in one.tools]
    return all(is_covered([glob, NAMES_OF_TOOLS], globs) for glob in rule.tools)


def _asks_no_more(one: Rule, rule: Rule) -> bool:
    """Whether the first fits every call of its tools that the second fits."""
    # As they are written: to Python, the values 1 and true are equal.
    asked, known = {repr(when) for when in one.when}, {repr(when) for when in rule.when}
    if not asked <= known:
        return False
    # If it is not clear where a path leads, it fits rules that deny, and no others.
    return one.decide == "deny" or rule.decide != "deny" or not any(map(_has_path, one.when))


def _has_path(when: When) -> bool:
    return any(isinstance(condition, PathGlob) for condition in when.conditions)
