"""The records that a guard writes about the calls of its run."""

import logging

from openai_responses_mcp.gate.audit.log import AuditEntry
from openai_responses_mcp.gate.calls import PlannedCall
from openai_responses_mcp.gate.models import GateDecision, ToolCallRequest
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sentences import reason_in_record

_logger = logging.getLogger("openai_responses_mcp.agents")


class RunRecords:
    """`secret_texts` are the texts in fields that a tool's own schema names after a secret."""

    def __init__(self, run_id: str, masking: Masking, who: str = "") -> None:
        self.secret_texts: list[str] = []
        self._run_id = run_id
        self._masking = masking
        self._who = who

    def decision(self, request: ToolCallRequest, decision: GateDecision) -> AuditEntry:
        if _logger.isEnabledFor(logging.DEBUG):
            names = sorted(self._masking.text(str(name)) for name in request.args)
            said = (request.tool_kind, request.tool_name, decision.decision, decision.risk_level)
            _logger.debug(
                "gate: %s %s -> %s, risk %s %s",
                *said,
                {"run": self._run_id, "call": request.tool_call_id, "arguments": names},
            )
        return AuditEntry(
            run_id=self._run_id,
            tool_call_id=request.tool_call_id,
            event="decision" if request.attempt == 1 else f"decision:{request.attempt}",
            decision=decision.decision,
            tool_name=request.tool_name,
            tool_kind=request.tool_kind,
            risk_level=decision.risk_level,
            reason=decision.reason,
            reasons=decision.reasons,
            arguments=self._masking.shown(request.args, request.target_tool.parameters if request.target_tool else {}),
            who=self._who,
        )

    def about(self, call: PlannedCall, event: str, decision: str, reason: str = "", *reasons: Reason) -> AuditEntry:
        """`reasons` are about the result of the call, and stand behind what the tool itself said."""
        said = [self._masking.text(reason, self.secret_texts), *(reason_in_record([one], one.says) for one in reasons)]
        return AuditEntry(
            run_id=self._run_id,
            tool_call_id=call.call_id,
            event=event,
            decision=decision,
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            reason="; ".join(filter(None, said)),
            reasons=reasons,
            arguments=self._masking.shown(call.args, call.tool.parameters),
            who=self._who,
        )
