"""The runner that users hold: one method for each thing that they can ask for. The work is done in `runs`."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest, HumanDecision, ResumeToken
from openai_responses_mcp.agents.audit.log import AuditLog
from openai_responses_mcp.agents.audit.models import ExecutionLog, LogVerification
from openai_responses_mcp.agents.doctor.diagnosis import Diagnosis
from openai_responses_mcp.agents.doctor.findings import AgentsStatus, DoctorReport
from openai_responses_mcp.agents.doctor.read_only_guard import ReadOnlyGuard
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import PolicyProfile
from openai_responses_mcp.agents.runs.book import RunBook
from openai_responses_mcp.agents.runs.models import Extensions, RunEvent, RunOptions
from openai_responses_mcp.agents.runs.ports import AgentEngine
from openai_responses_mcp.agents.runs.results import RunResult
from openai_responses_mcp.agents.runs.resuming import ResumeRun
from openai_responses_mcp.agents.runs.starting import StartRun


@dataclass(frozen=True, slots=True)
class RunnerParts:
    """What a runner is made of; `create_runner` puts it together."""

    start: StartRun
    resume: ResumeRun
    approvals: ApprovalController
    audit: AuditLog
    policies: PolicyStore
    book: RunBook
    engine: AgentEngine
    diagnosis: Diagnosis


class AgentRunner:
    def __init__(self, parts: RunnerParts) -> None:
        self._parts = parts

    # -----------------------------------------------------------------------------------------------------------------
    # Running

    async def run(self, agent: Any, input: Any, options: RunOptions | None = None) -> RunResult:
        extensions = _extensions_of(agent, options)
        if (resume := extensions.resume) is not None:
            return await self._parts.resume.run(None, resume.token, agent, resume.human_response)
        return await self._parts.start.run(agent, input, options, extensions)

    async def run_stream(self, agent: Any, input: Any, options: RunOptions | None = None) -> AsyncIterator[RunEvent]:
        """Broken stream: `AGENTS-E-STREAM`. The last event carries the `RunResult`."""
        async with aclosing(self.stream_with_raw(agent, input, options)) as events:
            async for _, event in events:
                if event.type != "raw":
                    yield event

    def stream_with_raw(
        self, agent: Any, input: Any, options: RunOptions | None = None
    ) -> AsyncGenerator[tuple[Any, RunEvent], None]:
        """The same, with the SDK's own event next to each; one that callers of `run_stream` do not see is `raw`."""
        extensions = _extensions_of(agent, options)
        if (resume := extensions.resume) is not None:
            return self._parts.resume.stream(None, resume.token, agent, resume.human_response)
        return self._parts.start.stream(agent, input, options, extensions)

    # -----------------------------------------------------------------------------------------------------------------
    # Approving and resuming

    async def get_pending_approvals(self, run_id: str | None = None) -> list[HumanApprovalRequest]:
        if run_id is not None and await self._parts.book.get(run_id) is None:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", "There is no such run")
        return await self._parts.approvals.pending(run_id)

    async def submit_approval(
        self, approval_id: str, decision: HumanDecision, comment: str | None = None
    ) -> ResumeToken:
        return await self._parts.approvals.submit_decision(approval_id, decision, comment)

    async def resume_run(self, run_id: str, token: str, *, agent: Any = None) -> RunResult:
        return await self._parts.resume.run(run_id, token, agent)

    async def approve_and_resume(
        self,
        run_id: str,
        approval_id: str,
        *,
        decision: HumanDecision = "approve",
        comment: str | None = None,
        agent: Any = None,
    ) -> RunResult:
        return await self._parts.resume.approve(run_id, approval_id, decision, comment, agent)

    # -----------------------------------------------------------------------------------------------------------------
    # Looking

    async def get_execution_logs(
        self, run_id: str | None = None, since: str | datetime | None = None
    ) -> list[ExecutionLog]:
        return await self._parts.audit.query(run_id, since)

    async def verify_execution_logs(self) -> LogVerification:
        return await self._parts.audit.verify()

    async def status(self, agent: Any = None) -> AgentsStatus:
        """How this runner is set up, with the tools of the agent given, else of all whose runs are not over."""
        agents = [agent] if agent is not None else self._parts.book.agents
        tools = [tool for one in agents for tool in await self._parts.engine.describe(one, ReadOnlyGuard())]
        return await self._parts.diagnosis.status(tools)

    async def doctor(self, agent: Any = None, *, skills: Sequence[str] = ()) -> DoctorReport:
        """Whether provider, store, folders of skills and the agent's MCP servers are there and answer."""
        return await self._parts.diagnosis.doctor(servers=getattr(agent, "mcp_servers", ()), skills=skills)

    async def set_policy_profile(self, profile: PolicyProfile) -> None:
        if not isinstance(profile, PolicyProfile):
            raise AgentsError("AGENTS-E-POLICY-INVALID", "set_policy_profile takes a PolicyProfile")
        await self._parts.policies.set_profile(profile)


def _extensions_of(agent: Any, options: RunOptions | None) -> Extensions:
    given = (options.extensions if options else None) or Extensions()
    kept = getattr(agent, "extensions", None)
    return given.joined_by(kept) if isinstance(kept, Extensions) else given
