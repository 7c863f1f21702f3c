"""Decisions and their records where the two are kept apart: the record comes first.

A log takes one record of a decision, so that of two people one is first. Whoever dies between the two leaves a record
of a decision that has not been made yet. The same decision can be made again and then counts; the other one cannot.
"""

from openai_responses_mcp.agents.approvals.ports import ApprovalChoice, ApprovalStore, DecisionBook
from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.audit.ports import ExecutionLogStore
from openai_responses_mcp.agents.errors import DuplicateRecord


class RecordedFirst(DecisionBook):
    def __init__(self, approvals: ApprovalStore, logs: ExecutionLogStore) -> None:
        self._approvals = approvals
        self._logs = logs

    async def decide(self, choice: ApprovalChoice, record: ExecutionLog) -> bool:
        try:
            await self._logs.append(record)
        except DuplicateRecord:
            if not await self._is_recorded(record):
                return False
        return await self._approvals.decide(choice)

    async def _is_recorded(self, record: ExecutionLog) -> bool:
        """Whether the decision that was recorded is this one."""
        wanted = (record.tool_call_id, record.event, record.decision)
        logs = await self._logs.query(record.run_id)
        return any((log.tool_call_id, log.event, log.decision) == wanted for log in logs)
