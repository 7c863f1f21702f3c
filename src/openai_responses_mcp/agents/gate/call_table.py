"""The calls of one run by their id, each in one state. `move` is the only place where a state changes.

The table outlives a pause as JSON. When it is read back, the calls of the pause are let through together, and only
when exactly those that wait for a human have an approval.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from openai_responses_mcp.agents.calls import PlannedCall, ToolCallResult, ToolDescription, arguments_hash
from openai_responses_mcp.agents.gate.call_states import CallEvent, CallState, next_state
from openai_responses_mcp.agents.gate.models import CallToApprove
from openai_responses_mcp.agents.json_values import JsonObject, JsonValue, OwnJson

_NO_TOOL = ToolDescription("", "function")
_WAITS_FOR_A_PAUSE = (CallState.HELD, CallState.ASKED, CallState.SUSPENDED)


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


@dataclass(slots=True)
class GuardedCall:
    """`permit` is for the call as it was decided; `planned` is the call as this process last saw it."""

    permit: Permit
    state: CallState
    planned: PlannedCall
    asked: CallToApprove | None = None
    result: ToolCallResult | None = None

    def fits(self, call: PlannedCall) -> bool:
        return self.permit.fits(call.tool, call.args)


class CallTable:
    def __init__(self) -> None:
        self._calls: dict[str, GuardedCall] = {}

    def __getitem__(self, call_id: str) -> GuardedCall:
        """A call that nobody has asked for is `UNKNOWN`, and its permit fits nothing."""
        return self._calls.get(call_id) or _call(Permit(call_id, "", ""), CallState.UNKNOWN)

    def __iter__(self) -> Iterator[GuardedCall]:
        """In the order in which they were asked for."""
        return iter(self._calls.values())

    def move(self, call_id: str, event: CallEvent) -> GuardedCall:
        """Raises `ForbiddenMove`, and changes nothing, when the call cannot move that way."""
        call = self[call_id]
        call.state = next_state(call.state, event)
        self._calls[call_id] = call
        return call

    # -----------------------------------------------------------------------------------------------------------------
    # Over a pause

    def saved(self) -> list[dict[str, JsonValue]]:
        return [
            {
                "permit": asdict(call.permit),
                "state": call.state.value,
                "result": asdict(call.result) if call.result else None,
            }
            for call in self
        ]

    def restore(self, saved: Sequence[OwnJson], approved: Sequence[Permit]) -> None:
        for fields in saved:
            call = _call(Permit(**fields["permit"]), CallState(fields["state"]))
            call.result = ToolCallResult(**fields["result"]) if fields["result"] else None
            self._calls[call.permit.call_id] = call
        self._release({permit.call_id: permit for permit in approved})

    def _release(self, approved: Mapping[str, Permit]) -> None:
        waiting = [call for call in self if call.state in _WAITS_FOR_A_PAUSE]
        if approved.keys() != {call.permit.call_id for call in waiting if call.state is CallState.ASKED}:
            return
        for call in waiting:
            call.permit = approved.get(call.permit.call_id, call.permit)
            self.move(call.permit.call_id, CallEvent.RELEASE)


def _call(permit: Permit, state: CallState) -> GuardedCall:
    return GuardedCall(permit, state, PlannedCall(permit.call_id, _NO_TOOL, {}))
