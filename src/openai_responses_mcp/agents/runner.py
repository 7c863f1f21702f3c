"""The runner: starts runs, pauses them for a human, and resumes them, in this process or in another one.

A pause is written down in this order: the saved run, then its approvals, then the caller is told. A resume goes: check
the token, read the run back, compare what was approved with what is there, use the token up, run. Everything before
that last step but one changes nothing.
"""

import json
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from openai_responses_mcp.agents.approvals.controller import ApprovalController, new_pause_id
from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest, HumanDecision, ResumeToken
from openai_responses_mcp.agents.approvals.ports import ApprovalRecord
from openai_responses_mcp.agents.audit.log import AuditLog, unfinished
from openai_responses_mcp.agents.audit.models import ExecutionLog, LogVerification
from openai_responses_mcp.agents.calls import PlannedCall
from openai_responses_mcp.agents.clock import Clock, timestamp
from openai_responses_mcp.agents.doctor.diagnosis import Diagnosis
from openai_responses_mcp.agents.doctor.findings import AgentsStatus, DoctorReport
from openai_responses_mcp.agents.doctor.onlooker import Onlooker
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.guardrails import guardrails_of
from openai_responses_mcp.agents.gate.run_guard import Permit, RunGuard
from openai_responses_mcp.agents.gate.safety_gate import GateContext, SafetyGate
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import DEFAULT_PROFILE, PolicyProfile
from openai_responses_mcp.agents.runs.models import Extensions, RunEvent, RunOptions
from openai_responses_mcp.agents.runs.ports import (
    AgentEngine,
    EngineOptions,
    EngineOutcome,
    PausedRun,
    RunRecord,
    RunStateStore,
)
from openai_responses_mcp.agents.runs.results import RunResult
from openai_responses_mcp.agents.secrets.hashing import digest
from openai_responses_mcp.agents.secrets.masking import Masking
from openai_responses_mcp.agents.secrets.withholding import Withholding

_MOST_REMEMBERED = 1000
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class RunnerParts:
    """What a runner is made of; `create_runner` puts it together."""

    engine: AgentEngine
    gate: SafetyGate
    approvals: ApprovalController
    audit: AuditLog
    policies: PolicyStore
    runs: RunStateStore
    clock: Clock
    masking: Masking
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class _Run:
    """A run on its way: everything about it that is the same before and after a pause."""

    record: RunRecord
    agent: Any
    guard: RunGuard
    extensions: Extensions
    options: EngineOptions


