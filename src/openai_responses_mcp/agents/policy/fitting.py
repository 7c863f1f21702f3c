"""How a rule fits a call.

A rule fits when one of its globs fits the tool's name and everything in its `when` holds. An argument that is missing
or of another type does not fit. If it is not clear which file a path means, only `deny` fits: doubt never lets a call
through.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import TypeGuard, get_args

from openai_responses_mcp.agents.calls import ToolKind
from openai_responses_mcp.agents.json_values import JsonObject
from openai_responses_mcp.agents.policy.path_globs import folded, is_below
from openai_responses_mcp.agents.policy.pointers import MISSING, value_at
from openai_responses_mcp.agents.policy.ports import Paths
from openai_responses_mcp.agents.policy.rules import AtMost, Condition, Matches, OneOf, PathGlob, Rule, TextGlob, When


@dataclass(frozen=True, slots=True)
class RuledCall:
    """A call as rules see it; relative paths in its arguments begin in `directory`."""

    tool: str
    args: JsonObject
    directory: str = ""


class Fit(Enum):
    YES = auto()
    NO = auto()
    DOUBT = auto()


def policy_name(kind: str, name: str) -> str:
    """What rules call a tool: `server/tool`, `function/name` or `skill/name`.

    A server with the name of a kind of tool is written `mcp/server/tool`, so that no rule for functions applies to it.
    """
    is_plain = kind == "mcp" and name.partition("/")[0] not in get_args(ToolKind)
    return name if is_plain else f"{kind}/{name}"


def fits(rule: Rule, call: RuledCall, paths: Paths) -> bool:
    if not names_tool(rule, call.tool):
        return False
    found = {fit_of(when, call, paths) for when in rule.when}
    return found <= {Fit.YES} or (rule.decide == "deny" and Fit.NO not in found)


def names_tool(rule: Rule, tool: str) -> bool:
    return any(fnmatchcase(tool, glob) for glob in rule.tools)


def fit_of(when: When, call: RuledCall, paths: Paths) -> Fit:
    value = value_at(when.steps, call.args)
    if value is MISSING:
        return Fit.NO
    found = {condition_fit(condition, value, call.directory, paths) for condition in when.conditions}
    if Fit.NO in found:
        return Fit.NO
    return Fit.YES if found == {Fit.YES} else Fit.DOUBT


def condition_fit(condition: Condition, value: object, directory: str, paths: Paths) -> Fit:
    if isinstance(condition, PathGlob):
        return _path_fit(condition, value, directory, paths) if isinstance(value, str) else Fit.NO
    return Fit.YES if _holds(condition, value) else Fit.NO


def _path_fit(glob: PathGlob, value: str, directory: str, paths: Paths) -> Fit:
    anchor, readings = paths.anchor(glob.folder, directory), paths.readings(value, directory)
    if anchor is None or not readings:
        return Fit.DOUBT
    found = {is_below(path, anchor, glob.rest) for path in readings}
    if found == {True}:
        return Fit.YES
    if paths.ignores_case:
        rest = [folded(name) for name in glob.rest]
        found |= {is_below(folded(path), folded(anchor), rest) for path in readings}
    return Fit.DOUBT if True in found else Fit.NO


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_json(one: object, other: object) -> bool:
    """As JSON compares: 1 is 1.0, and true is not 1."""
    if _is_number(one) and _is_number(other):
        return bool(one == other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return type(one) is type(other) and bool(one == other)


def _holds(condition: TextGlob | OneOf | Matches | AtMost, value: object) -> bool:
    match condition:
        case TextGlob():
            return isinstance(value, str) and fnmatchcase(value, condition.glob)
        case OneOf():
            return any(same_json(value, one) for one in condition.values)
        case Matches():
            return isinstance(value, str) and condition.is_match(value)
        case AtMost():
            return _is_number(value) and value <= condition.limit
