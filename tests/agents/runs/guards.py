"""A guard on stores in memory, for tests of the guard itself."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.gate.audit.log import AuditLog, AuditMode
from openai_responses_mcp.gate.audit.records import ExecutionLogStore
from openai_responses_mcp.gate.budgets import SessionBudget
from openai_responses_mcp.gate.call_table import CallState, HumanAnswer, Permit
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.safety_gate import GateContext, Judge, SafetyGate
from openai_responses_mcp.gate.secrets.masking import Masking
from tests.agents.fake_stores import FakeBudgetStore, FakeExecutionLogStore, FakePolicyStore
from tests.agents.fakes import ASK, DENY, FakeClock, FakeJudge

MASKING = Masking({"MY_API_KEY": "hunter2hunter2"})


def guard_on(
    store: ExecutionLogStore, judge: Judge, context: GateContext | None = None, mode: AuditMode = "best_effort"
) -> RunLedger:
    return guard_with(audit_on(store, mode), judge, context)


def audit_on(store: ExecutionLogStore, mode: AuditMode = "best_effort") -> AuditLog:
    return AuditLog(store, FakeClock(), MASKING, mode)


def guard_with(audit: AuditLog, judge: Judge, context: GateContext | None = None) -> RunLedger:
    gate = SafetyGate(judge, FakePolicyStore())
    return RunLedger("r1", gate, audit, MASKING, context or GateContext("fast"), no_budget(), "what the user typed")


def no_budget() -> SessionBudget:
    return SessionBudget(FakeBudgetStore(), FakeClock(), "r1", list)


class NotingLedger(RunLedger):
    """The ledger of a run whose judge asks a human about some tools and denies others. `events` says what engines report."""

    def __init__(self, *, asks: Collection[str] = (), denies: Collection[str] = ()) -> None:
        judge = FakeJudge()
        for name in (*asks, *denies):
            judge.on(name, ASK if name in asks else DENY)
        gate, audit = SafetyGate(judge, FakePolicyStore()), audit_on(FakeExecutionLogStore())
        super().__init__("r1", gate, audit, MASKING, GateContext("fast"), no_budget())
        self.events: list[str] = []
        self.judged: list[tuple[Any, list[PlannedCall], list[ToolDescription]]] = []
        self.tokens: list[int] = []
        self._again = {"asks": asks, "denies": denies}

    def resumed(
        self, *, told: Mapping[str, str] | None = None, changed: Mapping[str, Mapping[str, Any]] | None = None
    ) -> "NotingLedger":
        """The ledger of the same run after every call that waited was approved, except those in `told` and `changed`."""
        again = NotingLedger(**self._again)
        answers = [
            HumanAnswer(
                Permit.of(asked.call),
                asked.decision.reasons,
                told=(told or {}).get(asked.call.call_id),
                changed=(changed or {}).get(asked.call.call_id),
                shown=asked.call.args,
            )
            for asked in self.to_approve
        ]
        again.restore(json.loads(json.dumps(self.saved())), answers)
        return again

    async def judge(self, agent: object, calls: Sequence[PlannedCall], catalog: Sequence[ToolDescription]) -> None:
        fresh = [call for call in calls if self._calls[call.call_id].state is CallState.UNKNOWN]
        if fresh:
            self.judged.append((agent, fresh, list(catalog)))
            self.events.append(f"judged {', '.join(call.tool.name for call in fresh)}")
        await super().judge(agent, calls, catalog)

    async def starting(self, call_id: str, tool: ToolDescription, args: JsonObject) -> None:
        await super().starting(call_id, tool, args)
        self.events.append(f"started {call_id}")

    async def finished(self, call_id: str, output: JsonValue, error: str | None = None) -> None:
        await super().finished(call_id, output, error)
        if self.result_of(call_id) is not None:
            self.events.append(f"finished {call_id}" if error is None else f"failed {call_id}")

    async def used_tokens(self, tokens: int) -> None:
        self.tokens.append(tokens)
