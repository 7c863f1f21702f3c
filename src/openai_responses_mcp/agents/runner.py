"""The runner that users call. The work is done in `runs`.

`configure` sets the runner for code that was written for the SDK and changes only its import.
"""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from openai_responses_mcp.agents.doctor import AgentsStatus, Diagnosis, DoctorReport
from openai_responses_mcp.agents.runs.book import RunBook, decided_requests
from openai_responses_mcp.agents.runs.ledger import RunLedgers
from openai_responses_mcp.agents.runs.models import Extensions, RunEvent, RunOptions, RunResult, RunSummary
from openai_responses_mcp.agents.runs.ports import NOTHING_SAID, AgentEngine, Resumption, Said
from openai_responses_mcp.agents.runs.resuming import CodeDecision, ResumeRun
from openai_responses_mcp.agents.runs.running import StartRun
from openai_responses_mcp.domain.texts import revealed, visible
from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest, HumanDecision, ResumeToken
from openai_responses_mcp.gate.approvals.standing import StandingApprovals, StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.audit.records import ExecutionLog, LogVerification
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.policy.rules import PolicyProfile, PolicyStore
from openai_responses_mcp.gate.stores import RunStatus


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
    ledgers: RunLedgers
    diagnosis: Diagnosis
    standing: StandingApprovals
    approver: "TerminalApprover | None" = None


