"""The runner that users hold: one method for each thing that they can ask for. The work is done in `runs`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest, HumanDecision, ResumeToken
from openai_responses_mcp.agents.audit.log import AuditLog
from openai_responses_mcp.agents.audit.models import ExecutionLog, LogVerification
from openai_responses_mcp.agents.doctor.diagnosis import Diagnosis
from openai_responses_mcp.agents.doctor.findings import AgentsStatus, DoctorReport
from openai_responses_mcp.agents.doctor.read_only_guard import ReadOnlyGuard
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonObject
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import PolicyProfile
from openai_responses_mcp.agents.runs.book import RunBook
from openai_responses_mcp.agents.runs.models import Extensions, Resumption, RunOptions, RunStatus, RunSummary
from openai_responses_mcp.agents.runs.ports import AgentEngine
from openai_responses_mcp.agents.runs.results import RunEvent, RunResult
from openai_responses_mcp.agents.runs.resuming import ResumeRun
from openai_responses_mcp.agents.runs.starting import StartRun
from openai_responses_mcp.agents.runs.watching import WatchRuns


@dataclass(frozen=True, slots=True)
class RunnerParts:
    """What a runner is made of; `create_runner` puts it together."""

    start: StartRun
    resume: ResumeRun
    watch: WatchRuns
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

    async def run(self, agent: object, input: object, options: RunOptions | None = None) -> RunResult:
        if _checked(options).stream:
            return await _result_of(self.stream_with_raw(agent, input, options))
        extensions = _extensions_of(agent, options)
        if (resumption := _resumption_in(extensions, agent, options)) is not None:
            return await self._parts.resume.run(resumption)
        return await self._parts.start.run(agent, input, options, extensions)

    def run_sync(self, agent: object, input: object, options: RunOptions | None = None) -> RunResult:
        """`run` where no event loop is running."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(agent, input, options))
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "run_sync is for code without an event loop; await run instead")

    async def run_stream(
        self, agent: object, input: object, options: RunOptions | None = None
    ) -> AsyncIterator[RunEvent]:
        """Broken stream: `AGENTS-E-STREAM`. The last event carries the `RunResult`."""
        async with aclosing(self.stream_with_raw(agent, input, options)) as events:
            async for _, event in events:
                if event.type != "raw":
                    yield event

    def stream_with_raw(
        self, agent: object, input: object, options: RunOptions | None = None
    ) -> AsyncGenerator[tuple[object, RunEvent], None]:
        """The same, with the SDK's own event next to each; one that callers of `run_stream` do not see is `raw`."""
        _checked(options)
        extensions = _extensions_of(agent, options)
        if (resumption := _resumption_in(extensions, agent, options)) is not None:
            return self._parts.resume.stream(resumption)
        return self._parts.start.stream(agent, input, options, extensions)

    # -----------------------------------------------------------------------------------------------------------------
    # Approving and resuming

    async def get_pending_approvals(self, run_id: str | None = None) -> list[HumanApprovalRequest]:
        if run_id is not None and await self._parts.book.get(run_id) is None:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", "There is no such run")
        return await self._parts.approvals.pending(run_id)

    async def submit_approval(
        self,
        approval_id: str,
        decision: HumanDecision,
        comment: str | None = None,
        *,
        tell_model: bool = False,
        arguments: JsonObject | None = None,
    ) -> ResumeToken:
        """A denial ends the run; with `tell_model` the model is told why, and the run goes on.

        With `arguments`, the call is approved with these instead of its own. They are judged again by every voice, and
        a human may be asked again.
        """
        return await self._parts.approvals.submit_decision(
            approval_id, decision, comment, tell_model=tell_model, arguments=arguments
        )

    async def resume_run(
        self, run_id: str, token: str | None = None, *, agent: object = None, options: RunOptions | None = None
    ) -> RunResult:
        """`agent` and `options` are needed only in another process than the one that started the run.

        Without a token the runner uses the decisions up itself: whoever can write to the store can decide anyway.
        """
        return await self._resumed(Resumption(run_id, token, agent, _sdk_of(options)), options)

    async def approve_and_resume(
        self,
        run_id: str,
        approval_id: str,
        *,
        decision: HumanDecision = "approve",
        comment: str | None = None,
        agent: object = None,
        options: RunOptions | None = None,
    ) -> RunResult:
        """Decide and resume in one step; with other calls of the turn undecided, those come back as interruptions."""
        wanted = Resumption(run_id, None, agent, _sdk_of(options))
        decided, waiting = await self._parts.resume.decide(wanted, approval_id, decision, comment)
        if waiting:
            return RunResult(run_id=run_id, interruptions=waiting)
        return await self._resumed(decided, options)

    async def _resumed(self, wanted: Resumption, options: RunOptions | None) -> RunResult:
        if options is not None and options.stream:
            return await _result_of(self._parts.resume.stream(wanted))
        return await self._parts.resume.run(wanted)

    async def wait_for_decision(self, run_id: str, timeout_seconds: float | None = None) -> list[HumanApprovalRequest]:
        """Until everything that the run waits for is decided, here or in another process; then `resume_run`.

        Not decided in time: `AGENTS-E-APPROVAL-INVALID`.
        """
        return await self._parts.watch.wait(run_id, timeout_seconds)

    # -----------------------------------------------------------------------------------------------------------------
    # Looking

    async def get_run(self, run_id: str) -> RunSummary:
        """Unknown: `AGENTS-E-APPROVAL-NOT-FOUND`."""
        return await self._parts.watch.get(run_id)

    async def list_runs(self, status: RunStatus | None = None) -> list[RunSummary]:
        """Oldest first."""
        return await self._parts.watch.list_runs(status)

    async def get_execution_logs(
        self, run_id: str | None = None, since: str | datetime | None = None
    ) -> list[ExecutionLog]:
        return await self._parts.audit.query(run_id, since)

    async def verify_execution_logs(self) -> LogVerification:
        return await self._parts.audit.verify()

    async def status(self, agent: object = None) -> AgentsStatus:
        """How this runner is set up, with the tools of the given agent, else of all agents with unfinished runs."""
        agents = [agent] if agent is not None else self._parts.book.agents
        tools = [tool for one in agents for tool in await self._parts.engine.describe(one, ReadOnlyGuard())]
        return await self._parts.diagnosis.status(tools)

    async def doctor(self, agent: object = None, *, skills: Sequence[str] = ()) -> DoctorReport:
        """Whether provider, store, folders of skills and the agent's MCP servers are there and answer."""
        return await self._parts.diagnosis.doctor(servers=getattr(agent, "mcp_servers", ()), skills=skills)

    async def set_policy_profile(self, profile: PolicyProfile) -> None:
        if not isinstance(profile, PolicyProfile):
            raise AgentsError("AGENTS-E-POLICY-INVALID", "set_policy_profile takes a PolicyProfile")
        await self._parts.policies.set_profile(profile)


