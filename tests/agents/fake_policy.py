"""Doubles of what policies need from outside."""

import posixpath
from collections import deque
from collections.abc import Mapping
from typing import Any

from openai_responses_mcp.gate.policy.rules import Paths, Policy, PolicySource, Rule


class FakePaths(Paths):
    """A file system of links alone: everything else is as it is written."""

    def __init__(
        self,
        links: Mapping[str, str] | None = None,
        *,
        home: str = "/path/to",
        here: str = "/srv",
        ignores_case: bool = False,
    ) -> None:
        self.links = dict(links or {})
        self._home = home
        self._here = here
        self._ignores_case = ignores_case
        self._anchors: dict[str, str | None] = {}

    @property
    def ignores_case(self) -> bool:
        return self._ignores_case

    def resolved(self, path: str, directory: str | None) -> str | None:
        is_from_home, names = path == "~" or path.startswith("~/"), path.split("/")
        is_clear = path.startswith("/") or (is_from_home and ".." not in names)
        if not is_clear and (directory is None or path.startswith("~") or ":" in path):
            return None
        whole = self._whole(path, directory or "")
        found = {self._resolved(form) for form in (whole, posixpath.normpath(whole))}
        return found.pop() if len(found) == 1 else None

    def anchor(self, folder: str, directory: str) -> str | None:
        whole = self._whole(folder, directory)
        return self._anchors.setdefault(whole, self._resolved(whole))

    def _whole(self, path: str, directory: str) -> str:
        expanded = self._home + path[1:] if path == "~" or path.startswith("~/") else path
        return posixpath.join(directory or self._here, expanded)

    def _resolved(self, path: str) -> str | None:
        if "\0" in path:
            return None
        names, at, followed = deque(path.split("/")), "", 0
        while names:
            name = names.popleft()
            if name == "..":
                at = at.rpartition("/")[0]
            elif name not in ("", "."):
                at = f"{at}/{name}"
            if f"{at}/".startswith(("/proc/", "/dev/fd/")) or at.startswith("/dev/std"):
                return None
            if at in self.links:
                followed += 1
                if followed > len(self.links):
                    return None
                names.extendleft(reversed(self.links[at].split("/")))
                at = "" if self.links[at].startswith("/") else at.rpartition("/")[0]
        return at or "/"


class FakePolicySource(PolicySource):
    """Has the policy that it was given last."""

    def __init__(self, *rules: Rule, **said: Any) -> None:
        self.policy = Policy(rules=rules, **said)

    def current(self) -> Policy:
        return self.policy
