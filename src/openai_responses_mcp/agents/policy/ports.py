"""Where policy profiles are kept."""

from typing import Protocol

from openai_responses_mcp.agents.policy.profiles import PolicyProfile


class PolicyStore(Protocol):
    async def get_profile(self, name: str) -> PolicyProfile:
        """The profile as it was last set, else as it is built in. Unknown: `AGENTS-E-POLICY-INVALID`."""
        ...

    async def set_profile(self, profile: PolicyProfile) -> None: ...
