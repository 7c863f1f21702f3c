"""The policy in a YAML file, read again when the file changes; the regular expressions in its rules; and paths.

Paths are resolved as a server on this machine would resolve them.
"""

import errno
import logging
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from openai_responses_mcp.adapters.bounded_file import read_text, reason_of
from openai_responses_mcp.domain.texts import one_line, without_surrogates
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.checking import (
    KnownTools,
    PolicyFindings,
    looser_rules_first,
    rules_that_never_apply,
    unknown_names,
)
from openai_responses_mcp.gate.policy.reading import policy_from
from openai_responses_mcp.gate.policy.rules import Paths, Policy, PolicySource, Rule
from openai_responses_mcp.gate.schema.patterns import Patterns

MAX_FILE_BYTES = 1024 * 1024

# Two changes within one tick of a file system's clock look like one; the coarsest clocks tick every two seconds.
_TICK_NS = 2_000_000_000

_logger = logging.getLogger("openai_responses_mcp.agents")


@dataclass(frozen=True, slots=True)
class PolicyReading:
    """The content of a file. `policy` is valid only if there are no problems. `rule_places`: file and line per rule."""

    policy: Policy
    problems: tuple[str, ...]
    rule_places: tuple[str, ...] = ()


def parse_policy(path: str, text: str, patterns: Patterns) -> PolicyReading:
    # Imported here, because without a policy file YAML is not needed.
    from openai_responses_mcp.adapters.yaml_file import YamlProblem, read_yaml

    try:
        document = read_yaml(text)
    except YamlProblem as exc:
        return PolicyReading(Policy(), (one_line(f"{path}:{exc.line}: {exc.text}"),))
    policy, problems = policy_from(document.data, patterns)
    lines = sorted((document.line_of(problem.path), str(problem)) for problem in problems)
    rule_lines = [document.line_of(("rules", place)) for place in range(len(policy.rules))]
    return PolicyReading(
        policy,
        tuple(one_line(f"{path}:{line}: {text}") for line, text in lines),
        tuple(f"{path}:{line}" for line in rule_lines),
    )


def read_policy(path: str, patterns: Patterns) -> PolicyReading:
    """Raises `AGENTS-E-POLICY-INVALID` for a file that cannot be read at all."""
    return parse_policy(path, _text_of(path), patterns)


def check_policy_file(path: str, patterns: Patterns, paths: Paths, known: KnownTools | None = None) -> PolicyFindings:
    """With `known`, names in rules that fit none of these tools are reported. Raises what `read_policy` raises."""
    reading = read_policy(path, patterns)
    policy = reading.policy
    if reading.problems:
        return PolicyFindings(len(policy.rules), reading.problems)

    def placed(found: Iterable[tuple[Rule, str]], link: str) -> tuple[str, ...]:
        lines = [f"{reading.rule_places[rule.number - 1]}: rule {rule.number}{link} {reason}" for rule, reason in found]
        return tuple(map(one_line, lines))

    return PolicyFindings(
        rules=len(policy.rules),
        never_apply=placed(rules_that_never_apply(policy, paths), " can never apply:"),
        looser_first=placed(looser_rules_first(policy, paths, known), " may come too late:"),
        unknown_names=placed(unknown_names(policy, known), ":") if known else (),
    )


class PolicyFile(PolicySource):
    """The first reading must succeed. Later ones may fail: then the last good policy stays, with a warning."""

    def __init__(self, path: str | os.PathLike[str], patterns: Patterns) -> None:
        self._path = os.fspath(path)
        self._patterns = patterns
        self._complaint = ""
        self._note_file_state()
        self._text = _text_of(self._path)
        reading = parse_policy(self._path, self._text, patterns)
        if reading.problems:
            raise _invalid("; ".join(reading.problems))
        self._policy = reading.policy

    def current(self) -> Policy:
        before, was_settled = self._mark, self._is_settled
        self._note_file_state()
        if self._mark != before or not was_settled:
            self._read_again()
        return self._policy

    def _note_file_state(self) -> None:
        """Call this before reading the file, so that a change during the read is seen the next time."""
        try:
            found = os.stat(self._path)
        except (OSError, ValueError):
            self._mark, self._is_settled = None, True
            return
        self._mark = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)
        self._is_settled = abs(time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns)) > _TICK_NS

    def _read_again(self) -> None:
        try:
            text = _text_of(self._path)
        except AgentsError as exc:
            self._complain(exc.message)
            return
        if text == self._text:
            self._complaint = ""
            return
        reading = parse_policy(self._path, text, self._patterns)
        if reading.problems:
            self._complain("; ".join(reading.problems))
            return
        self._policy, self._text, self._complaint = reading.policy, text, ""
        _logger.info("policy: %s was read again", self._path)

    def _complain(self, problem: str) -> None:
        if problem != self._complaint:
            _logger.warning("AGENTS-E-POLICY-INVALID: %s; the last good policy stays in force", problem)
        self._complaint = problem


class NoPolicyFile(PolicySource):
    """Without a policy file the profile decides."""

    def __init__(self) -> None:
        self._policy = Policy()

    def current(self) -> Policy:
        return self._policy


