"""A policy file from what people have decided so far: the log and the pinned definitions become commented rules.

Reading tools that were only ever allowed are listed by name. Other calls that were always allowed become a rule with the
narrowest condition that covers them. What was denied becomes a denial, and everything else stays a question. At the end
the rules are tried on the log: a rule that would allow what a person denied, or deny what one allowed, is left out.
"""

import glob
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.calls import ToolDescription
from openai_responses_mcp.gate.definitions import annotations_of
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.policy.argument_names import names_at
from openai_responses_mcp.gate.policy.fitting import claims_of, is_glob, place_of, policy_name, same_json
from openai_responses_mcp.gate.policy.reading import LONGEST_GLOB, policy_from
from openai_responses_mcp.gate.policy.rules import Paths, Policy, PolicySource, RuleDecision
from openai_responses_mcp.gate.policy.ruling import PolicyRules
from openai_responses_mcp.gate.replaying import is_masked, possible_rulings
from openai_responses_mcp.gate.schema.patterns import Patterns

FEW = 5
# Longer texts are content, not parameters.
_LONGEST_VALUE = 100
_LONGEST_REASON = 500
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class DecidedCall:
    """What became of a call of an MCP tool: a person allowed or denied it, or it must not be allowed for other reasons."""

    tool: str
    args: JsonObject
    verdict: Literal["allowed", "denied", "refused"]
    comment: str = ""


@dataclass(frozen=True, slots=True)
class SuggestedRule:
    """A rule of the file, with the comment above it."""

    comment: str
    tools: tuple[str, ...]
    decide: RuleDecision
    when: JsonObject = field(default_factory=dict)
    claims: str = ""
    reason: str = ""

    @property
    def written(self) -> dict[str, JsonValue]:
        said = {"claims": self.claims, "when": self.when, "decide": self.decide, "reason": self.reason}
        return {"tools": list(self.tools), **{key: value for key, value in said.items() if value}}


class _Fixed(PolicySource):
    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def current(self) -> Policy:
        return self._policy


def suggest(
    logs: Sequence[ExecutionLog], entries: Mapping[str, JsonObject], paths: Paths, patterns: Patterns, server: str
) -> str:
    """The text of a policy file. `entries` are the pinned definitions by tool; `server` leaves out all others."""
    calls = [call for call in decided_calls(logs) if not server or call.tool.startswith(f"{server}/")]
    suggesting = _Suggesting(calls, entries, paths, patterns)
    return _written(suggesting.rules(), sum(call.verdict != "refused" for call in calls))


def decided_calls(logs: Sequence[ExecutionLog]) -> list[DecidedCall]:
    """In the order of the log. A call whose arguments a person changed is there twice: as it was, and as it ran."""
    planned: dict[tuple[str, str], ExecutionLog] = {}
    found: list[DecidedCall] = []
    # Its arguments were wrong for the server, and no person has seen them.
    failed = {(log.run_id, log.tool_call_id) for log in logs if (log.event, log.decision) == ("outcome", "failed")}
    for log in logs:
        event, key = log.event.partition(":")[0], (log.run_id, log.tool_call_id)
        if log.tool_kind != "mcp" or "/" not in log.tool_name:
            continue
        if event in ("decision", "observed"):
            planned[key] = log
            # A call that could not be decided says nothing about the tool.
            if log.decision == "deny" and not any(reason.voice == "failure" for reason in log.reasons):
                # A rule that denies was written by a person, so it counts as one.
                by_rule = [one for one in log.reasons if (one.voice, one.says) == ("rule", "deny")]
                reason = str(by_rule[0].about.get("text", "")) if by_rule else ""
                found.append(DecidedCall(log.tool_name, log.arguments, "denied" if by_rule else "refused", reason))
        elif event == "standing_used" and key not in failed:
            found.append(DecidedCall(log.tool_name, log.arguments, "allowed"))
        elif event == "approval" and log.decision in ("approved", "denied"):
            before = planned.get(key)
            if log.decision == "approved" and before and not same_json(before.arguments, log.arguments):
                found.append(DecidedCall(log.tool_name, before.arguments, "refused"))
            verdict: Literal["allowed", "denied"] = "allowed" if log.decision == "approved" else "denied"
            if verdict == "allowed" or not (before and _asked_about_budget(before)):
                found.append(DecidedCall(log.tool_name, log.arguments, verdict, log.comment))
    return found


def _asked_about_budget(log: ExecutionLog) -> bool:
    """A no to a question about a budget alone says nothing about the tool."""
    return {reason.voice for reason in log.reasons if reason.says == "needs_human"} == {"budget"}


