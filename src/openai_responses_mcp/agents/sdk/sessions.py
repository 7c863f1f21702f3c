"""One run of the SDK under one guard.

The SDK can pause only at tools that need approval. When a turn waits for a human every tool of it says so, the SDK
stops before any of them, and its own run state is saved. A turn of handoffs alone has no tool to stop at: there the
takeover leaves with a `HandoffPause`.
"""

import dataclasses
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from agents import (
    Agent,
    RunConfig,
    RunContextWrapper,
    RunResult,
    RunResultStreaming,
    RunState,
    TResponseInputItem,
)

from openai_responses_mcp.agents.runs.models import UsageStats
from openai_responses_mcp.agents.runs.ports import EngineEvent, EngineOutcome
from openai_responses_mcp.agents.sdk.failures import translated
from openai_responses_mcp.agents.sdk.nested_runs import runner_of_the_sdk
from openai_responses_mcp.agents.sdk.outcomes import as_the_user_knows_it, event_from, handoff_outcome, outcome_of
from openai_responses_mcp.agents.sdk.request_settings import for_the_sdk
from openai_responses_mcp.agents.sdk.takeover import HandoffPause, Takeover, current_takeover, running_calls
from openai_responses_mcp.agents.sdk.tool_traits import field_of

NO_USAGE = UsageStats()

RunInput: TypeAlias = str | list[TResponseInputItem] | RunState[Any, Any]


@dataclass(slots=True)
class Session:
    """`start` is the double of the agent that speaks first, `options` are the SDK's own."""

    takeover: Takeover
    start: Agent[Any]
    options: dict[str, Any]
    is_requested: bool = False
    is_streamed: bool = False
    usage_before: UsageStats = NO_USAGE
    configured: RunConfig | dict[str, Any] | None = None

    @property
    def context(self) -> RunContextWrapper[Any]:
        """The caller's, for tools that are looked at before the SDK runs."""
        return context_for(self.options.get("context"))

    async def stream(self, input: RunInput) -> AsyncGenerator[EngineEvent, None]:
        """Every event of the SDK, and the outcome at the end. Without `is_streamed` there is only the outcome."""
        result: RunResult | RunResultStreaming | None = None
        paused: EngineOutcome | None = None
        options = {**self.options, "run_config": for_the_sdk(self.options["run_config"], self.configured)}
        while paused is None and (result is None or self._needs_nobody(result)):
            try:
                with translated(self.takeover.guard, "AGENTS-E-STREAM" if self.is_streamed else "AGENTS-E-RUNNER"):
                    carry_on = input if result is None else await self._approved(result)
                    if not self.is_streamed:
                        with _inside(self.takeover):
                            result = await runner_of_the_sdk().run(self.start, carry_on, **options)
                        continue
                    with _inside(self.takeover):
                        result = streamed = runner_of_the_sdk().run_streamed(self.start, carry_on, **options)
                    try:
                        yield EngineEvent(raw=streamed)  # for callers that want to look at it, or to cancel it
                        async for raw in streamed.stream_events():
                            event = await event_from(raw, self.takeover)
                            if raw.type == "agent_updated_stream_event":
                                raw.new_agent = self.takeover.original_of(raw.new_agent)
                            elif raw.type == "run_item_stream_event":
                                raw = dataclasses.replace(raw, item=as_the_user_knows_it(raw.item))
                            yield EngineEvent(raw=raw, event=event)
                    finally:
                        streamed.cancel()
            except HandoffPause as pause:
                paused = handoff_outcome(pause, self.takeover, self.usage_before)
        if paused is None and result is not None:
            paused = self._outcome(result)
        yield EngineEvent(outcome=paused)

    def _outcome(self, result: RunResult | RunResultStreaming) -> EngineOutcome:
        return outcome_of(result, self.takeover, self.usage_before, is_requested=self.is_requested)

    def _needs_nobody(self, result: RunResult | RunResultStreaming) -> bool:
        """Whether the SDK paused for nothing that waits for a human, such as hosted MCP calls."""
        ids = [self.takeover.id_of(item) for item in result.interruptions]
        return bool(ids) and not any(self.takeover.guard.is_waiting(call_id) for call_id in ids)

    async def _approved(self, result: RunResult | RunResultStreaming) -> RunState[Any, Any]:
        state = result.to_state()
        await approve_all(state, self.takeover)
        return state


async def approve_all(
    state: RunState[Any, Any], takeover: Takeover, rejections: Mapping[str, str | None] | None = None
) -> None:
    """All but those that a human denied with a text for the model."""
    guard = takeover.guard
    for item in state.get_interruptions():
        call_id = takeover.id_of(item)
        told, rejected = guard.told(call_id), rejections or {}
        if told is not None or call_id in rejected:  # of a tool that is gone, the guard knows no call
            state.reject(item, rejection_message=rejected.get(call_id, told))
            continue
        for call in await takeover.planned(item.agent, [item.raw_item]):
            if field_of(item.raw_item, "type") == "mcp_approval_request":
                # The provider runs it. Nothing more of it is seen here.
                await guard.starting(call.call_id, call.tool, call.args)
                await guard.finished(call.call_id, "run by the provider")
        state.approve(item)


def context_for(context: object) -> RunContextWrapper[Any]:
    return context if isinstance(context, RunContextWrapper) else RunContextWrapper(context=context)


@contextmanager
def _inside(takeover: Takeover) -> Iterator[None]:
    taken, outermost = current_takeover.set(takeover), running_calls.set(())
    try:
        yield
    finally:
        running_calls.reset(outermost)
        current_takeover.reset(taken)
