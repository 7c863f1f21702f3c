"""Starting and finishing a run.

Before the engine starts, the guardrails check the input, and the tools that the caller requested are looked up. In the
end the run is stored as done, paused, denied or failed.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

from openai_responses_mcp.agents.runs.book import PausedRuns, Run, RunBook
from openai_responses_mcp.agents.runs.ledger import RunLedgers
from openai_responses_mcp.agents.runs.models import Extensions, RunEvent, RunOptions, RunResult
from openai_responses_mcp.agents.runs.ports import AgentEngine, EngineEvent, EngineOptions, EngineOutcome
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.approvals.standing import StandingApprovals
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.calls import PlannedCall
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.guardrails import guardrails_of
from openai_responses_mcp.gate.json_values import words_of
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.stores import RunRecord

_logger = logging.getLogger("openai_responses_mcp.agents")

_REFUSALS = ("AGENTS-E-GATE-DENIED", "AGENTS-E-GUARDRAIL-DENIED")


class FinishRun:
    def __init__(
        self, paused: PausedRuns, book: RunBook, audit: AuditLog, masking: Masking, standing: StandingApprovals
    ) -> None:
        self._paused = paused
        self._book = book
        self._audit = audit
        self._masking = masking
        self._standing = standing

    async def stream(
        self, run: Run, steps: AsyncGenerator[EngineEvent, None]
    ) -> AsyncGenerator[tuple[object, RunEvent], None]:
        """Pairs of the SDK's event and ours. Ours is `raw` if only the SDK has one; the last carries the result."""
        try:
            outcome: EngineOutcome | None = None
            async with aclosing(steps):
                async for step in steps:
                    outcome = step.outcome or outcome
                    if step.outcome is None:
                        yield step.raw, step.event or RunEvent("raw")
            assert outcome is not None  # noqa: S101 - an engine's stream ends with its outcome
            result = await self._ended(run, outcome)
        except AgentsError as exc:
            failure = exc
        except (GeneratorExit, asyncio.CancelledError):
            await self._left(run)
            raise
        else:
            yield None, _last_event(result)
            return
        raise await self._failed(run, failure)

    async def _ended(self, run: Run, outcome: EngineOutcome) -> RunResult:
        await self._audit.settle(run.run_id)
        if outcome.saved is not None:
            return self._result(run, outcome, await self._paused.pause(run, outcome.saved))
        await run.ledger.context_for(outcome.last_agent).guardrails.check_output(outcome.output_text)
        await self._audit.flush()
        unsaved: str | None = None
        try:
            await self._book.save(run.record, "done")
        except StoreUnavailable as exc:
            # The calls were made, so their result must not be lost.
            if self._audit.is_required:
                raise
            _logger.warning(
                "AGENTS-E-LOG-STORE: %s; the run %s is done, but not stored as done", exc.message, run.run_id
            )
            unsaved = "the end of the run is not stored"
        self._book.forget(run.run_id)
        await self.end_session(run.record)
        return self._result(run, outcome, unsaved=unsaved)

    async def end_session(self, record: RunRecord) -> None:
        """End the approvals that hold for this run. Only a run that was paused can have any."""
        if record.status == "running":
            return
        try:
            await self._standing.end_session(record.run_id)
        except AgentsError as exc:
            # No other run has this id, so a standing approval that is left over allows nothing.
            _logger.warning("standing approvals for %s could not be ended: %s", record.run_id, exc.message)

    async def _failed(self, run: Run, failure: AgentsError) -> AgentsError:
        self._book.forget(run.run_id)
        with suppress(AgentsError):  # the failure itself matters more than its record
            await self._audit.settle(run.run_id)
        with suppress(AgentsError):
            await self._book.save(run.record, "denied" if failure.code in _REFUSALS else "failed")
        await self.end_session(run.record)
        return self._masking.error(failure, run.ledger.secret_texts, run_id=run.run_id)

    async def _left(self, run: Run) -> None:
        """The caller stopped waiting. The run counts as failed, unless it is paused and can be resumed."""
        with suppress(AgentsError):
            await self._audit.settle(run.run_id)
        with suppress(AgentsError):
            known = await self._book.get(run.run_id)
            if known is not None and known.status == "paused":
                return
            await self._book.save(run.record, "failed")
        self._book.forget(run.run_id)
        await self.end_session(run.record)

    def _result(
        self,
        run: Run,
        outcome: EngineOutcome,
        interruptions: Sequence[HumanApprovalRequest] = (),
        unsaved: str | None = None,
    ) -> RunResult:
        extensions: dict[str, object] = {"policy_profile": run.ledger.profile_name}
        unwritten = len(self._audit.unwritten)
        records = "1 audit record is" if unwritten == 1 else f"{unwritten} audit records are"
        troubles = [unsaved, f"{records} not written yet" if unwritten else None]
        if any(troubles):
            extensions["AGENTS-E-LOG-STORE"] = "; ".join(filter(None, troubles))
        return RunResult(
            run_id=run.run_id,
            output_text=outcome.output_text,
            messages=outcome.messages,
            tool_calls=run.ledger.results,
            usage=outcome.usage,
            interruptions=interruptions,
            extensions=extensions,
            last_agent=outcome.last_agent,
            sdk_result=outcome.result,
        )