class _Suggesting:
    def __init__(
        self, calls: Sequence[DecidedCall], entries: Mapping[str, JsonObject], paths: Paths, patterns: Patterns
    ) -> None:
        self._calls = calls
        self._entries = entries
        self._paths = paths
        self._patterns = patterns
        self._home = paths.anchor("~", "") or ""

    def rules(self) -> list[SuggestedRule]:
        """Without those that go against a decision. Each round leaves one out, so it ends."""
        rules = list(self._untried())
        while (wrong := self._wrong(rules)) is not None:
            del rules[wrong]
        return rules

    def _untried(self) -> Iterator[SuggestedRule]:
        """Denials first, then reading tools, then the rest that is allowed, and last what stays a question."""
        tools = list(dict.fromkeys(call.tool for call in self._calls))
        for tool in tools:
            yield from self._denial(tool)
        reading = [tool for tool in tools if self._is_only_read(tool)]
        for server in dict.fromkeys(tool.partition("/")[0] for tool in reading):
            own = [tool for tool in reading if tool.startswith(f"{server}/")]
            count = sum(len(self._of(tool, "allowed")) for tool in own)
            comment = f"{_calls(count, 'allowed')} The server says that these tools only read."
            yield SuggestedRule(comment, tuple(map(_glob_of, own)), "allow", claims="reads")
        for tool in tools:
            if tool not in reading:
                yield from self._allowance(tool)
        servers = dict.fromkeys(tool.partition("/")[0] for tool in tools)
        if servers:
            globs = tuple(f"{_glob_of(f'{server}/x').removesuffix('x')}*" for server in servers)
            yield SuggestedRule("Everything else stays a question.", globs, "ask")

    def _of(self, tool: str, *verdicts: str) -> list[DecidedCall]:
        return [call for call in self._calls if call.tool == tool and call.verdict in verdicts]

    def _is_only_read(self, tool: str) -> bool:
        is_allowed = self._of(tool, "allowed") and not self._of(tool, "denied", "refused")
        return bool(is_allowed) and "reads" in claims_of(annotations_of(self._entries.get(tool)))

    def _denial(self, tool: str) -> Iterator[SuggestedRule]:
        denied, allowed = self._of(tool, "denied"), self._of(tool, "allowed")
        when = self._telling(self._narrowest(denied), allowed) if denied and allowed else {}
        if not denied or (allowed and not when):
            return
        comment = _calls(len(denied), "denied", len(denied) + len(allowed))
        reasons = [call.comment for call in denied if call.comment.strip()]
        reason = reasons[-1][:_LONGEST_REASON].encode("utf-8", "replace").decode() if reasons else ""
        yield SuggestedRule(comment, (_glob_of(tool),), "deny", when, reason=reason)

    def _allowance(self, tool: str) -> Iterator[SuggestedRule]:
        allowed = self._of(tool, "allowed")
        if not allowed:
            return
        when = self._narrowest(allowed)
        if when or not (self._arguments(tool) or any(call.args for call in allowed)):
            comment = _calls(len(allowed), "allowed", len(self._of(tool, "allowed", "denied")))
            yield SuggestedRule(comment, (_glob_of(tool),), "allow", when)

    def _arguments(self, tool: str) -> list[str]:
        schema = self._entries.get(tool, {}).get("inputSchema")
        return sorted(names_at((), schema)) if isinstance(schema, Mapping) else []

    # -----------------------------------------------------------------------------------------------------------------
    # Conditions

    def _narrowest(self, calls: Sequence[DecidedCall]) -> JsonObject:
        """What all these calls have in common, argument by argument. Empty if that is nothing."""
        shared = [name for name in calls[0].args if all(name in call.args for call in calls)]
        found = {name: self._condition([call.args[name] for call in calls]) for name in shared}
        if not any(call.args for call in calls):
            # No argument at all, where some could be given.
            found = {name: {"missing": True} for name in self._arguments(calls[0].tool)[:FEW]}
        return {_place(name): wanted for name, wanted in found.items() if wanted is not None and _is_writable(name)}

    def _telling(self, when: JsonObject, allowed: Sequence[DecidedCall]) -> JsonObject:
        """The first condition that fits no allowed call, paths before others; else all of them."""
        for name in sorted(when, key=lambda name: not isinstance(when[name], str)):
            one = {name: when[name]}
            rules = self._rules_from([SuggestedRule("", ("*",), "deny", one)])
            if rules and not any(rules.ruling(ToolDescription(call.tool, "mcp"), call.args) for call in allowed):
                return one
        return when

    def _condition(self, values: Sequence[JsonValue]) -> JsonValue:
        """One folder, one value, or one of few; None without any of these."""
        if any(map(is_masked, values)):
            return None
        if all(isinstance(value, list) and value for value in values):
            inner = [one for value in values if isinstance(value, list) for one in value]
            folder = self._folder(inner)
            return folder and {"every": folder}
        if (folder := self._folder(values)) is not None:
            return folder
        different: list[JsonValue] = []
        for value in values:
            if not _is_short(value):
                return None
            if not any(same_json(value, one) for one in different):
                different.append(value)
        if len(different) > FEW:
            return None
        return {"equals": different[0]} if len(different) == 1 else {"in": different}

    def _folder(self, values: Sequence[JsonValue]) -> str | None:
        """The path that all values are, or a glob for the folder that all of them are in."""
        paths = [self._paths.resolved(value, None) for value in values if isinstance(value, str)]
        known = sorted({path for path in paths if path is not None})
        if not known or len(paths) != len(values) or None in paths:
            return None
        if len(known) == 1:
            glob_of_all = self._from_home(known[0])
        else:
            folder = posixpath.commonpath([posixpath.dirname(path) for path in known])
            is_flat = all(posixpath.dirname(path) == folder for path in known)
            if folder.count("/") < 2 or f"{self._home}/".startswith(f"{folder}/"):
                return None
            glob_of_all = f"{self._from_home(folder)}/{'*' if is_flat else '**'}"
        is_one_folder = not is_glob(glob_of_all.removesuffix("*").removesuffix("*"))
        is_usable = is_one_folder and len(glob_of_all) <= LONGEST_GLOB and _is_writable(glob_of_all)
        return glob_of_all if is_usable else None

    def _from_home(self, path: str) -> str:
        is_below = self._home and path.startswith(f"{self._home}/")
        return f"~{path.removeprefix(self._home)}" if is_below else path

    # -----------------------------------------------------------------------------------------------------------------
    # Trying the rules

    def _wrong(self, suggested: Sequence[SuggestedRule]) -> int | None:
        rules = self._rules_from(suggested)
        if rules is None:
            # A rule holds something that a file cannot express.
            return next(place for place, one in enumerate(suggested) if self._rules_from([one]) is None)
        for call in self._calls:
            against: RuleDecision = "deny" if call.verdict == "allowed" else "allow"
            tool = ToolDescription(call.tool, "mcp", annotations=annotations_of(self._entries.get(call.tool)))
            for ruling, _ in possible_rulings(rules, rules.call(tool, call.args)):
                if ruling is not None and ruling.decide == against:
                    return ruling.rule - 1
        return None

    def _rules_from(self, suggested: Sequence[SuggestedRule]) -> PolicyRules | None:
        written = {"version": 1, "rules": [one.written for one in suggested]}
        policy, problems = policy_from(written, self._patterns)
        return None if problems else PolicyRules(_Fixed(policy), self._paths)


