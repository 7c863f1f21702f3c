"""Stores in plain dictionaries and lists. They keep the same contracts as those on a database."""

from openai_responses_mcp.agents.audit.chain import linked
from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.audit.ports import ExecutionLogStore
from openai_responses_mcp.agents.errors import DuplicateRecord
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import PROFILES, PolicyProfile, profile_name


class FakePolicyStore(PolicyStore):
    def __init__(self) -> None:
        self._profiles = dict(PROFILES)

    async def get_profile(self, name: str) -> PolicyProfile:
        return self._profiles[profile_name(name)]

    async def set_profile(self, profile: PolicyProfile) -> None:
        self._profiles[profile.name] = profile


class FakeExecutionLogStore(ExecutionLogStore):
    def __init__(self) -> None:
        self._logs: list[ExecutionLog] = []

    async def append(self, log: ExecutionLog) -> ExecutionLog:
        if any(_identity(one) == _identity(log) for one in self._logs):
            raise DuplicateRecord(f"{log.event} of this call is recorded already")
        self._logs.append(linked(log, self._logs[-1] if self._logs else None))
        return self._logs[-1]

    async def query(self, run_id: str | None = None, since: str | None = None) -> list[ExecutionLog]:
        logs = [log for log in self._logs if run_id in (None, log.run_id)]
        return [log for log in logs if since is None or log.timestamp >= since]


def _identity(log: ExecutionLog) -> tuple[str, str, str]:
    return log.run_id, log.tool_call_id, log.event