def _last_event(result: RunResult) -> RunEvent:
    if result.interruptions:
        return RunEvent("interrupted", result=result)
    final = getattr(result.sdk_result, "final_output", result.output_text)
    return RunEvent("final_output", final_output=final, result=result)


class StartRun:
    def __init__(self, engine: AgentEngine, book: RunBook, ledgers: RunLedgers, finish: FinishRun) -> None:
        self._engine = engine
        self._book = book
        self._ledgers = ledgers
        self._finish = finish

    async def stream(
        self, agent: object, input: object, options: RunOptions, extensions: Extensions, state: object = None
    ) -> AsyncGenerator[tuple[object, RunEvent], None]:
        """With a `state` of the engine the run continues from there, and `input` is its original input."""
        if state is None and not extensions.tool_calls and (not isinstance(input, str | list) or input == ""):
            message = f"input is a text or a list of items, not {type(input).__name__}"
            if isinstance(input, str):
                message = "input is empty"
            if type(input).__name__ == "RunState":
                message = "Resume a RunState with Runner.run, or with approve_and_resume(run_id, approval_id)"
            raise AgentsError("AGENTS-E-RUNNER", message)
        sdk = dict(options.sdk)
        record = await self._book.begin(agent, sdk)
        ledger = self._ledgers.ledger_for(record.run_id, agent, extensions, words_of(input))
        engine_options = EngineOptions(max_turns=extensions.max_turns, sdk=sdk, is_streamed=options.stream, state=state)
        run = Run(record, agent, ledger, extensions, engine_options)
        async with aclosing(self._finish.stream(run, self._steps(run, input))) as events:
            async for event in events:
                yield event

    async def _steps(self, run: Run, input: object) -> AsyncGenerator[EngineEvent, None]:
        await guardrails_of(run.agent).check_input(words_of(input))
        options = replace(run.options, requested_calls=await self._requested(run))
        async with aclosing(self._engine.stream(run.agent, input, run.ledger, options)) as steps:
            async for step in steps:
                yield step

    async def _requested(self, run: Run) -> tuple[PlannedCall, ...]:
        calls = run.extensions.tool_calls
        if not calls:
            return ()
        described = await self._engine.describe(run.agent, run.ledger, run.options.sdk.get("context"))
        catalog = {tool.name: tool for tool in described}
        # The model's API refuses dots in names: the tool for skill.list is called skill_list.
        found = [(catalog.get(call.tool_name) or catalog.get(call.tool_name.replace(".", "_")), call) for call in calls]
        unknown = [call.tool_name for tool, call in found if tool is None]
        if unknown:
            raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", f"This agent has no tool {', '.join(unknown)}")
        return tuple(
            PlannedCall(f"call_{uuid.uuid4().hex}", tool, dict(call.args)) for tool, call in found if tool is not None
        )
