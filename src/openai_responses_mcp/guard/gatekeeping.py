"""What the gate says about one call under the budgets in force, and the records about it."""

from dataclasses import dataclass

from openai_responses_mcp.gate.audit.log import AuditEntry
from openai_responses_mcp.gate.budgets import SessionBudget
from openai_responses_mcp.gate.calls import PlannedCall
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.models import BudgetQuestion, GateDecision, ToolCallRequest
from openai_responses_mcp.gate.policy.profiles import PolicyProfile
from openai_responses_mcp.gate.ports import Judge
from openai_responses_mcp.gate.reasons import Decision, Reason
from openai_responses_mcp.gate.run_records import RunRecords
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyGate, failed
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.fields import secret_texts
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.starts import Spending


@dataclass(frozen=True, slots=True)
class GuardSession:
    """One guard in front of one server. Its records are found by `run_id`. `caller` is who asks, where that is known."""

    server_name: str
    run_id: str
    profile: str | None = None
    is_observing: bool = False
    caller: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """`entry` is the record of the decision. Approving the call also answers its questions about budgets."""

    decision: GateDecision
    entry: AuditEntry
    questions: tuple[BudgetQuestion, ...] = ()

    @property
    def says(self) -> Decision:
        return self.decision.decision


class NoJudge(Judge):
    """The guard asks no model: rules, profile, budgets and people decide."""

    async def evaluate(self, agent: object, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        return GateDecision("allow", 1, "")


class Gatekeeper:
    def __init__(self, session: GuardSession, gate: SafetyGate, budget: SessionBudget, masking: Masking) -> None:
        self._session = session
        self._gate = gate
        self._budget = budget
        self._masking = masking

    @property
    def schemas(self) -> SchemaChecker:
        return self._gate.schemas

    async def judged(self, call: PlannedCall, attempt: int = 1) -> Judgement:
        """Fails closed: a voice that fails is a refusal."""
        request = self._request_for(call, attempt)
        questions: list[BudgetQuestion] = []
        try:
            if self._gate.hides_results and (label := self._masking.label_in(call.args)):
                message = f"The arguments hold a label that stands in the place of a secret: {label}"
                raise AgentsError("AGENTS-E-GATE-DENIED", message)
            questions = (await self._budget.questions())[0]
            over = tuple(question.reason for question in questions)
            context = GateContext(self._session.profile, over_budget=over)
            decision = await self._gate.evaluate(None, request, context)
        except AgentsError as exc:
            decision = failed(call.tool.own_risk, exc)
        return Judgement(decision, self._records(call).decision(request, decision), tuple(questions))

    async def denial(self, call: PlannedCall, attempt: int) -> Judgement | None:
        """The refusal of an approved call, if the policy has changed while a person was asked. Raises `AgentsError`."""
        decision = await self._gate.denial(call.tool, call.args, self._session.profile)
        if decision is None:
            return None
        return Judgement(decision, self._records(call).decision(self._request_for(call, attempt), decision))

    def refused(self, call: PlannedCall, failure: AgentsError) -> Judgement:
        """For a call that the gate cannot even be asked about."""
        decision = failed(call.tool.own_risk, failure)
        return Judgement(decision, self._records(call).decision(self._request_for(call), decision))

    def let_pass(self, call: PlannedCall, risk_level: int) -> AuditEntry:
        """The record of a call that passes because nothing is guarded."""
        decision = GateDecision.because("allow", risk_level, Reason("observer", "allow"))
        return self._records(call).decision(self._request_for(call), decision)

    async def go_on(self, questions: tuple[BudgetQuestion, ...]) -> None:
        await self._budget.go_on(questions)

    def spendings(self) -> tuple[Spending, ...]:
        return self._budget.spendings()

    async def spend(self) -> None:
        await self._budget.spend(calls=1)

    def about(self, call: PlannedCall, event: str, decision: str, reason: str = "", *reasons: Reason) -> AuditEntry:
        return self._records(call).about(call, event, decision, reason, *reasons)

    def _records(self, call: PlannedCall) -> RunRecords:
        records = RunRecords(self._session.run_id, self._masking, self._session.caller)
        records.secret_texts += secret_texts(call.tool.parameters, call.args)
        return records

    def _request_for(self, call: PlannedCall, attempt: int = 1) -> ToolCallRequest:
        return ToolCallRequest(
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            args=call.args,
            target_tool=call.tool,
            run_id=self._session.run_id,
            tool_call_id=call.call_id,
            attempt=attempt,
        )
