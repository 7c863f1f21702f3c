"""Looking at runs from outside, and waiting for decisions. Another process may make those, so the store is asked."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import get_args

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest
from openai_responses_mcp.agents.checks import require
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.runs.book import RunBook
from openai_responses_mcp.agents.runs.models import RunStatus, RunSummary
from openai_responses_mcp.agents.runs.ports import RunRecord

SECONDS_BETWEEN_LOOKS = 0.5

Sleep = Callable[[float], Awaitable[None]]


class WatchRuns:
    def __init__(self, book: RunBook, approvals: ApprovalController, sleep: Sleep = asyncio.sleep) -> None:
        self._book = book
        self._approvals = approvals
        self._sleep = sleep

    async def get(self, run_id: str) -> RunSummary:
        record = await self._book.get(run_id)
        if record is None:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", "There is no such run")
        return _summary(record)

    async def list_runs(self, status: RunStatus | None = None) -> list[RunSummary]:
        known = get_args(RunStatus)
        require(status is None or status in known, "AGENTS-E-RUNNER-CONFIG", f"status is one of {', '.join(known)}")
        return [_summary(record) for record in await self._book.list_runs(status)]

    async def wait(self, run_id: str, timeout_seconds: float | None = None) -> list[HumanApprovalRequest]:
        """The requests that the run waited for last, all decided. Too late: `AGENTS-E-APPROVAL-INVALID`."""
        is_time = timeout_seconds is None or (type(timeout_seconds) in (int, float) and timeout_seconds >= 0)
        require(is_time, "AGENTS-E-RUNNER-CONFIG", "timeout_seconds is a number from 0 up")
        await self.get(run_id)
        waiting = await self._approvals.pending(run_id)
        try:
            async with asyncio.timeout(timeout_seconds):
                while waiting:
                    await self._sleep(SECONDS_BETWEEN_LOOKS)
                    waiting = await self._approvals.pending(run_id)
        except TimeoutError:
            raise AgentsError(
                "AGENTS-E-APPROVAL-INVALID",
                "Nobody has decided in time",
                details={"reason": "timeout", "approval_ids": [request.approval_id for request in waiting]},
            ) from None
        return [record.request for record in await self._approvals.of_newest_pause(run_id)]


def _summary(record: RunRecord) -> RunSummary:
    return RunSummary(record.run_id, record.status, record.agent_name, record.created_at, record.updated_at)
