"""How a rule fits a call.

A rule fits when one of its globs fits the tool's name, the tool claims what the rule says, and everything in its `when`
holds. An argument that is missing or of another type does not fit. If it is not clear which file a path means, the
answer is doubt, and what to do about that is up to `ruling`.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import get_args

from openai_responses_mcp.gate.calls import ToolDescription, ToolKind
from openai_responses_mcp.gate.json_values import MISSING, JsonObject, is_number, pointer_steps, value_at
from openai_responses_mcp.gate.policy.rules import (
    AtMost,
    Claim,
    Condition,
    Elements,
    Matches,
    Missing,
    Not,
    OneGlobOf,
    OneOf,
    PathGlob,
    Paths,
    Rule,
    TextGlob,
    When,
)


class Fit(IntEnum):
    """From no to yes. `OTHER_TYPE` is a no that `not` does not turn into a yes."""

    OTHER_TYPE = 0
    NO = 1
    DOUBT = 2
    YES = 3


@dataclass(frozen=True, slots=True)
class RuledCall:
    """A call as rules see it. `names` are the tool's; a rule needs to fit one of them.

    `base` is the folder where relative globs begin, and `relative_to` where the server reads relative paths from; None
    stands for unknown.
    """

    names: tuple[str, ...]
    args: JsonObject
    claims: frozenset[Claim] = frozenset()
    base: str = ""
    relative_to: str | None = None


def policy_name(kind: str, name: str) -> str:
    """What rules call a tool: `server/tool`, `function/name` or `skill/name`.

    A server with the name of a kind of tool is written `mcp/server/tool`, so that no rule for functions applies to it.
    """
    is_plain = kind == "mcp" and name.partition("/")[0] not in get_args(ToolKind)
    return name if is_plain else f"{kind}/{name}"


def server_of(tool: ToolDescription) -> str:
    """As `relative_to` names it: what stands before the tool's own name in rules."""
    return policy_name("mcp", tool.name.partition("/")[0]) if tool.kind == "mcp" else tool.kind


def claims_of(annotations: JsonObject) -> frozenset[Claim]:
    """What an MCP tool says about itself. A tool that says nothing may destroy, as MCP has it."""
    if annotations.get("readOnlyHint") is True:
        return frozenset({"reads"})
    return frozenset({"writes"} if annotations.get("destructiveHint") is False else {"writes", "destroys"})


def names_tool(rule: Rule, names: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in rule.tools for name in names)


def covers_tool(rule: Rule, call: RuledCall) -> bool:
    """Whether the rule is about this tool, whatever its arguments."""
    return names_tool(rule, call.names) and (rule.claims is None or rule.claims in call.claims)


def fit_of(rule: Rule, call: RuledCall, paths: Paths) -> Fit:
    if not covers_tool(rule, call):
        return Fit.NO
    return min((when_fit(when, call, paths) for when in rule.when), default=Fit.YES)


def when_fit(when: When, call: RuledCall, paths: Paths) -> Fit:
    return _all_fit(when.conditions, value_at(when.steps, call.args), call, paths)


# ---------------------------------------------------------------------------------------------------------------------
# Conditions


def _all_fit(conditions: Iterable[Condition], value: object, call: RuledCall, paths: Paths) -> Fit:
    return min(condition_fit(condition, value, call, paths) for condition in conditions)


def condition_fit(condition: Condition, value: object, call: RuledCall, paths: Paths) -> Fit:
    if isinstance(condition, Missing):
        return Fit.YES if value is MISSING else Fit.NO
    if value is MISSING:
        return Fit.OTHER_TYPE
    match condition:
        case Not():
            return _NEGATED[_all_fit(condition.conditions, value, call, paths)]
        case Elements():
            if not isinstance(value, list | tuple):
                return Fit.OTHER_TYPE
            found = [_all_fit(condition.conditions, one, call, paths) for one in value]
            # An empty list fits neither. An element of another type is one that does not fit.
            return max((min if condition.every else max)(found, default=Fit.NO), Fit.NO)
        case OneGlobOf():
            return max(condition_fit(glob, value, call, paths) for glob in condition.globs)
        case OneOf():
            if _type_of(value) not in map(_type_of, condition.values):
                return Fit.OTHER_TYPE
            return _yes_or_no(any(same_json(value, one) for one in condition.values))
        case AtMost():
            return _yes_or_no(value <= condition.limit) if is_number(value) else Fit.OTHER_TYPE
    if not isinstance(value, str):
        return Fit.OTHER_TYPE
    match condition:
        case PathGlob():
            return _path_fit(condition, value, call, paths)
        case TextGlob():
            return _yes_or_no(fnmatchcase(value, condition.glob))
        case Matches():
            return _yes_or_no(condition.is_match(value))


