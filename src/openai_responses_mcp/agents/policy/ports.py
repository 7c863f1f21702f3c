"""What policies need from outside: a store of profiles, a file of rules, the file system, and patterns."""

from collections.abc import Callable
from typing import Protocol

from openai_responses_mcp.agents.policy.profiles import PolicyProfile
from openai_responses_mcp.agents.policy.rules import Policy


class PolicyStore(Protocol):
    async def get_profile(self, name: str) -> PolicyProfile:
        """The profile as it was last set, else as it is built in. Unknown: `AGENTS-E-POLICY-INVALID`."""
        ...

    async def set_profile(self, profile: PolicyProfile) -> None: ...


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

    def readings(self, path: str, directory: str) -> frozenset[str]:
        """Every file that a server in this directory may take the path for; none if that cannot be told.

        Whether `link/..` is the folder around the link or around its target differs from program to program.
        """
        ...

    def anchor(self, folder: str, directory: str) -> str | None:
        """Where a glob begins. Looked up once: a link that is put in its place later changes nothing.

        None where that cannot be told.
        """
        ...


class Patterns(Protocol):
    def compile(self, pattern: str) -> Callable[[str], bool]:
        """Tells whether a whole text matches, in time that grows no faster than the text. Raises ValueError."""
        ...
