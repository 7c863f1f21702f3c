"""The policy in force, applied to calls. A ruling is one voice among those of the gate.

The guard also protects itself: a path that leads to the policy file, the store, or a file in which an MCP client is
configured to start the guard asks. A path in doubt is compared by its end.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from openai_responses_mcp.gate.calls import ToolDescription
from openai_responses_mcp.gate.json_values import JsonObject, texts_in
from openai_responses_mcp.gate.policy.argument_names import unclear_name
from openai_responses_mcp.gate.policy.fitting import (
    Fit,
    RuledCall,
    claims_of,
    covers_tool,
    fit_of,
    folded,
    is_below,
    names_tool,
    policy_name,
    server_of,
)
from openai_responses_mcp.gate.policy.rules import Paths, Policy, PolicySource, Rule, RuleDecision
from openai_responses_mcp.gate.reasons import OWN_FILE

# Where clients are configured: the ends of the paths, in a user's folder and in a project's alike.
CLIENT_FILES = (
    "/.claude.json",
    "/.claude/settings.json",
    "/.claude/settings.local.json",
    "/.mcp.json",
    "/claude_desktop_config.json",
    "/.cursor/mcp.json",
    "/.vscode/mcp.json",
    "/user/mcp.json",
    "/user/settings.json",
    "/.codex/config.toml",
    "/.gemini/settings.json",
)
# SQLite and the log's head keep files beside a store.
_BESIDE = ("", "-wal", "-shm", "-journal", ".head")

_LONGEST_PATH = 4096
# What some servers drop around a path, and behind it.
_EDGES = " \t\r\n\v\f\"'`"
_BEHIND = re.compile(r"[?#]|::")
_LIKE_A_PATH = re.compile(r"[/~.\\$%]|[A-Za-z][A-Za-z0-9+.-]*:")


class OwnFiles:
    """`folder` is the guard's own: everything in it counts."""

    def __init__(self, files: Iterable[str], paths: Paths, folder: str | None) -> None:
        self._paths = paths
        anchor = None if folder is None else paths.anchor(folder, "")
        self._folder = None if anchor is None else folded(anchor)
        places = [place for file in files if (place := paths.anchor(file, "")) is not None]
        self._places = {folded(f"{place}{ending}") for place in places for ending in _BESIDE}
        self._ends = (*CLIENT_FILES, *(f"/{place.rpartition('/')[2]}" for place in self._places))

    def are_in(self, args: JsonObject, relative_to: str | None) -> bool:
        return any(text and self._is_own(text, relative_to) for text in texts_in(args))

    def _is_own(self, text: str, relative_to: str | None) -> bool:
        if len(text) > _LONGEST_PATH or "\n" in text:
            # Some servers normalise a path before they use it. Texts this long are rarely paths.
            return _may_be_path(text) and any(_ends_with(one, self._ends) for one in _as_servers_read(text))
        path = self._paths.resolved(text, relative_to)
        if path is None:
            return any(_ends_with(one, self._ends) for one in _as_servers_read(text))
        place = folded(path)
        is_inside = self._folder is not None and is_below(place, self._folder, ["**"])
        return is_inside or place in self._places or _ends_with(path, CLIENT_FILES)


def _may_be_path(text: str) -> bool:
    inside = text.strip(_EDGES)
    return ".." in inside or not any(map(str.isspace, inside)) or _LIKE_A_PATH.match(inside) is not None


def _as_servers_read(text: str) -> set[str]:
    """The end of a path in doubt: as it is written, and less what a server may drop or decode."""
    ends = {one[-_LONGEST_PATH:] for one in (text, text.partition("\0")[0])}
    written = {one.strip(_EDGES) for end in ends for one in (end, unquote(end))}
    return written | {_BEHIND.split(one)[0].rstrip(". ") for one in written}


def _ends_with(path: str, ends: tuple[str, ...]) -> bool:
    """Each of the `ends` begins with a slash."""
    names = [name for name in folded(path).replace("\\", "/").split("/") if name not in ("", ".")]
    return f"/{'/'.join(names)}".endswith(ends)


