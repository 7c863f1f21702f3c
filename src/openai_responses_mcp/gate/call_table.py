"""The calls of one run by their id, each in one state. `move` is the only place where a state changes.

During a pause the table is saved as JSON. It is read back with the human's answers. They count only if every call that
waits for a human has one. If all are plain approvals, all calls of the pause may start; otherwise the turn has to be
decided again. `RunRecords` makes the audit records about the calls.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

from openai_responses_mcp.gate.audit.log import AuditEntry
from openai_responses_mcp.gate.calls import (
    BudgetQuestion,
    CallToApprove,
    ChangedCall,
    GateDecision,
    PlannedCall,
    ToolCallRequest,
    ToolCallResult,
    ToolDescription,
    arguments_hash,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, OwnJson, differences
from openai_responses_mcp.gate.reasons import Reason, reason_in_record
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.secrets.withholding import with_secrets

_logger = logging.getLogger("openai_responses_mcp.agents")


class CallState(StrEnum):
    UNKNOWN = "unknown"  # not requested
    PLANNED = "planned"  # its turn is being decided
    HELD = "held"  # could run, but waits for other calls of its turn
    ASKED = "asked"  # waits for a human
    ALLOWED = "allowed"  # may start, once
    RUNNING = "running"
    SUSPENDED = "suspended"  # has started, and waits for a run inside it
    TAKEN_UP = "taken_up"  # may go on where it was suspended, once
    DONE = "done"
    REFUSED = "refused"
    TOLD = "told"  # a human denied it, and the model gets the reason


class CallEvent(StrEnum):
    PLAN = "plan"
    ALLOW = "allow"
    HOLD = "hold"
    ASK = "ask"
    REFUSE = "refuse"
    RELEASE = "release"
    REPLAN = "replan"
    TELL = "tell"
    START = "start"
    MISFIT = "misfit"
    SUSPEND = "suspend"
    FINISH = "finish"


MOVES: Final[Mapping[CallState, Mapping[CallEvent, CallState]]] = {
    CallState.UNKNOWN: {CallEvent.PLAN: CallState.PLANNED},
    CallState.PLANNED: {
        CallEvent.ALLOW: CallState.ALLOWED,
        CallEvent.HOLD: CallState.HELD,
        CallEvent.ASK: CallState.ASKED,
        CallEvent.REFUSE: CallState.REFUSED,
    },
    CallState.HELD: {CallEvent.RELEASE: CallState.ALLOWED, CallEvent.REPLAN: CallState.PLANNED},
    CallState.ASKED: {
        CallEvent.RELEASE: CallState.ALLOWED,
        CallEvent.REPLAN: CallState.PLANNED,
        CallEvent.TELL: CallState.TOLD,
    },
    CallState.ALLOWED: {CallEvent.START: CallState.RUNNING, CallEvent.MISFIT: CallState.REFUSED},
    CallState.RUNNING: {CallEvent.FINISH: CallState.DONE, CallEvent.SUSPEND: CallState.SUSPENDED},
    CallState.SUSPENDED: {
        CallEvent.RELEASE: CallState.TAKEN_UP,
        # Several runs inside one call may wait. The engine reports such a call as finished too.
        CallEvent.SUSPEND: CallState.SUSPENDED,
        CallEvent.FINISH: CallState.SUSPENDED,
    },
    CallState.TAKEN_UP: {CallEvent.START: CallState.RUNNING, CallEvent.MISFIT: CallState.REFUSED},
    CallState.DONE: {},
    CallState.REFUSED: {},
    CallState.TOLD: {},
}

MAY_START: Final = frozenset({CallState.ALLOWED, CallState.TAKEN_UP})
LET_THROUGH: Final = MAY_START | {CallState.RUNNING, CallState.SUSPENDED}


class ForbiddenMove(Exception):
    def __init__(self, state: CallState, event: CallEvent) -> None:
        super().__init__(f"A call that is {state} cannot {event}")


def next_state(state: CallState, event: CallEvent) -> CallState:
    """Raises `ForbiddenMove`."""
    try:
        return MOVES[state][event]
    except KeyError:
        raise ForbiddenMove(state, event) from None


_NO_TOOL = ToolDescription("", "function")
_SAVED_DENIAL = "told"  # the name in saved runs, also of earlier versions
_WAITING_STATES = (CallState.HELD, CallState.ASKED, CallState.SUSPENDED)


@dataclass(frozen=True, slots=True)
class Permit:
    """Exactly this call may run."""

    call_id: str
    arguments_hash: str
    definition_hash: str

    @classmethod
    def of(cls, call: PlannedCall) -> "Permit":
        return cls(call.call_id, arguments_hash(call.args), call.tool.definition_hash)

    def fits(self, tool: ToolDescription, args: JsonObject) -> bool:
        return self.arguments_hash == arguments_hash(args) and self.definition_hash == tool.definition_hash


@dataclass(frozen=True, slots=True)
class HumanAnswer:
    """A human's answer about a call: yes, yes with `changed` arguments, or no, with `denial_for_model` as the text for it.

    `asked` are the reasons for asking, `attempt` counts the questions, and `shown` are the arguments that they saw.
    """

    permit: Permit
    asked: tuple[Reason, ...] = ()
    attempt: int = 1
    denial_for_model: str | None = None
    changed: JsonObject | None = None
    shown: JsonObject = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        return self.denial_for_model is None and self.changed is None


@dataclass(slots=True)
class GuardedCall:
    """`permit` is for the call as it was decided; `planned` is the call as this process last saw it.

    `attempt` counts how often it was decided. `answer` is what a human said about it last, and `changed` the call as
    they changed it. `questions` are the budget questions that were asked with it.
    """

    permit: Permit
    state: CallState
    planned: PlannedCall
    asked: CallToApprove | None = None
    result: ToolCallResult | None = None
    attempt: int = 1
    answer: HumanAnswer | None = None
    changed: ChangedCall | None = None
    questions: list[BudgetQuestion] = field(default_factory=list)

    def fits(self, call: PlannedCall) -> bool:
        return self.permit.fits(call.tool, call.args)


class CallTable:
    def __init__(self) -> None:
        self._calls: dict[str, GuardedCall] = {}

    def __getitem__(self, call_id: str) -> GuardedCall:
        """A call that was not requested is `UNKNOWN`, and its permit fits nothing."""
        return self._calls.get(call_id) or _call(Permit(call_id, "", ""), CallState.UNKNOWN)

    def __iter__(self) -> Iterator[GuardedCall]:
        """In the order in which they were requested."""
        return iter(self._calls.values())

    def move(self, call_id: str, event: CallEvent) -> GuardedCall:
        """Raises `ForbiddenMove` and changes nothing if the state does not allow the event."""
        call = self[call_id]
        call.state = next_state(call.state, event)
        self._calls[call_id] = call
        return call

    # -----------------------------------------------------------------------------------------------------------------
    # Saving and restoring

    def saved(self) -> list[dict[str, JsonValue]]:
        return [
            {
                "permit": asdict(call.permit),
                "state": call.state.value,
                "result": asdict(call.result) if call.result else None,
                "attempt": call.attempt,
                "answer": _renamed(asdict(call.answer), "denial_for_model", _SAVED_DENIAL) if call.answer else None,
                "changed": asdict(call.changed) if call.changed else None,
                "questions": [asdict(question) for question in call.questions],
            }
            for call in self
        ]

    def restore(self, saved: Sequence[OwnJson], answers: Sequence[HumanAnswer]) -> bool:
        """Read back what was saved, with the human's answers. True if the turn has to be decided again."""
        for fields in saved:
            call = _call(Permit(**fields["permit"]), CallState(fields["state"]))
            call.result = ToolCallResult(**fields["result"]) if fields["result"] else None
            call.attempt = fields.get("attempt", 1)
            call.answer = _answer(fields["answer"]) if fields.get("answer") else None
            call.changed = ChangedCall(**fields["changed"]) if fields.get("changed") else None
            call.questions = [_question(one) for one in fields.get("questions", ())]
            self._calls[call.permit.call_id] = call
        asked = {call.permit.call_id for call in self if call.state is CallState.ASKED}
        if {answer.permit.call_id for answer in answers} != asked:
            return False
        for answer in answers:
            self._calls[answer.permit.call_id].permit = answer.permit
            self._calls[answer.permit.call_id].answer = answer
        if all(answer.is_plain for answer in answers):
            self.release(*_WAITING_STATES)
            return False
        return True

    def release(self, *states: CallState) -> None:
        """Let all calls through that are in one of these states."""
        for call in [call for call in self if call.state in states]:
            self.move(call.permit.call_id, CallEvent.RELEASE)


