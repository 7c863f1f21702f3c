"""Paused runs are decided in code as with the SDK, on top of this library's approvals.

`result.interruptions` are the SDK's items with our requests behind them. `result.to_state()` gives a state whose
`approve` and `reject` are kept until the run goes on, and are then put to the store as decisions made in code. The state
says which run is meant; what the run had done so far is read from the store, never from the state. A state that was
written as text keeps its decisions only within the process that wrote it: a text from elsewhere approves nothing.
"""

import copy
import json
import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, cast

import agents as sdk
from agents import ToolApprovalItem
from typing_extensions import TypeVar

from openai_responses_mcp.agents.runner import check_code_may_approve, may_code_approve
from openai_responses_mcp.agents.runs.models import RunResult
from openai_responses_mcp.agents.runs.ports import Said
from openai_responses_mcp.agents.runs.resuming import CodeDecision
from openai_responses_mcp.agents.sdk.internals import (
    ambiguous_agents,
    as_the_sdk_knows_it,
    call_id_of,
    context_in,
    decided_in,
    places_of_agents,
    public_agent,
    put_call_id,
    show_own_agent,
    starting_agent,
    without_decisions,
)
from openai_responses_mcp.agents.sdk.tool_traits import field_of
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonValue

TContext = TypeVar("TContext", default=Any)
TAgent = TypeVar("TAgent", bound="sdk.Agent[Any]", default="sdk.Agent[Any]")

_OURS = "openai_responses_mcp"
_MOST_WRITTEN = 1000

Decisions = dict[str, CodeDecision]
_written: OrderedDict[str, tuple[Decisions, dict[tuple[str, str], CodeDecision]]] = OrderedDict()


class ApprovalItem(ToolApprovalItem):
    """An item of the SDK; every field of the request that the SDK's items lack is there too."""

    request: HumanApprovalRequest

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "request" not in self.__dict__:
            raise AttributeError(f"ToolApprovalItem has no {name!r}")
        return getattr(self.request, name)


class SwappedResult(RunResult):
    """The result of a run that code for the SDK has started."""

    standing: Decisions
    state: "RunState | None"

    def __setattr__(self, name: str, value: object) -> None:
        """Fields from which the SDK computes others are set on the SDK's result."""
        target = self.sdk_result if name in ("input", "new_items") else None
        object.__setattr__(target or self, name, value)

    def to_state(self) -> "RunState":
        if self.state is not None:
            decisions = dict(self.state.decisions)
            return _as_ours(self.state, self.run_id, decisions, self.standing, self.state.call_ids, self._asked)
        if self.sdk_result is None:
            raise AgentsError("AGENTS-E-RUNNER", "The run has no state that could go on")
        state: sdk.RunState[Any, Any] = self.sdk_result.to_state()  # type: ignore[attr-defined]
        call_ids = [call_id_of(item) for item in getattr(self.sdk_result, "interruptions", ())]
        return _as_ours(state, self.run_id if self.interruptions else "", {}, self.standing, call_ids, self._asked)

    @property
    def _asked(self) -> list[str]:
        return [item.request.tool_call_id for item in cast("list[ApprovalItem]", self.interruptions)]