_logger = logging.getLogger("openai_responses_mcp.agents")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a rule says about a call: `decide`, instead of the profile's limits, or the `risk` that it sets.

    `rule` is its number, or 0 if no rule fits, and `text` the reason that the file gives. `in_doubt` says that the rule
    may not be about this call, because it is not clear which file a path means. `would_allow` is the number of
    an earlier rule that would allow the call if that were clear, or 0.
    """

    decide: RuleDecision | None
    risk: int | None
    rule: int
    text: str = ""
    in_doubt: bool = False
    would_allow: int = 0


def ruling_by(rule: Rule, fit: Fit) -> Ruling | None:
    """Doubt never lets a call through: a rule that allows does not fit, and one that sets a risk asks."""
    if fit is Fit.YES:
        return Ruling(rule.decide, rule.risk, rule.number, rule.reason)
    if fit is not Fit.DOUBT or rule.decide == "allow":
        return None
    return Ruling(rule.decide or "ask", None, rule.number, rule.reason, in_doubt=True)


class PolicyRules:
    """`own_files`, and those in `own_folder`, are touched only after a person said yes. `former_names` has the names that
    servers had in earlier versions, by the names they have now; rules may still use them."""

    def __init__(
        self,
        source: PolicySource,
        paths: Paths,
        *,
        own_files: Iterable[str] = (),
        own_folder: str | None = None,
        former_names: Mapping[str, str] | None = None,
    ) -> None:
        self._source = source
        self._paths = paths
        self._own_files = OwnFiles(own_files, paths, own_folder)
        self._former_names = dict(former_names or {})
        self._with_roots: set[str] = set()
        self._warned: list[Rule] = []
        self._known = source.current()
        self._look_up(self._known)

    @property
    def policy(self) -> Policy:
        policy = self._source.current()
        if policy is not self._known:
            self._known = policy
            self._look_up(policy)
        return policy

    def _look_up(self, policy: Policy) -> None:
        """Where its globs begin is looked up now, before any call could put a link there."""
        bases = {"", *policy.relative_to.values()}
        for folder in {glob.folder for rule in policy.rules for glob in rule.path_globs}:
            for base in bases:
                self._paths.anchor(folder, self._folder(base))

    def _folder(self, base: str) -> str:
        return (self._paths.anchor(base, "") or "") if base else ""

    # -----------------------------------------------------------------------------------------------------------------
    # What the gate asks

    def ruling(self, tool: ToolDescription, args: JsonObject) -> Ruling | None:
        """Of the first rule that fits; None where the profile decides and no path is in doubt."""
        call, would_allow = self.call(tool, args), 0
        for rule in self.policy.rules:
            fit = self.fit(rule, call)
            if ruling := ruling_by(rule, fit):
                return replace(ruling, would_allow=would_allow) if would_allow else ruling
            if fit is Fit.DOUBT:
                would_allow = would_allow or rule.number
        return Ruling(None, None, 0, would_allow=would_allow) if would_allow else None

    def denies_always(self, tool: ToolDescription) -> bool:
        """Whether the rules deny the tool whatever its arguments."""
        call = self.call(tool, {})
        for rule in self.policy.rules:
            if covers_tool(rule, call) and (rule.decide != "deny" or not rule.when):
                return rule.decide == "deny"
        return False

    def with_doubts(self, tool: ToolDescription, args: JsonObject) -> ToolDescription:
        """The tool as a call with these arguments sees it: one that may touch the guard's own files asks."""
        is_own = self._own_files.are_in(args, self.call(tool, args).relative_to)
        return replace(tool, doubts=(*tool.doubts, OWN_FILE)) if is_own else tool

    def unclear_name(self, tool: ToolDescription, args: JsonObject) -> str | None:
        """An argument's name that some servers would take for another one."""
        names = self.call(tool, args).names
        pointers = [when.steps for rule in self.policy.rules if names_tool(rule, names) for when in rule.when]
        return unclear_name(args, tool.parameters, pointers)

    # -----------------------------------------------------------------------------------------------------------------
    # What the guard says

    def doubt_relative_paths(self, server: str) -> None:
        """The client has sent its roots to this server, which may read relative paths from them from now on."""
        self._with_roots.add(policy_name("mcp", server))

    # -----------------------------------------------------------------------------------------------------------------

    def fit(self, rule: Rule, call: RuledCall) -> Fit:
        found = fit_of(rule, call, self._paths)
        if found >= Fit.DOUBT and not names_tool(rule, call.names[:1]) and rule not in self._warned:
            self._warned.append(rule)
            _logger.warning(
                "policy: rule %s fits %s by the name that its server had before; write the new name",
                rule.number,
                call.names[0],
            )
        return found

    def call(self, tool: ToolDescription, args: JsonObject) -> RuledCall:
        server, names = server_of(tool), [policy_name(tool.kind, tool.name)]
        if former := self._former_names.get(server):
            names.append(policy_name(tool.kind, f"{former}/{tool.name.partition('/')[2]}"))
        folder = self._folder(self.policy.relative_to.get(server, ""))
        return RuledCall(
            names=tuple(names),
            args=args,
            claims=claims_of(tool.annotations),
            base=folder or tool.directory,
            relative_to=None if server in self._with_roots else folder or None,
        )
