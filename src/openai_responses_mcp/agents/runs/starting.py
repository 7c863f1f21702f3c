"""Starting a run. Before the engine starts, the input passes the guardrails, and the tools that a caller asks for are found."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from openai_responses_mcp.agents.runs.book import Run, RunBook
from openai_responses_mcp.agents.runs.finishing import FinishRun
from openai_responses_mcp.agents.runs.ledger import RunLedgers
from openai_responses_mcp.agents.runs.models import Extensions, RunEvent, RunOptions
from openai_responses_mcp.agents.runs.ports import AgentEngine, EngineEvent, EngineOptions
from openai_responses_mcp.gate.calls import PlannedCall
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.guardrails import guardrails_of
from openai_responses_mcp.gate.json_values import words_of


class StartRun:
    def __init__(self, engine: AgentEngine, book: RunBook, guards: RunLedgers, finish: FinishRun) -> None:
        self._engine = engine
        self._book = book
        self._guards = guards
        self._finish = finish

    async def stream(
        self, agent: object, input: object, options: RunOptions, extensions: Extensions, state: object = None
    ) -> AsyncGenerator[tuple[object, RunEvent], None]:
        """With a `state` of the engine the run begins where that stands, and `input` is what it began with."""
        run = await self._begin(agent, input, options, extensions, state)
        async with aclosing(self._finish.stream(run, self._steps(run, input))) as events:
            async for event in events:
                yield event

    async def _begin(
        self, agent: object, input: object, options: RunOptions, extensions: Extensions, state: object
    ) -> Run:
        if state is None and not extensions.tool_calls and (not isinstance(input, str | list) or input == ""):
            message = f"input is a text or a list of items, not {type(input).__name__}"
            if isinstance(input, str):
                message = "input is empty"
            if type(input).__name__ == "RunState":
                message = "A RunState goes on with Runner.run, or with approve_and_resume(run_id, approval_id)"
            raise AgentsError("AGENTS-E-RUNNER", message)
        sdk = dict(options.sdk)
        record = await self._book.begin(agent, sdk)
        guard = self._guards.ledger_for(record.run_id, agent, extensions, words_of(input))
        engine_options = EngineOptions(max_turns=extensions.max_turns, sdk=sdk, is_streamed=options.stream, state=state)
        return Run(record, agent, guard, extensions, engine_options)

    async def _steps(self, run: Run, input: object) -> AsyncGenerator[EngineEvent, None]:
        options = await self._ready(run, input)
        async with aclosing(self._engine.stream(run.agent, input, run.guard, options)) as steps:
            async for step in steps:
                yield step

    async def _ready(self, run: Run, input: object) -> EngineOptions:
        await guardrails_of(run.agent).check_input(words_of(input))
        return replace(run.options, requested_calls=await self._requested(run))

    async def _requested(self, run: Run) -> tuple[PlannedCall, ...]:
        calls = run.extensions.tool_calls
        if not calls:
            return ()
        described = await self._engine.describe(run.agent, run.guard, run.options.sdk.get("context"))
        catalog = {tool.name: tool for tool in described}
        # The model's API refuses dots: what is asked for as skill.list is offered as skill_list.
        found = [(catalog.get(call.tool_name) or catalog.get(call.tool_name.replace(".", "_")), call) for call in calls]
        unknown = [call.tool_name for tool, call in found if tool is None]
        if unknown:
            raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", f"{', '.join(unknown)} is not a tool of this agent")
        return tuple(
            PlannedCall(f"call_{uuid.uuid4().hex}", tool, dict(call.args)) for tool, call in found if tool is not None
        )
