"""Reading a paused run back from its store, with its guard. Changes nothing that is stored."""

from collections.abc import Mapping, Sequence

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.approvals.ports import ApprovalRecord
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.call_table import HumanAnswer, Permit
from openai_responses_mcp.agents.runs.book import Run, RunBook
from openai_responses_mcp.agents.runs.models import Extensions
from openai_responses_mcp.agents.runs.ports import AgentEngine, EngineOptions, PausedRun
from openai_responses_mcp.agents.runs.run_guards import RunGuards
from openai_responses_mcp.agents.runs.saved_state import SavedStates
from openai_responses_mcp.agents.secrets.hashing import digest


class ReadRunBack:
    def __init__(
        self, engine: AgentEngine, book: RunBook, approvals: ApprovalController, guards: RunGuards, states: SavedStates
    ) -> None:
        self._engine = engine
        self._book = book
        self._approvals = approvals
        self._guards = guards
        self._states = states

    async def read(self, approval: ApprovalRecord, agent: object, sdk: Mapping[str, object]) -> tuple[Run, PausedRun]:
        """The run that waits for this approval; once its whole pause is answered, its guard knows the answers.

        Raises `AGENTS-E-RESUME-TOKEN` when the saved run was changed and `AGENTS-E-RUNNER-CONFIG` when something that
        the run was started with is not known here and was not given again.
        """
        run_id = approval.request.run_id
        record = await self._book.get(run_id)
        if record is None or digest(record.payload) != approval.state_hash:
            raise AgentsError("AGENTS-E-RESUME-TOKEN", "The saved run has been changed", details={"reason": "changed"})
        known = self._book.remembered(run_id)
        agent = agent or known.agent
        if agent is None:
            message = "This process did not start the run: give the agent again with agent="
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
        state = self._states.read(record.payload)
        extensions = Extensions(
            policy_profile=state["policy_profile"],
            require_human_approval=state["require_human_approval"],
            max_turns=state["max_turns"],
            max_tool_calls=state.get("max_tool_calls"),
            max_tokens=state.get("max_tokens"),
        )
        guard = self._guards.guard_for(run_id, agent, extensions, state["user_intent"])
        records = await self._approvals.of_pause(approval.pause_id)
        guard.restore(state["guard"], [answer_of(one) for one in records if one.request.status != "pending"])
        given = {**state["sdk"], **known.sdk, **sdk}
        _check_complete(given, state["sdk_objects"])
        options = EngineOptions(max_turns=extensions.max_turns, sdk=given)
        paused = await self._engine.restore(agent, state["engine"], guard, options)
        return Run(record, agent, guard, extensions, options, state["engine"]), paused


def _check_complete(sdk: Mapping[str, object], needed: Sequence[str]) -> None:
    missing = [name for name in needed if sdk.get(name) is None]
    if missing:
        names = ", ".join(missing)
        message = f"This process did not start the run: give its {names} again with options=RunOptions(sdk={{...}})"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message, details={"missing": missing})


def answer_of(approval: ApprovalRecord) -> HumanAnswer:
    request = approval.request
    said = f": {request.comment}" if request.comment else ""
    return HumanAnswer(
        permit_of(approval),
        asked=request.reason,
        attempt=approval.attempt,
        told=f"A human refused this call{said}" if request.status == "denied" else None,
        changed=request.changed_arguments,
        shown=request.arguments,
    )


def permit_of(approval: ApprovalRecord) -> Permit:
    return Permit(approval.request.tool_call_id, approval.arguments_hash, approval.definition_hash)