_NEGATED = {Fit.OTHER_TYPE: Fit.OTHER_TYPE, Fit.NO: Fit.YES, Fit.DOUBT: Fit.DOUBT, Fit.YES: Fit.NO}


def _yes_or_no(holds: bool) -> Fit:
    return Fit.YES if holds else Fit.NO


def _type_of(value: object) -> type:
    """The type in JSON."""
    if is_number(value):
        return float
    if isinstance(value, Mapping):
        return dict
    return list if isinstance(value, list | tuple) else type(value)


def same_json(one: object, other: object) -> bool:
    """As JSON compares: 1 is 1.0, and true is not 1."""
    if is_number(one) and is_number(other):
        return bool(one == other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return type(one) is type(other) and bool(one == other)


# ---------------------------------------------------------------------------------------------------------------------
# JSON pointers (RFC 6901)

_BAD_ESCAPE = re.compile(r"~(?![01])")


def steps_of(place: str) -> tuple[str, ...]:
    """From a pointer or the name of an argument. Raises ValueError."""
    if not place:
        raise ValueError("is the name of an argument or a JSON pointer such as /options/depth")
    if not place.startswith("/"):
        return (place,)
    if _BAD_ESCAPE.search(place):
        raise ValueError("is not a JSON pointer: ~ is written ~0 there, and / inside a name ~1")
    return tuple(pointer_steps(place))


def place_of(steps: tuple[str, ...]) -> str:
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)


# ---------------------------------------------------------------------------------------------------------------------
# Globs on paths. A glob is cut in two: a folder, which is looked up like any path, and the names below it.


def is_glob(text: str) -> bool:
    return not frozenset("*?[").isdisjoint(text)


def glob_from(text: str) -> TextGlob | PathGlob:
    """A glob with `/` in it or `~` before it is a path. Raises ValueError."""
    if "/" not in text and not text.startswith("~"):
        return TextGlob(text)
    if "://" in text:
        raise ValueError("is an address and would be read as a path; write {matches: …} for it")
    if text.startswith("~") and text[1:2] not in ("", "/"):
        raise ValueError("begins with ~, which stands for your home folder and needs a / after it")
    names = [name for name in text.split("/") if name not in ("", ".")]
    place = next((place for place, name in enumerate(names) if is_glob(name)), len(names))
    rest = tuple(names[place:])
    if ".." in rest:
        raise ValueError("has .. after a wildcard; write where that leads to")
    if any("**" in name and name != "**" for name in rest):
        raise ValueError("has ** beside other characters; ** stands alone between slashes")
    root = "/" if text.startswith("/") else ""
    return PathGlob(root + "/".join(names[:place]), rest)


def _path_fit(glob: PathGlob, value: str, call: RuledCall, paths: Paths) -> Fit:
    anchor, path = paths.anchor(glob.folder, call.base), paths.resolved(value, call.relative_to)
    if anchor is None or path is None:
        return Fit.DOUBT
    if is_below(path, anchor, glob.rest):
        return Fit.YES
    rest = [folded(name) for name in glob.rest]
    is_alike = paths.ignores_case and is_below(folded(path), folded(anchor), rest)
    return Fit.DOUBT if is_alike else Fit.NO


def is_below(path: str, anchor: str, rest: Sequence[str]) -> bool:
    """Whether the path leads from the anchor on through names that fit."""
    names, start = _names(path), _names(anchor)
    return names[: len(start)] == start and _names_fit(names[len(start) :], rest)


def folded(path: str) -> str:
    """One spelling for all that a file system which ignores case may take for the same name."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _names_fit(names: Sequence[str], globs: Sequence[str]) -> bool:
    """Only the last `**` has ever to be tried again, so the time is bounded by the product of both lengths."""
    at, glob_at, star_at, retry_at = 0, 0, -1, 0
    while at < len(names):
        if glob_at < len(globs) and globs[glob_at] == "**":
            star_at, retry_at = glob_at, at
            glob_at += 1
        elif glob_at < len(globs) and fnmatchcase(names[at], globs[glob_at]):
            at, glob_at = at + 1, glob_at + 1
        elif star_at >= 0:
            retry_at += 1
            at, glob_at = retry_at, star_at + 1
        else:
            return False
    return all(glob == "**" for glob in globs[glob_at:])
