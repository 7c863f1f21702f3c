"""A run that code for the SDK has started: its events, its attributes at any time, and its result.

Decisions of that code go to the store like any other; a call that `always_approve` covers does not end the run.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal, cast

import agents as sdk

from openai_responses_mcp.agents.runner import AgentRunner, check_code_may_approve
from openai_responses_mcp.agents.runs.models import RunOptions, RunResult
from openai_responses_mcp.agents.runs.ports import Said
from openai_responses_mcp.agents.runs.resuming import CodeDecision
from openai_responses_mcp.agents.sdk.internals import (
    check_options,
    note_calls,
    original_input,
    public_agent,
    unstarted_result,
    without_decisions,
)
from openai_responses_mcp.agents.sdk.request_settings import known_options
from openai_responses_mcp.agents.sdk.run_states import (
    SwappedResult,
    as_ours,
    context_of,
    decisions_on,
    settled_by,
    swapped,
)
from openai_responses_mcp.agents.sdk.sessions import as_the_user_knows_it, context_for
from openai_responses_mcp.agents.sdk.takeover import checked_agent
from openai_responses_mcp.agents.sdk.turns import is_settled
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.errors import AgentsError


class StreamedRun:
    """What `Runner.run_streamed` returns: the SDK's events and attributes, and everything of the result at its end."""

    def __init__(self, runner: AgentRunner, agent: object, input: object, options: RunOptions) -> None:
        self._runner = runner
        self._agent = checked_agent(agent)
        self._given = input
        self._options = options
        self._context = options.sdk.get("context")
        self._state = as_ours(input) if isinstance(input, sdk.RunState) else None
        self._cancelled: Literal["immediate", "after_turn"] | None = None
        self._live: sdk.RunResultStreaming | None = None
        # The newest state in which the run has gone on.
        self._newest_state: sdk.RunState[Any, Any] | None = None
        # Events that were not read yet; None at the end.
        self._unread: asyncio.Queue[sdk.StreamEvent | None] = asyncio.Queue()
        self._failure: BaseException | None = None
        self.run_loop_task: asyncio.Task[None] | None = None
        self.result: SwappedResult | None = None
        self.is_complete = False

    def begin(self) -> None:
        """The run goes on by itself, whether its events are read or not."""
        self.check()
        self.run_loop_task = asyncio.create_task(self.finish())
        self.run_loop_task.add_done_callback(lambda task: task.cancelled() or task.exception())

    def check(self) -> None:
        check_options(self._agent, known_options(self._options.sdk), self._state)

    def _is_settled(self, item: sdk.ToolApprovalItem) -> bool:
        standing = {} if self._state is None else self._state.standing
        return settled_by(item, standing, self._context) is not None

    async def finish(self) -> None:
        settled = is_settled.set(self._is_settled)
        try:
            async with aclosing(self._steps()) as events:
                async for raw in events:
                    self._unread.put_nowait(raw)
        except AgentsError as exc:
            self._failure = _as_the_sdk_would(exc)
        except BaseException as exc:
            self._failure = exc
        finally:
            if self._state is not None and self._newest_state is not None:
                self._state.continue_as(self._newest_state)
            if isinstance(self._context, sdk.RunContextWrapper):
                note_calls(self._context, self.result)
            is_settled.reset(settled)
            self.is_complete = True
            self._unread.put_nowait(None)
        if self._failure is not None:
            raise self._failure

    async def stream_events(self) -> AsyncIterator[sdk.StreamEvent]:
        while (raw := await self._unread.get()) is not None:
            try:
                yield raw
            except GeneratorExit:
                # As in the SDK, closing the events waits for the run, which goes on.
                if self.run_loop_task is not None:
                    await asyncio.wait([self.run_loop_task])
                raise
        self._unread.put_nowait(None)
        if self._failure is not None:
            raise self._failure

    def cancel(self, mode: Literal["immediate", "after_turn"] = "immediate") -> None:
        """Stop at once, or after the current turn is done and in the session."""
        self._cancelled = mode
        if self._live is not None:
            self._live.cancel(mode=mode)
        if mode == "immediate":
            while not self._unread.empty():
                self._unread.get_nowait()
            if self.is_complete:
                self._unread.put_nowait(None)

    async def _steps(self) -> AsyncGenerator[sdk.StreamEvent, None]:
        """The SDK's events; `result` is set at the end. Calls that `always_approve` covers do not end the run."""
        if self._cancelled == "immediate":
            return
        state, standing = self._state, dict[str, CodeDecision]()
        decided = dict[str, CodeDecision]()
        if isinstance(self._context, sdk.RunContextWrapper):
            # Approvals in the context go to the store like any other decision of code.
            undecided_context = without_decisions(self._context, self._agent)
            self._options = replace(self._options, sdk={**self._options.sdk, "context": undecided_context})
        if state is None:
            # `runner.run` refuses an empty text as a likely mistake; the SDK makes a message of it.
            given = [{"role": "user", "content": ""}] if self._given == "" else self._given
            steps = self._runner.events(self._agent, given, self._options)
        else:
            standing = state.standing
            self._options = replace(self._options, sdk=context_of(state, self._options.sdk))
            if not state.run_id:
                decided = state.decisions
                steps = self._runner.events(self._agent, original_input(state), self._options, state)
            elif waiting := await self._decide(state.run_id, state.decisions):
                undecided = RunResult(
                    run_id=state.run_id,
                    interruptions=waiting,
                    last_agent=self._agent,
                    sdk_result=self._not_started(),
                )
                self.result = swapped(undecided, standing, state)
                return
            else:
                steps = self._runner.stream_resumed(state.run_id, self._agent, self._options, state.said)
        while True:
            async with aclosing(steps):
                async for raw, event in steps:
                    if isinstance(raw, sdk.RunResultStreaming):
                        self._live = raw
                        if self._cancelled is not None:
                            raw.cancel(mode=self._cancelled)
                    elif isinstance(raw, sdk.RunState):
                        self._newest_state = raw
                    elif raw is not None:
                        yield cast(sdk.StreamEvent, raw)
                    if event.result is not None:
                        self.result = swapped(event.result, standing)
            decisions = decisions_on(self.result, decided, self._context) if self.result is not None else None
            if self.result is None or decisions is None:
                return
            await self._decide(self.result.run_id, decisions)
            rejections = {call_id: one.message for call_id, one in decisions.items() if not one.is_approved}
            said = Said(rejections=rejections)
            steps = self._runner.stream_resumed(self.result.run_id, self._agent, self._options, said)

    async def _decide(self, run_id: str, decisions: Mapping[str, CodeDecision]) -> list[HumanApprovalRequest]:
        if any(one.is_approved for one in decisions.values()):
            check_code_may_approve()
        return await self._runner.decide_in_code(run_id, decisions, self._agent, self._options)

    @property
    def last_agent(self) -> Any:
        if self.result is not None:
            return self.result.last_agent
        return self._agent if self._live is None else public_agent(self._live.current_agent)

    @property
    def current_agent(self) -> Any:
        return self.last_agent

    @property
    def new_items(self) -> list[Any]:
        if self.result is not None:
            return cast("list[Any]", self.result.new_items)
        return [] if self._live is None else [as_the_user_knows_it(item) for item in self._live.new_items]

    def __setattr__(self, name: str, value: object) -> None:
        if name == "input" and self.result is not None:
            self.result.input = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__
        if name.startswith("__") or "result" not in known:
            raise AttributeError(name)
        source = known["result"] or known["_live"] or self._not_started()
        return getattr(source, name)

    def _not_started(self) -> sdk.RunResultStreaming:
        """The SDK's result of a run that has not begun, for its attributes."""
        given = self._options.sdk
        return unstarted_result(
            cast("str | list[Any]", self._given) if self._state is None else self._state,
            self._agent,
            context_for(given.get("context")),
            cast("int | None", given.get("max_turns")),
        )


sdk.RunResultStreaming.register(StreamedRun)


def _as_the_sdk_would(failure: AgentsError) -> Exception:
    """What the SDK itself raised comes out unchanged, so that code written for the SDK catches it."""
    cause = failure.__cause__
    details = getattr(cause, "run_data", None)
    if details is not None:
        details.last_agent = public_agent(details.last_agent)
        details.new_items = [as_the_user_knows_it(item) for item in details.new_items]
    is_own = failure.code in ("AGENTS-E-RUNNER", "AGENTS-E-STREAM", "AGENTS-E-GUARDRAIL-DENIED")
    return cause if is_own and isinstance(cause, Exception) else failure