class RunState(sdk.RunState[TContext, TAgent]):
    """The SDK's state of a run. `decisions` are by call, `standing` by agent and tool.

    `run_id` is the paused run; without it, a new run begins at this state.
    `call_ids` are those of the turn, `asked` those that a human has to decide: the others only wait with them.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.run_id = ""
        self.decisions: Decisions = {}
        self.standing: Decisions = {}
        self.written: str | None = None
        self.call_ids: list[str] = []
        self.asked: list[str] = []

    def get_interruptions(self) -> list[ToolApprovalItem]:
        items = super().get_interruptions()
        for item, call_id in zip_longest(items, self.call_ids[: len(items)]):
            show_own_agent(item)
            put_call_id(item, call_id)
        return [item for item in items if not self.asked or call_id_of(item) in self.asked]

    def approve(self, approval_item: ToolApprovalItem, always_approve: bool = False) -> None:
        check_code_may_approve()
        super().approve(as_the_sdk_knows_it(approval_item), always_approve=always_approve)
        self._decide(approval_item, CodeDecision(is_approved=True), is_standing=always_approve)

    def reject(
        self, approval_item: ToolApprovalItem, always_reject: bool = False, *, rejection_message: str | None = None
    ) -> None:
        known = as_the_sdk_knows_it(approval_item)
        super().reject(known, always_reject=always_reject, rejection_message=rejection_message)
        decision = CodeDecision(is_approved=False, message=rejection_message)
        self._decide(approval_item, decision, is_standing=always_reject)

    def _decide(self, item: ToolApprovalItem, decision: CodeDecision, *, is_standing: bool) -> None:
        self.decisions[call_id_of(item)] = decision
        if is_standing:
            self.standing[_key(item)] = decision

    def continue_as(self, state: sdk.RunState[Any, Any]) -> None:
        """Continue from the given state. The decisions are used up."""
        self.__dict__.update(_as_ours(state, "", {}, self.standing).__dict__)

    @property
    def said(self) -> Said:
        """What the model hears when the run goes on."""
        rejections = {call_id: one.message for call_id, one in self.decisions.items() if not one.is_approved}
        return Said(input=tuple(self.pending_input), rejections=rejections)

    def to_json(self, **options: Any) -> dict[str, Any]:
        if not self.run_id:
            return super().to_json(**options)
        # A state that is written twice is the same text, unless something was decided in between.
        root = starting_agent(self)
        places = {} if root is None else places_of_agents(public_agent(root))
        parts = [(key.partition("/"), one) for key, one in self.standing.items()]
        kept = {(places[int(agent)], tool): one for (agent, _, tool), one in parts if int(agent) in places}
        if self.written is None or _written.get(self.written) != (self.decisions, kept):
            self.written = secrets.token_urlsafe(16)
        ticket = self.written
        _written[ticket] = (dict(self.decisions), kept)
        while len(_written) > _MOST_WRITTEN:
            _written.popitem(last=False)
        ours = {"run_id": self.run_id, "decisions": ticket, "call_ids": self.call_ids, "asked": self.asked}
        return {**super().to_json(**options), _OURS: ours}

    @classmethod
    async def from_json(cls, initial_agent: Any, state_json: Any, **options: Any) -> "RunState[Any, Any]":
        if not isinstance(state_json, dict):
            return await sdk.RunState.from_json(initial_agent, state_json, **options)  # type: ignore[return-value]
        ours = state_json.get(_OURS, {})
        plain = {name: value for name, value in state_json.items() if name != _OURS}
        state = await sdk.RunState.from_json(initial_agent, plain, **options)
        decisions, kept = _written.get(ours.get("decisions", ""), ({}, {}))
        decisions, unclear = dict(decisions), ambiguous_agents(initial_agent)
        call_ids = list(ours.get("call_ids", ()))
        for item, call_id in zip(state.get_interruptions(), call_ids, strict=False):
            if id(item.agent) in unclear:  # it may be another agent than the one whose call was decided
                decisions.pop(call_id, None)
        agents = {place: found for found, place in places_of_agents(initial_agent).items()}
        standing = {f"{agents[place]}/{tool}": one for (place, tool), one in kept.items() if place in agents}
        return _as_ours(state, ours.get("run_id", ""), decisions, standing, call_ids, ours.get("asked", ()))

    @classmethod
    async def from_string(cls, initial_agent: Any, state_string: str, **options: Any) -> "RunState[Any, Any]":
        try:
            state_json = json.loads(state_string)
        except ValueError:
            state_json = None
        if not isinstance(state_json, dict):
            return await sdk.RunState.from_string(initial_agent, state_string, **options)  # type: ignore[return-value]
        return await cls.from_json(initial_agent, state_json, **options)


def _as_ours(
    state: sdk.RunState[Any, Any],
    run_id: str,
    decisions: Decisions,
    standing: Decisions,
    call_ids: Sequence[str] = (),
    asked: Sequence[str] = (),
) -> RunState:
    made: RunState = object.__new__(RunState)
    made.__dict__.update(state.__dict__, run_id=run_id, decisions=decisions, standing=standing, written=None)
    made.call_ids, made.asked = list(call_ids), list(asked)
    return made


def as_ours(state: sdk.RunState[Any, Any]) -> RunState:
    """Approvals in a state of the SDK do not count."""
    return state if isinstance(state, RunState) else _as_ours(state, "", {}, {})


def context_of(state: RunState, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the resumed run, with the state's context if the caller gave none."""
    context = context_in(state)
    if given.get("context") is None and context is not None and context.context is not None:
        return {**given, "context": without_decisions(context)}
    return dict(given)


def swapped(result: RunResult, standing: Decisions, state: "RunState | None" = None) -> SwappedResult:
    """The result as code for the SDK expects it. With a `state`, the run still waits where that state was taken."""
    made: SwappedResult = object.__new__(SwappedResult)
    made.__dict__.update(result.__dict__, standing=standing, state=state)
    known: Sequence[ToolApprovalItem] = getattr(result.sdk_result, "interruptions", ())
    if state is not None:
        known = state.get_interruptions()
    by_call = {call_id_of(item): item for item in known}
    made.__dict__["interruptions"] = [
        _item(request, by_call.get(request.tool_call_id), result.last_agent) for request in result.interruptions
    ]
    return made


def settled_by(item: ToolApprovalItem, standing: Decisions, context: object) -> CodeDecision | None:
    """A standing decision, or one in the caller's context. Approvals in the context count only if code may approve."""
    if (found := standing.get(_key(item))) is not None:
        return found
    decided = decided_in(context, item) if isinstance(context, sdk.RunContextWrapper) else None
    if decided is None or (decided[0] and not may_code_approve()):
        return None
    return CodeDecision(*decided)


def decisions_on(result: SwappedResult, made_before: Decisions, context: object) -> Decisions | None:
    """A decision for each waiting call, if earlier or standing decisions cover all of them."""
    items = cast("list[ApprovalItem]", result.interruptions)
    ids = [(item.request.tool_call_id, item) for item in items]
    found = {call_id: made_before.get(call_id) or settled_by(item, result.standing, context) for call_id, item in ids}
    decided = {call_id: one for call_id, one in found.items() if one is not None}
    return decided if decided and len(decided) == len(found) else None


def _item(request: HumanApprovalRequest, item: ToolApprovalItem | None, agent: Any) -> ApprovalItem:
    if item is None:
        raw: dict[str, JsonValue] = {
            "type": "function_call",
            "name": request.tool_name,
            "call_id": request.tool_call_id,
            "arguments": json.dumps(dict(request.arguments)),
        }
        item = ToolApprovalItem(agent=agent, raw_item=raw)
    made = copy.copy(item)
    made.__class__ = ApprovalItem
    if "guarded_agent" not in made.__dict__:
        show_own_agent(made)
    made.__dict__["request"] = request
    assert isinstance(made, ApprovalItem)  # noqa: S101 - its class is set above
    return made


def _key(item: ToolApprovalItem) -> str:
    """A standing decision is for one agent's tool; for a hosted MCP tool, also for one server."""
    server = field_of(item.raw_item, "server_label")
    return f"{id(public_agent(item.agent))}/{item.qualified_name if server is None else f'{server}/{item.tool_name}'}"