def _text_of(path: str) -> str:
    try:
        return read_text(path, most_bytes=MAX_FILE_BYTES)
    except (OSError, ValueError) as exc:
        raise _invalid(one_line(f"{path}: {reason_of(exc)}")) from exc


def _invalid(message: str) -> AgentsError:
    return AgentsError("AGENTS-E-POLICY-INVALID", message)


class LinearPatterns(Patterns):
    """Patterns on pydantic's regex engine, which takes linear time.

    With Python's engine, an argument could make a careless pattern run for hours. This engine has no back references
    and no look-around; the rest of the syntax is the same.
    """

    def compile(self, pattern: str) -> Callable[[str], bool]:
        # Check it alone first: `a)|(b` is invalid, but inside the brackets below it would become valid.
        _checker(pattern)
        is_match = _checker(rf"\A(?:{pattern})\z")
        return lambda text: is_match(without_surrogates(text))


def _checker(pattern: str) -> Callable[[str], bool]:
    # Only a policy with patterns pays for the import.
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
    except SchemaError as exc:
        # The last line of the engine's message is the reason.
        reason = str(exc).strip().splitlines()[-1].strip().removeprefix("error: ").removeprefix("SchemaError: ")
        raise ValueError(f"is not a pattern that can be used: {reason}") from exc


# Longer paths cannot be opened, and would take long to resolve.
_LONGEST_PATH = 4096
# As many as Linux follows.
_MOST_LINKS = 40

# Some servers read a URL, strip quotes and white space, turn \\ into /, or expand a variable. Others do not.
_AMBIGUOUS = re.compile(
    r"[a-z][a-z0-9+.-]*:|[\s\"'$%]|.*[\s\"']\Z|.*[\x00-\x1f\x7f]" + ("" if os.sep == "\\" else r"|.*\\"),
    re.IGNORECASE | re.DOTALL,
)
_DRIVE = re.compile(r"[a-z]:[/\\]", re.IGNORECASE)
# These lead to a different place in each process.
_PER_PROCESS = re.compile(r"/proc(/|\Z)|/dev/(fd(/|\Z)|std)", re.IGNORECASE)

# Links in a circle, a folder that may not be entered, a NUL, half a surrogate pair.
_UNRESOLVABLE = (OSError, ValueError)


class _AmbiguousPath(Exception):
    """Another process may open a different file under this path."""


class SystemPaths(Paths):
    def __init__(self) -> None:
        self._anchors: dict[str, str] = {}

    @property
    def ignores_case(self) -> bool:
        return sys.platform in ("win32", "darwin")

    def resolved(self, path: str, directory: str | None) -> str | None:
        try:
            absolute = _absolute(path, directory)
            found = _without_links(absolute)
            # Some programs just drop `..` and the name before it. If that name is a link, they open another file.
            if ".." in _names(absolute) and _without_links(os.path.normpath(absolute)) != found:
                return None
            return found
        except (_AmbiguousPath, *_UNRESOLVABLE):
            return None

    def anchor(self, folder: str, directory: str) -> str | None:
        try:
            absolute = os.path.join(os.path.abspath(directory), os.path.expanduser(folder))
            if absolute not in self._anchors:
                self._anchors[absolute] = _real(absolute).replace(os.sep, "/")
        except _UNRESOLVABLE:
            return None
        return self._anchors[absolute]


def _absolute(path: str, directory: str | None) -> str:
    is_drive = os.sep == "\\" and _DRIVE.match(path) is not None
    if len(path) > _LONGEST_PATH or (_AMBIGUOUS.match(path) and not is_drive):
        raise _AmbiguousPath
    if path == "~" or path.startswith(("~/", f"~{os.sep}")):
        if ".." in _names(path):
            raise _AmbiguousPath
        return os.path.expanduser(path)
    if os.path.isabs(path):
        return path
    # ~name may be the home of a user, or a file that begins with ~.
    if directory is None or path.startswith("~"):
        raise _AmbiguousPath
    return os.path.join(directory, path)


def _names(path: str) -> list[str]:
    return path.replace(os.sep, "/").split("/")


def _without_links(path: str) -> str:
    """The path with all links followed. Each step is checked, because a link may lead into /proc."""
    drive, rest = os.path.splitdrive(path)
    names, at, links = deque(_names(rest)), drive, 0
    while names:
        name = names.popleft()
        if name in ("", "."):
            continue
        at = at.rpartition("/")[0] if name == ".." else f"{at}/{name}"
        if _PER_PROCESS.match(at):
            raise _AmbiguousPath
        target = _link_at(at) if name != ".." else None
        if target is not None:
            links += 1
            if links > _MOST_LINKS:
                raise _AmbiguousPath
            names.extendleft(reversed(_names(target)))
            at = drive if os.path.isabs(target) else at.rpartition("/")[0]
    return at or "/"


def _link_at(path: str) -> str | None:
    try:
        return os.readlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        if exc.errno == errno.EINVAL:
            return None
        raise


def _real(path: str) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        # A file that does not exist yet: the part of its path that exists is resolved.
        return os.path.realpath(path)