class AgentRunner:
    def __init__(self, parts: RunnerParts) -> None:
        self._engine = parts.engine
        self._gate = parts.gate
        self._approvals = parts.approvals
        self._audit = parts.audit
        self._policies = parts.policies
        self._runs = parts.runs
        self._clock = parts.clock
        self._masking = parts.masking
        self._diagnosis = parts.diagnosis
        self._withholding = Withholding(parts.masking)
        # Agents and contexts are Python objects and cannot be stored; this process still has those of its own runs.
        self._remembered: OrderedDict[str, tuple[Any, Mapping[str, Any]]] = OrderedDict()

    # -----------------------------------------------------------------------------------------------------------------
    # Running

    async def run(self, agent: Any, input: Any, options: RunOptions | None = None) -> RunResult:
        extensions = _extensions_of(agent, options)
        if extensions.resume is not None:
            resume = extensions.resume
            return await self._resume(None, resume.token, agent, resume.human_response)
        run = await self._begin(agent, input, options, extensions)
        return await self._drive(run, self._started(run, input))

    async def run_stream(self, agent: Any, input: Any, options: RunOptions | None = None) -> AsyncIterator[RunEvent]:
        """Broken stream: `AGENTS-E-STREAM`. The last event carries the `RunResult`."""
        async with aclosing(self.stream_with_raw(agent, input, options)) as events:
            async for _, event in events:
                if event.type != "raw":
                    yield event

    async def stream_with_raw(
        self, agent: Any, input: Any, options: RunOptions | None = None
    ) -> AsyncGenerator[tuple[Any, RunEvent], None]:
        """The same, with the SDK's own event next to each; one that callers of `run_stream` do not see is `raw`."""
        run = await self._begin(agent, input, options, _extensions_of(agent, options))
        outcome: EngineOutcome | None = None
        failure: AgentsError | None = None
        try:
            engine_options = await self._ready(run, input)
            async with aclosing(self._engine.stream(agent, input, run.guard, engine_options)) as steps:
                async for step in steps:
                    outcome = step.outcome or outcome
                    if step.outcome is None:
                        yield step.raw, step.event or RunEvent("raw")
        except AgentsError as exc:
            failure = exc
        except GeneratorExit:
            # Nobody reads on, so that the run will not end well any more.
            await self._save(run.record, "failed")
            raise
        if failure is not None:
            raise await self._failed(run, failure)
        assert outcome is not None  # noqa: S101 - an engine's stream ends with its outcome
        result = await self._drive(run, _already(outcome))
        kind = "interrupted" if result.interruptions else "final_output"
        final = None if result.interruptions else getattr(result.sdk_result, "final_output", result.output_text)
        yield None, RunEvent(kind, final_output=final, result=result)

    async def _started(self, run: _Run, input: Any) -> EngineOutcome:
        return await self._engine.run(run.agent, input, run.guard, await self._ready(run, input))

    async def _ready(self, run: _Run, input: Any) -> EngineOptions:
        """What has to be settled before the engine starts: the input may pass, and what the caller asked for is known."""
        await guardrails_of(run.agent).check_input(_text_of(input))
        return replace(run.options, requested_calls=await self._requested(run))

    async def _requested(self, run: _Run) -> tuple[PlannedCall, ...]:
        calls = run.extensions.tool_calls
        if not calls:
            return ()
        catalog = {tool.name: tool for tool in await self._engine.describe(run.agent, run.guard)}
        # The model's API refuses dots: what is asked for as skill.list is offered as skill_list.
        found = [(catalog.get(call.tool_name) or catalog.get(call.tool_name.replace(".", "_")), call) for call in calls]
        unknown = [call.tool_name for tool, call in found if tool is None]
        if unknown:
            raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", f"{', '.join(unknown)} is no tool of this agent")
        return tuple(
            PlannedCall(f"call_{uuid.uuid4().hex}", tool, dict(call.args)) for tool, call in found if tool is not None
        )

    async def _begin(self, agent: Any, input: Any, options: RunOptions | None, extensions: Extensions) -> _Run:
        if not extensions.tool_calls and (not isinstance(input, str | list) or not input):
            raise AgentsError("AGENTS-E-RUNNER", "input is a text or a list with at least one item")
        run_id, now = f"run_{uuid.uuid4().hex}", self._now()
        record = RunRecord(run_id, "running", str(getattr(agent, "name", "")), created_at=now, updated_at=now)
        await self._runs.save(record)
        sdk = dict(options.sdk) if options else {}
        self._remember(run_id, agent, sdk)
        guard = self._guard(run_id, agent, extensions, _text_of(input))
        return _Run(record, agent, guard, extensions, EngineOptions(max_turns=extensions.max_turns, sdk=sdk))

    def _guard(self, run_id: str, agent: Any, extensions: Extensions, user_intent: str) -> RunGuard:
        context = GateContext(
            extensions.policy_profile or DEFAULT_PROFILE, extensions.require_human_approval, guardrails_of(agent)
        )
        return RunGuard(run_id, self._gate, self._audit, self._masking, context, user_intent)

    async def _drive(self, run: _Run, work: Awaitable[EngineOutcome]) -> RunResult:
        try:
            outcome = await work
            if outcome.saved is not None:
                return await self._pause(run, outcome)
            await guardrails_of(outcome.last_agent).check_output(outcome.output_text)
            await self._audit.flush()
            await self._save(run.record, "done")
            self._remembered.pop(run.record.run_id, None)
            return self._result(run, outcome)
        except AgentsError as exc:
            failure = exc
        raise await self._failed(run, failure)

    async def _failed(self, run: _Run, failure: AgentsError) -> AgentsError:
        self._remembered.pop(run.record.run_id, None)
        status = "denied" if failure.code in ("AGENTS-E-GATE-DENIED", "AGENTS-E-GUARDRAIL-DENIED") else "failed"
        with suppress(AgentsError):  # the failure that is being reported matters more than the note about it
            await self._save(run.record, status)
        return self._masking.error(failure, run_id=run.record.run_id)

    def _result(
        self, run: _Run, outcome: EngineOutcome, interruptions: list[HumanApprovalRequest] | None = None
    ) -> RunResult:
        return RunResult(
            run_id=run.record.run_id,
            output_text=outcome.output_text,
            messages=outcome.messages,
            tool_calls=run.guard.results,
            usage=outcome.usage,
            interruptions=interruptions or (),
            extensions=self._extensions_shown(run.guard.context.policy_profile),
            last_agent=outcome.last_agent,
            sdk_result=outcome.result,
        )

    def _extensions_shown(self, policy_profile: str) -> dict[str, Any]:
        shown: dict[str, Any] = {"policy_profile": policy_profile}
        if self._audit.unwritten:
            shown["AGENTS-E-LOG-STORE"] = f"{len(self._audit.unwritten)} audit records are not written yet"
        return shown

    # -----------------------------------------------------------------------------------------------------------------
    # Pausing

    async def _pause(self, run: _Run, outcome: EngineOutcome) -> RunResult:
        pause_id = new_pause_id()
        state = {
            "format": _FORMAT,
            "pause_id": pause_id,
            "engine": outcome.saved,
            "guard": run.guard.saved(),
            "user_intent": run.guard.user_intent,
            "policy_profile": run.guard.context.policy_profile,
            "require_human_approval": run.guard.context.require_human_approval,
            "max_turns": run.options.max_turns,
        }
        payload = json.dumps(self._withholding.take_out(state))
        await self._save(run.record, "paused", payload)
        requests = await self._approvals.create_approval_requests(
            run.record.run_id, run.guard.to_approve, pause_id=pause_id, state_hash=digest(payload)
        )
        return self._result(run, outcome, requests)

    # -----------------------------------------------------------------------------------------------------------------
    # Approving and resuming

    async def get_pending_approvals(self, run_id: str | None = None) -> list[HumanApprovalRequest]:
        if run_id is not None and await self._runs.get(run_id) is None:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", "There is no such run")
        return await self._approvals.pending(run_id)

    async def submit_approval(
        self, approval_id: str, decision: HumanDecision, comment: str | None = None
    ) -> ResumeToken:
        return await self._approvals.submit_decision(approval_id, decision, comment)

    async def resume_run(self, run_id: str, token: str, *, agent: Any = None) -> RunResult:
        return await self._resume(run_id, token, agent)

    async def approve_and_resume(
        self,
        run_id: str,
        approval_id: str,
        *,
        decision: HumanDecision = "approve",
        comment: str | None = None,
        agent: Any = None,
    ) -> RunResult:
        approval = await self._approvals.get(approval_id)
        if approval.request.run_id != run_id:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", "This run has no such approval")
        if approval.request.status == "pending" and decision == "approve":
            # A run that cannot be read back is better known before somebody's decision is spent on it.
            await self._read_back(approval, agent)
        token = await self._approvals.submit_decision(approval_id, decision, comment)
        waiting = await self._approvals.pending_of_pause(approval.pause_id)
        if waiting:
            return RunResult(run_id=run_id, interruptions=waiting)
        return await self._resume(run_id, token.token, agent)

    async def _resume(self, run_id: str | None, token: str, agent: Any, human_response: str | None = None) -> RunResult:
        approval = await self._checked(token, run_id)
        siblings = await self._approvals.of_pause(approval.pause_id)
        denied = [one.request for one in siblings if one.request.status == "denied"]
        if denied:
            raise await self._turned_down(token, approval, denied[0])
        run, paused = await self._read_back(approval, agent)
        for sibling in siblings:
            _check_unchanged(paused.calls, Permit(*_bound_to(sibling)))
        for permit in run.guard.permits.values():
            if not permit.has_started:
                _check_unchanged(paused.calls, permit)
        if human_response is not None:
            await self._approvals.respond(approval, human_response)
        await self._approvals.consume(token, approval)
        await self._save(run.record, "resuming")
        return await self._drive(run, paused.resume(human_response))

    async def _checked(self, token: str, run_id: str | None) -> ApprovalRecord:
        try:
            return await self._approvals.check_token(token, run_id)
        except AgentsError as exc:
            if exc.details.get("reason") == "used" and run_id is not None:
                exc.details.update(await self._unknown_outcomes(run_id))
            raise

    async def _unknown_outcomes(self, run_id: str) -> dict[str, object]:
        """What a token that is used up may have left behind: calls that started and of which nothing more is known."""
        started = unfinished(await self._audit.query(run_id))
        record = await self._runs.get(run_id)
        if not started and (record is None or record.status != "resuming"):
            return {}
        return {"outcome": "unknown", "tool_call_ids": [log.tool_call_id for log in started]}

    async def _turned_down(self, token: str, approval: ApprovalRecord, denied: HumanApprovalRequest) -> AgentsError:
        await self._approvals.consume(token, approval)
        record = await self._runs.get(denied.run_id)
        if record is not None:
            await self._save(record, "denied")
        self._remembered.pop(denied.run_id, None)
        said = f": {denied.comment}" if denied.comment else ""
        return AgentsError(
            "AGENTS-E-GATE-DENIED",
            f"A human denied {denied.tool_kind} {denied.tool_name}{said}",
            details={"approval_id": denied.approval_id, "tool_call_id": denied.tool_call_id},
        )

    async def _read_back(self, approval: ApprovalRecord, agent: Any) -> tuple[_Run, PausedRun]:
        """The paused run and its guard, with every call of the pause let through; changes nothing that is stored."""
        run_id = approval.request.run_id
        record = await self._runs.get(run_id)
        if record is None or digest(record.payload) != approval.state_hash:
            raise AgentsError("AGENTS-E-RESUME-TOKEN", "The saved run has been changed", details={"reason": "changed"})
        known_agent, sdk = self._remembered.get(run_id, (None, {}))
        agent = agent or known_agent
        if agent is None:
            message = "This process did not start the run: give the agent again with agent="
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
        state = self._withholding.put_back(_understood(record.payload))
        extensions = Extensions(
            policy_profile=state["policy_profile"],
            require_human_approval=state["require_human_approval"],
            max_turns=state["max_turns"],
        )
        guard = self._guard(run_id, agent, extensions, state["user_intent"])
        siblings = await self._approvals.of_pause(approval.pause_id)
        guard.restore(state["guard"], [Permit(*_bound_to(sibling)) for sibling in siblings])
        options = EngineOptions(max_turns=extensions.max_turns, sdk=sdk)
        paused = await self._engine.restore(agent, state["engine"], guard, options)
        return _Run(record, agent, guard, extensions, options), paused

    # -----------------------------------------------------------------------------------------------------------------
    # Looking

    async def get_execution_logs(
        self, run_id: str | None = None, since: str | datetime | None = None
    ) -> list[ExecutionLog]:
        return await self._audit.query(run_id, since)

    async def verify_execution_logs(self) -> LogVerification:
        return await self._audit.verify()

    async def status(self, agent: Any = None) -> AgentsStatus:
        """How this runner is set up, with the tools of the agent given, else of all whose runs are not over."""
        agents = [agent] if agent is not None else [known for known, _ in self._remembered.values()]
        return await self._diagnosis.status(
            [tool for one in agents for tool in await self._engine.describe(one, Onlooker())]
        )

    async def doctor(self, agent: Any = None, *, skills: Sequence[str] = ()) -> DoctorReport:
        """Whether provider, store, folders of skills and the agent's MCP servers are there and answer."""
        return await self._diagnosis.doctor(servers=getattr(agent, "mcp_servers", ()), skills=skills)

    async def set_policy_profile(self, profile: PolicyProfile) -> None:
        if not isinstance(profile, PolicyProfile):
            raise AgentsError("AGENTS-E-POLICY-INVALID", "set_policy_profile takes a PolicyProfile")
        await self._policies.set_profile(profile)

    # -----------------------------------------------------------------------------------------------------------------

    def _now(self) -> str:
        return timestamp(self._clock.now())

    async def _save(self, record: RunRecord, status: str, payload: str = "") -> None:
        await self._runs.save(replace(record, status=status, payload=payload, updated_at=self._now()))

    def _remember(self, run_id: str, agent: Any, sdk: Mapping[str, Any]) -> None:
        self._remembered[run_id] = (agent, sdk)
        while len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.popitem(last=False)


