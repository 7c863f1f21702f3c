"""What policies need from outside: a file of rules, and the file system."""

from typing import Protocol

from openai_responses_mcp.gate.policy.rules import Policy


class PolicySource(Protocol):
    def current(self) -> Policy:
        """The policy in force. It follows its file; if that cannot be used, the last good one stays. Never raises."""
        ...


class Paths(Protocol):
    """Absolute paths with `/` between names, without `~`, `..` and links. An empty `directory` is the process's own."""

    @property
    def ignores_case(self) -> bool:
        """Whether names that differ in case may be one file here."""
        ...

    def resolved(self, path: str, directory: str | None) -> str | None:
        """The file that a server reads under this path. None where servers may differ, or it leads nowhere.

        Relative paths begin in `directory`; without one they are in doubt. So are `~` together with `..`, an address
        such as `file:…`, and what leads through `/proc`, `/dev/fd`, `/dev/std*` or `link/..`.
        """
        ...

    def anchor(self, folder: str, directory: str) -> str | None:
        """Where a glob begins. Looked up once: a link that is put in its place later changes nothing.

        None where that cannot be found out.
        """
        ...