class AgentRunner:
    def __init__(self, parts: RunnerParts) -> None:
        self._parts = parts

    # -----------------------------------------------------------------------------------------------------------------
    # Running

    async def run(self, agent: object, input: object, options: RunOptions | None = None) -> RunResult:
        return await _result_of(self.events(agent, input, _checked(options)))

    def run_sync(self, agent: object, input: object, options: RunOptions | None = None) -> RunResult:
        """`run`, for code without an event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(agent, input, options))
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "run_sync is for code without an event loop; await run instead")

    async def run_stream(
        self, agent: object, input: object, options: RunOptions | None = None
    ) -> AsyncIterator[RunEvent]:
        """The last event carries the `RunResult`. A broken stream raises `AGENTS-E-STREAM`."""
        async with aclosing(self.stream_with_raw(agent, input, options)) as events:
            async for _, event in events:
                if event.type != "raw":
                    yield event

    def stream_with_raw(
        self, agent: object, input: object, options: RunOptions | None = None
    ) -> AsyncGenerator[tuple[object, RunEvent], None]:
        """Each event of the SDK, paired with ours. Events that `run_stream` hides have the type `raw`."""
        return self.events(agent, input, replace(_checked(options), stream=True))

    def events(
        self, agent: object, input: object, options: RunOptions, state: object = None
    ) -> AsyncGenerator[tuple[object, RunEvent], None]:
        """As `stream_with_raw`, but the model streams only if `options` say so. `state` is a run state of the SDK."""
        extensions, own = options.extensions or Extensions(), getattr(agent, "extensions", None)
        if isinstance(own, Extensions):
            extensions = extensions.joined_by(own)
        if (resume := extensions.resume) is not None:
            wanted = Resumption(None, resume.token, agent, options.sdk, resume.human_response, options.stream)
            return self._with_approver(self._parts.resume.stream(wanted), wanted)
        wanted = Resumption(None, None, agent, options.sdk, is_streamed=options.stream)
        return self._with_approver(self._parts.start.stream(agent, input, options, extensions, state), wanted)

    async def _with_approver(
        self, steps: AsyncGenerator[tuple[object, RunEvent], None], wanted: Resumption
    ) -> AsyncGenerator[tuple[object, RunEvent], None]:
        """Pass the events on. With an approver, ask about interruptions and resume."""
        approver = self._parts.approver
        while True:
            paused: RunResult | None = None
            async with aclosing(steps):
                async for raw, event in steps:
                    if event.type == "interrupted" and approver is not None:
                        paused = event.result
                    else:
                        yield raw, event
            if paused is None or approver is None:
                return
            for request in paused.interruptions:
                await approver.decide(request, self._parts.approvals, self._parts.standing)
            steps = self._parts.resume.stream(replace(wanted, run_id=paused.run_id, token=None, said=NOTHING_SAID))

    # -----------------------------------------------------------------------------------------------------------------
    # Approving and resuming

    async def get_pending_approvals(self, run_id: str | None = None) -> list[HumanApprovalRequest]:
        if run_id is not None:
            await self._parts.book.summary(run_id)
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
        """A denial ends the run; with `tell_model` the model gets the comment, and the run goes on.

        With `arguments`, the call is approved with these instead of its own. They are judged again, and a human may be
        asked again.
        """
        return await self._parts.approvals.submit_decision(
            approval_id, decision, comment, tell_model=tell_model, arguments=arguments
        )

    async def resume_run(
        self, run_id: str, token: str | None = None, *, agent: object = None, options: RunOptions | None = None
    ) -> RunResult:
        """`agent` and `options` are only needed if another process started the run.

        No token is needed: any process that can write to the store can decide.
        """
        return await _result_of(self._parts.resume.stream(_resumption_of(run_id, token, agent, options)))

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
        """Decide and resume in one step. If other calls of the turn are undecided, return them as interruptions."""
        wanted = _resumption_of(run_id, None, agent, options)
        decided, waiting = await self._parts.resume.decide(wanted, approval_id, decision, comment)
        if waiting:
            return RunResult(run_id=run_id, interruptions=waiting)
        return await _result_of(self._parts.resume.stream(decided))

    async def decide_in_code(
        self, run_id: str, decisions: Mapping[str, CodeDecision], agent: object, options: RunOptions
    ) -> list[HumanApprovalRequest]:
        """For code written for the SDK. Returns what is still undecided."""
        return await self._parts.resume.decide_in_code(_resumption_of(run_id, None, agent, options), decisions)

    def stream_resumed(
        self, run_id: str, agent: object, options: RunOptions, said: Said
    ) -> AsyncGenerator[tuple[object, RunEvent], None]:
        """As `events`, for a paused run whose calls are decided."""
        wanted = replace(_resumption_of(run_id, None, agent, options), said=said, tools_may_be_gone=True)
        return self._with_approver(self._parts.resume.stream(wanted), wanted)

    async def wait_for_decision(self, run_id: str, timeout_seconds: float | None = None) -> list[HumanApprovalRequest]:
        """Wait until all calls of the pause are decided, here or in another process. Then call `resume_run`.

        Raises `AGENTS-E-APPROVAL-INVALID` if they are not decided in time.
        """
        return await decided_requests(self._parts.book, self._parts.approvals, run_id, timeout_seconds)

    # -----------------------------------------------------------------------------------------------------------------
    # Looking

    async def get_run(self, run_id: str) -> RunSummary:
        """Raises `AGENTS-E-APPROVAL-NOT-FOUND` if there is no such run."""
        return await self._parts.book.summary(run_id)

    async def list_runs(self, status: RunStatus | None = None) -> list[RunSummary]:
        """Oldest first."""
        return await self._parts.book.summaries(status)

    async def get_execution_logs(
        self, run_id: str | None = None, since: str | datetime | None = None
    ) -> list[ExecutionLog]:
        return await self._parts.audit.query(run_id, since)

    async def verify_execution_logs(self) -> LogVerification:
        return await self._parts.audit.verify()

    async def status(self, agent: object = None) -> AgentsStatus:
        """How this runner is set up, with the tools of the given agent, else of all agents with unfinished runs."""
        agents = [agent] if agent is not None else self._parts.book.agents
        look = self._parts.ledgers.looking_ledger()
        tools = [tool for one in agents for tool in await self._parts.engine.describe(one, look)]
        return await self._parts.diagnosis.status(tools)

    async def doctor(self, agent: object = None, *, skills: Sequence[str] = ()) -> DoctorReport:
        """Check the provider, the store, the skill folders and the agent's MCP servers."""
        servers = [(server.name, server.list_tools) for server in getattr(agent, "mcp_servers", ())]
        return await self._parts.diagnosis.doctor(servers=servers, skills=skills)

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


def _resumption_of(run_id: str, token: str | None, agent: object, options: RunOptions | None) -> Resumption:
    checked = _checked(options)
    if checked.extensions is not None:
        message = "A resumed run keeps the rules that it was started with: give options without extensions"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
    return Resumption(run_id, token, agent, checked.sdk, is_streamed=checked.stream)


async def _result_of(events: AsyncGenerator[tuple[object, RunEvent], None]) -> RunResult:
    result: RunResult | None = None
    async with aclosing(events):
        async for _, event in events:
            result = event.result or result
    assert result is not None  # noqa: S101 - a stream's last event carries it
    return result