def _call(permit: Permit, state: CallState) -> GuardedCall:
    return GuardedCall(permit, state, PlannedCall(permit.call_id, _NO_TOOL, {}))


def _renamed(fields: OwnJson, name: str, new_name: str) -> dict[str, JsonValue]:
    return {new_name if key == name else key: value for key, value in fields.items()}


def _answer(saved: OwnJson) -> HumanAnswer:
    # Earlier versions saved a sentence. Then the reasons are not known, and a changed call is asked about again.
    asked = () if isinstance(saved["asked"], str) else tuple(Reason(**one) for one in saved["asked"])
    fields: OwnJson = _renamed(saved, _SAVED_DENIAL, "denial_for_model")
    return HumanAnswer(**{**fields, "permit": Permit(**saved["permit"]), "asked": asked})


def _question(saved: OwnJson) -> BudgetQuestion:
    reason = saved["reason"]
    kept = Reason("budget", "needs_human") if isinstance(reason, str) else Reason(**reason)
    return BudgetQuestion(saved["window"], kept, saved["allowed_to"])


async def changed_call(
    call: PlannedCall, before: ChangedCall | None, answer: HumanAnswer, masking: Masking, schemas: SchemaChecker
) -> ChangedCall:
    """The call with the arguments that a human changed. `call` is the model's call, `before` an earlier change of it.

    Raises `AGENTS-E-APPROVAL-INVALID` if the arguments do not fit the tool.
    """
    args = with_secrets(answer.changed or {}, answer.shown, before.args if before else call.args)
    problem = (await schemas.check(args, call.tool.parameters)).problem
    if problem is not None:
        raise AgentsError("AGENTS-E-APPROVAL-INVALID", f"The changed arguments do not fit the tool: {problem}")
    models, humans = (masking.shown(one, call.tool.parameters) for one in (call.args, args))
    return ChangedCall(args, f"A human changed the arguments of this call:\n{differences(models, humans)}")


