"""Records of runs, the Python objects of this process's runs, and how a paused run is saved and read back.

Agents and contexts are Python objects and cannot be stored. This process remembers those of its latest runs, so that a
caller who resumes one here need not pass them again.

The saved run is stored first, then its approvals; only then does the caller get them. A crash in between leaves a run
that cannot be resumed, never an approval without its run.
"""

import asyncio
import json
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast, get_args

from openai_responses_mcp.agents.runs.ledger import RunLedger, RunLedgers
from openai_responses_mcp.agents.runs.models import Extensions, RunSummary
from openai_responses_mcp.agents.runs.ports import AgentEngine, EngineOptions, PausedRun, Resumption
from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.decisions import Pause
from openai_responses_mcp.gate.approvals.models import ApprovalRecord, HumanApprovalRequest
from openai_responses_mcp.gate.call_table import HumanAnswer, Permit
from openai_responses_mcp.gate.clock import Clock, timestamp
from openai_responses_mcp.gate.errors import AgentsError, require
from openai_responses_mcp.gate.json_values import JsonObject, OwnJson, digest
from openai_responses_mcp.gate.secrets.withholding import Withholding
from openai_responses_mcp.gate.stores import RunRecord, RunStateStore, RunStatus

MOST_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Run:
    """A run in progress: everything that stays the same across a pause.

    `engine_state` is what the engine saved; it is empty unless the run was read back.
    """

    record: RunRecord
    agent: object
    ledger: RunLedger
    extensions: Extensions
    options: EngineOptions
    engine_state: OwnJson = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return self.record.run_id


@dataclass(frozen=True, slots=True)
class Remembered:
    """The agent and the SDK options that this process started a run with."""

    agent: object = None
    sdk: Mapping[str, object] = field(default_factory=dict)


class RunBook:
    def __init__(self, store: RunStateStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._remembered: OrderedDict[str, Remembered] = OrderedDict()

    async def begin(self, agent: object, sdk: Mapping[str, object]) -> RunRecord:
        """Store and remember a new run under a new id."""
        now = timestamp(self._clock.now())
        name = str(getattr(agent, "name", ""))
        record = RunRecord(f"run_{uuid.uuid4().hex}", "running", name, created_at=now, updated_at=now)
        await self._store.begin(record)
        self.remember(record.run_id, Remembered(agent, sdk))
        return record

    async def get(self, run_id: str) -> RunRecord | None:
        return await self._store.get(run_id)

    async def summary(self, run_id: str) -> RunSummary:
        record = await self.get(run_id)
        if record is None:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", "There is no such run")
        return _summary(record)

    async def summaries(self, status: RunStatus | None = None) -> list[RunSummary]:
        known = get_args(RunStatus)
        require(status is None or status in known, "AGENTS-E-RUNNER-CONFIG", f"status is one of {', '.join(known)}")
        return [_summary(record) for record in await self._store.list_runs(status)]

    async def save(self, record: RunRecord, status: RunStatus, payload: str = "") -> None:
        now = timestamp(self._clock.now())
        await self._store.save(replace(record, status=status, payload=payload, updated_at=now))

    def remember(self, run_id: str, known: Remembered) -> None:
        self._remembered[run_id] = known
        while len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)

    def remembered(self, run_id: str) -> Remembered:
        return self._remembered.get(run_id, Remembered())

    def forget(self, run_id: str) -> None:
        self._remembered.pop(run_id, None)

    @property
    def agents(self) -> list[object]:
        """The agents of the remembered runs. Runs that have ended are forgotten."""
        return [known.agent for known in self._remembered.values()]


def _summary(record: RunRecord) -> RunSummary:
    return RunSummary(record.run_id, record.status, record.agent_name, record.created_at, record.updated_at)


# ---------------------------------------------------------------------------------------------------------------------
# Waiting for decisions

SECONDS_BETWEEN_LOOKS = 0.5


async def decided_requests(
    book: RunBook, approvals: ApprovalController, run_id: str, timeout_seconds: float | None
) -> list[HumanApprovalRequest]:
    """Wait until the newest pause is decided, and return its requests. A timeout is `AGENTS-E-APPROVAL-INVALID`."""
    is_valid = timeout_seconds is None or (type(timeout_seconds) in (int, float) and timeout_seconds >= 0)
    require(is_valid, "AGENTS-E-RUNNER-CONFIG", "timeout_seconds must be a number, 0 or greater")
    await book.summary(run_id)
    waiting = await approvals.pending(run_id)
    try:
        async with asyncio.timeout(timeout_seconds):
            while waiting:
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
                waiting = await approvals.pending(run_id)
    except TimeoutError:
        raise AgentsError(
            "AGENTS-E-APPROVAL-INVALID",
            "No decision in time",
            details={"reason": "timeout", "approval_ids": [request.approval_id for request in waiting]},
        ) from None
    return [record.request for record in await approvals.of_newest_pause(run_id)]


# ---------------------------------------------------------------------------------------------------------------------
# Paused runs

_FORMAT = 3
# SDK options that can be stored and used by another process. The context is not: it belongs to the caller.
_STORABLE = ("max_turns", "previous_response_id", "auto_previous_response_id", "conversation_id")