async def _already(outcome: EngineOutcome) -> EngineOutcome:
    return outcome


def _bound_to(approval: ApprovalRecord) -> tuple[str, str, str]:
    return approval.request.tool_call_id, approval.arguments_hash, approval.definition_hash


def _check_unchanged(calls: Mapping[str, PlannedCall], permit: Permit) -> None:
    call = calls.get(permit.call_id)
    if call is None or not permit.fits(call.tool, call.args):
        raise AgentsError(
            "AGENTS-E-RESUME-TOKEN",
            "The call, its arguments or the tool's definition changed after it was approved",
            details={"reason": "changed", "tool_call_id": permit.call_id},
        )


def _understood(payload: str) -> dict[str, Any]:
    try:
        state = json.loads(payload)
    except ValueError:
        state = None
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        reason = {"reason": "state_unreadable"}
        raise AgentsError("AGENTS-E-RUNNER", "The saved run is of a kind that this version cannot read", details=reason)
    return state


def _extensions_of(agent: Any, options: RunOptions | None) -> Extensions:
    """The run's own, else the agent's."""
    given = options.extensions if options else None
    kept = getattr(agent, "extensions", None)
    return given or (kept if isinstance(kept, Extensions) else Extensions())


def _text_of(input: Any) -> str:
    """What the user said, for guardrails and for judges that want it."""
    if isinstance(input, str):
        return input
    said = [item.get("content") for item in input or () if isinstance(item, Mapping) and item.get("role") == "user"]
    return "\n".join(content if isinstance(content, str) else json.dumps(content, default=str) for content in said)
