"""Decisions and their records where the two are in different stores: the record comes first.

The log takes only one record of a decision, so only one of two people can be first. A crash in between leaves a record
of a decision that has not been made. The same decision can be made again, and then counts; the opposite one cannot.
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
