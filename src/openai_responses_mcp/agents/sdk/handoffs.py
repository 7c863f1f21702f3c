"""A handoff behind the gate. If a human denies it, the agent stays, and the model gets the reason.

The SDK has no denied handoff. So the current agent hands over to itself, with the denial in place of the message about
the new agent, and its history unchanged.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents import Agent, AgentBase, Handoff, HandoffInputData, HandoffInputFilter, RunContextWrapper

from openai_responses_mcp.agents.runs.ports import TurnLedger
from openai_responses_mcp.agents.sdk.internals import handoff_target, public_agent, use_tools
from openai_responses_mcp.agents.sdk.tool_traits import describe_handoff, parsed
from openai_responses_mcp.gate.calls import PlannedCall


@dataclass(frozen=True, slots=True)
class Speaker:
    """The agent that hands over, and what a handoff has to know of its takeover."""

    double: Agent[Any]
    guard: TurnLedger
    next_call: Callable[[Handoff[Any, Any], str], PlannedCall]
    double_of: Callable[[object], Agent[Any]]
    stays: Callable[[bool], None]


class GuardedHandoff:
    """Takes the place of a handoff's own call."""

    def __init__(self, speaker: Speaker, handoff: Handoff[Any, Any]) -> None:
        self._speaker = speaker
        self._handoff = handoff
        self._invoke = handoff.on_invoke_handoff
        self._own = (handoff.input_filter, handoff.nest_handoff_history)
        self._message = handoff.get_transfer_message

    def __deepcopy__(self, memo: dict[int, object]) -> "GuardedHandoff":
        return self  # as a function is

    async def __call__(self, context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
        guard, call = self._speaker.guard, self._speaker.next_call(self._handoff, arguments)
        told = guard.told(call.call_id)
        self._speaker.stays(told is not None)
        if told is not None:
            self._say(lambda agent: told, (_as_it_is, False))
            return self._speaker.double
        changed = guard.changed(call.call_id)
        if changed is None:
            self._say(self._message, self._own)
        else:
            arguments = json.dumps(changed.args, ensure_ascii=False)
            self._say(lambda agent: f"{changed.note}\n\n{self._message(agent)}", self._own)
        await guard.starting(call.call_id, describe_handoff(self._handoff), parsed(arguments))
        if isinstance(target := handoff_target(self._handoff), Agent):
            use_tools(public_agent(target))
        new_agent = self._speaker.double_of(await self._invoke(context, arguments))
        use_tools(public_agent(new_agent))
        await guard.finished(call.call_id, new_agent.name)
        return new_agent

    def _say(
        self, message: Callable[[AgentBase[Any]], str], history: tuple[HandoffInputFilter | None, bool | None]
    ) -> None:
        """The SDK asks the handoff for these once it has been called."""
        self._handoff.get_transfer_message = message  # type: ignore[method-assign, assignment]
        self._handoff.input_filter, self._handoff.nest_handoff_history = history


def _as_it_is(data: HandoffInputData) -> HandoffInputData:
    return data