# ---------------------------------------------------------------------------------------------------------------------
# Records


class RunRecords:
    """Makes the audit records of a run. `secret_texts` are values of fields whose names suggest a secret."""

    def __init__(self, run_id: str, masking: Masking, who: str = "") -> None:
        self.secret_texts: list[str] = []
        self._run_id = run_id
        self._masking = masking
        self._who = who

    def decision(self, request: ToolCallRequest, decision: GateDecision) -> AuditEntry:
        if _logger.isEnabledFor(logging.DEBUG):
            names = sorted(self._masking.text(str(name)) for name in request.args)
            said = (request.tool_kind, request.tool_name, decision.decision, decision.risk_level)
            _logger.debug(
                "gate: %s %s -> %s, risk %s %s",
                *said,
                {"run": self._run_id, "call": request.tool_call_id, "arguments": names},
            )
        return AuditEntry(
            run_id=self._run_id,
            tool_call_id=request.tool_call_id,
            event="decision" if request.attempt == 1 else f"decision:{request.attempt}",
            decision=decision.decision,
            tool_name=request.tool_name,
            tool_kind=request.tool_kind,
            risk_level=decision.risk_level,
            reason=decision.reason,
            reasons=decision.reasons,
            arguments=self._masking.shown(request.args, request.target_tool.parameters if request.target_tool else {}),
            who=self._who,
        )

    def about(self, call: PlannedCall, event: str, decision: str, reason: str = "", *reasons: Reason) -> AuditEntry:
        """`reason` is the tool's own text. `reasons` are about the result of the call, and come after it."""
        said = [self._masking.text(reason, self.secret_texts), *(reason_in_record([one], one.says) for one in reasons)]
        return AuditEntry(
            run_id=self._run_id,
            tool_call_id=call.call_id,
            event=event,
            decision=decision,
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            reason="; ".join(filter(None, said)),
            reasons=reasons,
            arguments=self._masking.shown(call.args, call.tool.parameters),
            who=self._who,
        )