class PausedRuns:
    """Saves runs that wait for a human, and reads them back."""

    def __init__(
        self,
        engine: AgentEngine,
        book: RunBook,
        approvals: ApprovalController,
        ledgers: RunLedgers,
        withholding: Withholding,
    ) -> None:
        self._engine = engine
        self._book = book
        self._approvals = approvals
        self._ledgers = ledgers
        self._withholding = withholding

    async def pause(self, run: Run, engine_state: JsonObject) -> list[HumanApprovalRequest]:
        payload = self._payload(run, engine_state)
        await self._book.save(run.record, "paused", payload)
        pause = Pause(state_hash=digest(payload))
        for waiting in run.ledger.to_approve:
            await self._approvals.create_approval_request(
                run.run_id, waiting.decision, call=waiting.call, pause=pause, attempt=waiting.attempt
            )
        return await self._approvals.open_pause(pause)

    async def read(self, approval: ApprovalRecord, wanted: Resumption) -> tuple[Run, PausedRun]:
        """The run that waits for this approval. Its ledger applies the answers once every call of the pause has one.

        Raises `AGENTS-E-RESUME-TOKEN` if the saved run was changed, and `AGENTS-E-RUNNER-CONFIG` if the run was started
        with something that this process does not know and the caller did not pass again.
        """
        run_id = approval.request.run_id
        record = await self._book.get(run_id)
        if record is None or digest(record.payload) != approval.state_hash:
            raise AgentsError("AGENTS-E-RESUME-TOKEN", "The saved run has been changed", details={"reason": "changed"})
        known = self._book.remembered(run_id)
        agent = wanted.agent or known.agent
        if agent is None:
            message = "This process did not start the run: give the agent again with agent="
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
        state = self._state_in(record.payload)
        extensions = Extensions(
            policy_profile=state["policy_profile"],
            require_human_approval=state["require_human_approval"],
            max_turns=state["max_turns"],
            max_tool_calls=state.get("max_tool_calls"),
            max_tokens=state.get("max_tokens"),
        )
        ledger = self._ledgers.ledger_for(run_id, agent, extensions, state["user_intent"])
        records = await self._approvals.of_pause(approval.pause_id)
        ledger.restore(state["guard"], [_answer_of(one) for one in records if one.request.status != "pending"])
        given = {**state["sdk"], **known.sdk, **wanted.sdk}
        if missing := [name for name in state["sdk_objects"] if given.get(name) is None]:
            names = ", ".join(missing)
            message = f"This process did not start the run: give its {names} again with options=RunOptions(sdk={{...}})"
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", message, details={"missing": missing})
        options = EngineOptions(max_turns=extensions.max_turns, sdk=given, is_streamed=wanted.is_streamed)
        paused = await self._engine.restore(agent, state["engine"], ledger, options)
        return Run(record, agent, ledger, extensions, options, state["engine"]), paused

    def _payload(self, run: Run, engine_state: JsonObject) -> str:
        sdk = run.options.sdk
        storable = {name: sdk[name] for name in _STORABLE if isinstance(sdk.get(name), str | int)}
        state = {
            "engine": engine_state,
            "guard": run.ledger.saved(),
            "user_intent": run.ledger.user_intent,
            "policy_profile": run.ledger.context.policy_profile,
            "require_human_approval": run.ledger.context.require_human_approval,
            "max_turns": run.options.max_turns,
            "max_tool_calls": run.extensions.max_tool_calls,
            "max_tokens": run.extensions.max_tokens,
            "sdk": storable,
            # Another process has to pass these again: a context, a session, hooks and so on.
            "sdk_objects": sorted(name for name, value in sdk.items() if value is not None and name not in storable),
        }
        taken_out = {"format": _FORMAT, **self._withholding.take_out(state, run.ledger.secret_texts)}
        return json.dumps(taken_out, ensure_ascii=False)

    def _state_in(self, payload: str) -> OwnJson:
        """Raises `AGENTS-E-RUNNER` for a payload that this version cannot read."""
        try:
            state = json.loads(payload)
        except ValueError:
            state = None
        if not isinstance(state, dict) or state.get("format") != _FORMAT:
            raise _unreadable()
        try:
            return cast(OwnJson, self._withholding.put_back(state))
        except (KeyError, IndexError, TypeError):
            raise _unreadable() from None


def _unreadable() -> AgentsError:
    message = "The saved run has a format that this version cannot read"
    return AgentsError("AGENTS-E-RUNNER", message, details={"reason": "state_unreadable"})


def _answer_of(approval: ApprovalRecord) -> HumanAnswer:
    request = approval.request
    said = f": {request.comment}" if request.comment else ""
    return HumanAnswer(
        permit_of(approval),
        asked=request.reasons,
        attempt=approval.attempt,
        denial_for_model=f"A human refused this call{said}" if request.status == "denied" else None,
        changed=request.changed_arguments,
        shown=request.arguments,
    )


def permit_of(approval: ApprovalRecord) -> Permit:
    return Permit(approval.request.tool_call_id, approval.arguments_hash, approval.definition_hash)