# ---------------------------------------------------------------------------------------------------------------------
# The configured runner

# The runner, and whether code may approve; empty if none is configured.
_configured: list[tuple[AgentRunner, bool]] = []


def configure(runner: AgentRunner | None, *, allow_code_approval: bool = False) -> None:
    """Send `Runner.run`, `run_sync` and `run_streamed` through this runner; None undoes it.

    With `allow_code_approval`, `state.approve(item)` counts as an approval by code.
    """
    if runner is not None and not isinstance(runner, AgentRunner):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "configure takes a runner made by create_runner")
    _configured[:] = [] if runner is None else [(runner, allow_code_approval)]


def is_configured() -> bool:
    return bool(_configured)


def configured_runner() -> AgentRunner:
    if not _configured:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "No runner is configured: call configure(create_runner(...)) first")
    return _configured[0][0]


def may_code_approve() -> bool:
    return bool(_configured) and _configured[0][1]


def check_code_may_approve() -> None:
    if not may_code_approve():
        message = "Code may not approve calls: switch it on with configure(runner, allow_code_approval=True)"
        raise AgentsError("AGENTS-E-APPROVAL-INVALID", message)


async def run(
    agent: object, input: object, options: RunOptions | None = None, *, runner: AgentRunner | None = None
) -> RunResult:
    """`runner.run(agent, input, options)`. The default is the configured runner."""
    return await (runner or configured_runner()).run(agent, input, options)


# ---------------------------------------------------------------------------------------------------------------------
# y/N at the terminal: a call that needs a human is asked about right there, one at a time.

_CHOICES = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "s": "session", "": "no"}
_HELP = "y: run it once. n, or just Enter: do not run it, and tell the model. s: run it, and all calls of this tool in this run."


class TerminalApprover:
    def __init__(self) -> None:
        """`AGENTS-E-RUNNER-CONFIG` where there is no terminal."""
        if not (sys.stdin and sys.stdout and sys.stdin.isatty() and sys.stdout.isatty()):
            message = 'ask="terminal" needs a terminal at stdin and stdout; without one, decide with approve_and_resume'
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
        self._one_at_a_time = threading.Lock()

    async def decide(
        self, request: HumanApprovalRequest, approvals: ApprovalController, standing: StandingApprovals
    ) -> None:
        choice, comment = await self._choice(request), "at the terminal"
        if choice == "session":
            terms = StandingTerms(for_session=True)
            await approve_from_now_on(approvals, standing, request.approval_id, terms=terms, comment=comment)
        elif choice == "yes":
            await approvals.submit_decision(request.approval_id, "approve", comment)
        else:
            await approvals.submit_decision(request.approval_id, "deny", comment, tell_model=True)

    async def _choice(self, request: HumanApprovalRequest) -> str:
        """Ask in a daemon thread. With `asyncio.to_thread`, a program stopped by Ctrl-C would wait for Enter."""
        answer: Future[str] = Future()

        def ask() -> None:
            answer.set_running_or_notify_cancel()
            try:
                with self._one_at_a_time:
                    answer.set_result(_ask(request))
            except BaseException as exc:  # raised where it is awaited
                answer.set_exception(exc)

        threading.Thread(target=ask, daemon=True).start()
        return await asyncio.wrap_future(answer)


def _ask(request: HumanApprovalRequest) -> str:
    show(question(request))
    while True:
        typed = read_line("Let it run? [y/N/s/?] ")
        choice = "no" if typed is None else _CHOICES.get(typed.strip().lower())
        if choice is not None:
            return choice
        show(f"{_HELP}\n")


def question(request: HumanApprovalRequest) -> str:
    """The question text. Invisible and misleading characters from a model, a judge or a server are escaped."""
    call = f"{request.tool_kind} {request.tool_name} {json.dumps(dict(request.arguments), ensure_ascii=False)}"
    parts = [request.prompt, request.tool_description, request.definition_change, call]
    return revealed("\n".join(["", *filter(None, parts), ""]))


def read_line(prompt: str) -> str | None:
    """None at the end of the input."""
    try:
        return input(prompt)
    except EOFError:
        show("\n")
        return None


def show(text: str) -> None:
    sys.stdout.write(visible(text))
    sys.stdout.flush()