# ---------------------------------------------------------------------------------------------------------------------
# The file


def _written(rules: Sequence[SuggestedRule], decided: int) -> str:
    calls = "1 call" if decided == 1 else f"{decided} calls"
    lines = [f"# Suggested from {calls} that people have decided. Read it before you use it."]
    lines += ["version: 1", "profile: balanced", "", f"rules:{'' if rules else ' []'}"]
    for rule in rules:
        lines.append(f"  # {rule.comment}")
        first = "- "
        for key, value in rule.written.items():
            shown = value if key in ("claims", "decide") else _yaml(value)
            lines.append(f"  {first}{key}: {shown}")
            first = "  "
    return "\n".join(lines) + "\n"


def _yaml(value: JsonValue) -> str:
    """In one line, as YAML reads it back."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(str(name))}: {_yaml(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    letters = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in letters)


def _key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else _yaml(name)


def _calls(count: int, verdict: str, of: int | None = None) -> str:
    """How many calls are behind a rule; all of them, unless it is some of more."""
    if count == 1:
        return f"1 call, {verdict}."
    return f"{count} calls, {'all ' if of in (None, count) else ''}{verdict}."


def _glob_of(tool: str) -> str:
    """The name as rules write it, with no letter that stands for others."""
    return glob.escape(policy_name("mcp", tool))


def _place(name: str) -> str:
    return place_of((name,)) if not name or name.startswith("/") else name


def _is_writable(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_short(value: JsonValue) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_VALUE and "\n" not in value and _is_writable(value)
    return value is None or isinstance(value, bool | int) or (isinstance(value, float) and abs(value) < float("inf"))
