"""Pausing a run: first the saved run is stored, then its approvals, and only then the caller is told.

A crash in between leaves a run that nobody can resume, never an approval without its run.
"""

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest
from openai_responses_mcp.agents.approvals.pauses import Pause
from openai_responses_mcp.agents.json_values import JsonObject
from openai_responses_mcp.agents.runs.book import Run, RunBook
from openai_responses_mcp.agents.runs.saved_state import SavedStates
from openai_responses_mcp.agents.secrets.hashing import digest


class PauseRun:
    def __init__(self, book: RunBook, approvals: ApprovalController, states: SavedStates) -> None:
        self._book = book
        self._approvals = approvals
        self._states = states

    async def pause(self, run: Run, engine_state: JsonObject) -> list[HumanApprovalRequest]:
        payload = self._states.written(run, engine_state)
        await self._book.save(run.record, "paused", payload)
        pause = Pause(state_hash=digest(payload))
        for waiting in run.guard.to_approve:
            await self._approvals.create_approval_request(
                run.run_id, waiting.decision, call=waiting.call, pause=pause, attempt=waiting.attempt
            )
        return await self._approvals.open_pause(pause)
