"""A worker that asks: requests of a made-up run in any stores, for a desk to decide."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from openai_responses_mcp.gate.approvals.controller import ApprovalController, RecordedFirst
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.calls import GateDecision, PlannedCall, ToolDescription
from openai_responses_mcp.gate.clock import timestamp
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.stores import RunRecord, Stores

TOOL = ToolDescription("files/write_file", "mcp", "Write a file.", definition_hash="d1")


class Asker:
    def __init__(self, stores: Stores, run_id: str = "run_1", agent_name: str = "Clerk") -> None:
        masking = Masking({})
        self._stores = stores
        self._run_id = run_id
        self._agent_name = agent_name
        self._number = 0
        self.audit = AuditLog(stores.logs, stores.clock, masking, "required", stores.head)
        decisions = stores.decisions or RecordedFirst(stores.approvals, stores.logs)
        self.controller = ApprovalController(stores.approvals, decisions, self.audit, stores.clock, masking, 900)

    async def ask(
        self,
        arguments: Mapping[str, Any] | None = None,
        *,
        reason: str = "it writes",
        prompt: str | None = None,
        risk_level: int = 3,
        wait_seconds: float | None = None,
        reading: Mapping[str, str] | None = None,
        **tool: Any,
    ) -> HumanApprovalRequest:
        now = timestamp(self._stores.clock.now())
        await self._stores.runs.save(RunRecord(self._run_id, "paused", self._agent_name, now, now))
        self._number += 1
        call = PlannedCall(f"call_{self._number}", replace(TOOL, **tool), arguments or {"path": "a.txt"})
        decision = GateDecision("needs_human", risk_level, reason)
        return await self.controller.create_approval_request(
            self._run_id, decision, prompt, call=call, wait_seconds=wait_seconds, reading=reading
        )
