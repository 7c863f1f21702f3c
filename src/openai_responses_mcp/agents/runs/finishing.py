"""Finishing a run: what the engine gives back becomes a result, a pause or a failure, and is written down as such."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

from openai_responses_mcp.agents.runs.book import Run, RunBook
from openai_responses_mcp.agents.runs.models import RunEvent, RunResult
from openai_responses_mcp.agents.runs.pausing import PauseRun
from openai_responses_mcp.agents.runs.ports import EngineEvent, EngineOutcome
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.approvals.standing import StandingApprovals
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.stores import RunRecord

_logger = logging.getLogger("openai_responses_mcp.agents")

_REFUSALS = ("AGENTS-E-GATE-DENIED", "AGENTS-E-GUARDRAIL-DENIED")


class FinishRun:
    def __init__(
        self, pause: PauseRun, book: RunBook, audit: AuditLog, masking: Masking, standing: StandingApprovals
    ) -> None:
        self._pause = pause
        self._book = book
        self._audit = audit
        self._masking = masking
        self._standing = standing

    async def stream(
        self, run: Run, steps: AsyncGenerator[EngineEvent, None]
    ) -> AsyncGenerator[tuple[object, RunEvent], None]:
        """The SDK's own event next to each of ours. One that only the SDK has is `raw`; the last carries the result."""
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
            return self._result(run, outcome, await self._pause.pause(run, outcome.saved))
        await run.guard.context_for(outcome.last_agent).guardrails.check_output(outcome.output_text)
        await self._audit.flush()
        unsaved = await self._saved_as_done(run)
        self._book.forget(run.run_id)
        await self.end_session(run.record)
        return self._result(run, outcome, unsaved=unsaved)

    async def end_session(self, record: RunRecord) -> None:
        """What was allowed for this run ends with it. Only a run that has waited for a human can have such."""
        if record.status == "running":
            return
        try:
            await self._standing.end_session(record.run_id)
        except AgentsError as exc:
            # No other run has this id, so a standing approval that is left over allows nothing.
            _logger.warning("standing approvals for %s are not ended: %s", record.run_id, exc.message)

    async def _saved_as_done(self, run: Run) -> str | None:
        """Why the end of the run could not be stored. Its calls have been made, and their result must not be lost."""
        try:
            await self._book.save(run.record, "done")
        except StoreUnavailable as exc:
            if self._audit.is_required:
                raise
            _logger.warning(
                "AGENTS-E-LOG-STORE: %s; the run %s is over, and not stored as such", exc.message, run.run_id
            )
            return "the end of the run is not stored"
        return None

    async def _failed(self, run: Run, failure: AgentsError) -> AgentsError:
        self._book.forget(run.run_id)
        with suppress(AgentsError):  # the failure that is being reported matters more than the note about it
            await self._audit.settle(run.run_id)
        with suppress(AgentsError):
            await self._book.save(run.record, "denied" if failure.code in _REFUSALS else "failed")
        await self.end_session(run.record)
        return self._masking.error(failure, run.guard.secret_texts, run_id=run.run_id)

    async def _left(self, run: Run) -> None:
        """The run is no longer awaited: it has failed, unless it has paused and can be resumed."""
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
        extensions: dict[str, object] = {"policy_profile": run.guard.profile_name}
        unwritten = len(self._audit.unwritten)
        troubles = [unsaved, f"{unwritten} audit records are not written yet" if unwritten else None]
        if any(troubles):
            extensions["AGENTS-E-LOG-STORE"] = "; ".join(filter(None, troubles))
        return RunResult(
            run_id=run.run_id,
            output_text=outcome.output_text,
            messages=outcome.messages,
            tool_calls=run.guard.results,
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