def _checked(options: RunOptions | None) -> RunOptions:
    given: object = options
    if given is not None and not isinstance(given, RunOptions):
        message = f"options is RunOptions(...), not a {type(given).__name__}"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
    return options or RunOptions()


def _sdk_of(options: RunOptions | None) -> Mapping[str, object]:
    """The options of the SDK for a run that goes on."""
    if _checked(options).extensions is not None:
        message = "A run goes on under the rules that it was started with: give options without extensions"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
    return _checked(options).sdk


def _resumption_in(extensions: Extensions, agent: object, options: RunOptions | None) -> Resumption | None:
    resume = extensions.resume
    if resume is None:
        return None
    return Resumption(None, resume.token, agent, _checked(options).sdk, resume.human_response)


async def _result_of(events: AsyncGenerator[tuple[object, RunEvent], None]) -> RunResult:
    result: RunResult | None = None
    async with aclosing(events):
        async for _, event in events:
            result = event.result or result
    assert result is not None  # noqa: S101 - a stream's last event carries it
    return result


def _extensions_of(agent: object, options: RunOptions | None) -> Extensions:
    given = (options.extensions if options else None) or Extensions()
    kept = getattr(agent, "extensions", None)
    return given.joined_by(kept) if isinstance(kept, Extensions) else given
