"""The engine on the OpenAI Agents SDK: takes an agent over, and runs it, streams it, or reads a paused run of it back."""

import dataclasses
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from difflib import get_close_matches
from importlib.metadata import version
from typing import Any, cast

from agents.run import RunOptions

from openai_responses_mcp.agents.providers.replayed_models import RequestedCallsModel, function_call
from openai_responses_mcp.agents.runs.ports import AgentEngine, EngineEvent, EngineOptions, PausedRun, TurnLedger
from openai_responses_mcp.agents.sdk.failures import translated
from openai_responses_mcp.agents.sdk.nested_runs import runner_of_the_sdk, watch_threads
from openai_responses_mcp.agents.sdk.paused_runs import PausedAtHandoff, PausedAtTools, decided_state
from openai_responses_mcp.agents.sdk.request_settings import config_of_run
from openai_responses_mcp.agents.sdk.sessions import RunInput, Session, context_for
from openai_responses_mcp.agents.sdk.takeover import McpTools, Takeover
from openai_responses_mcp.agents.sdk.tool_traits import describe_function, describe_handoff
from openai_responses_mcp.agents.sdk.turn_hooks import TurnHooks
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import OwnJson

# The SDK wants an input also where a caller asks for calls and gives none.
_NO_INPUT = "Make the calls."


class OpenAIAgentsEngine(AgentEngine):
    """`mcp_tools` lists the tools of an agent's MCP servers with all that the gate has to know about each."""

    def __init__(self, mcp_tools: McpTools, *, watches_threads: bool = False) -> None:
        self._mcp_tools = mcp_tools
        self._watches_threads = watches_threads
        runner_of_the_sdk()
        if watches_threads:
            watch_threads()

    async def describe(self, agent: object, guard: TurnLedger, context: object = None) -> list[ToolDescription]:
        takeover = Takeover(guard, self._mcp_tools)
        double = takeover.double_of(agent)
        with translated(guard, "AGENTS-E-RUNNER"):
            await double.get_all_tools(context_for(context))
        return takeover.catalogue_of(double).descriptions

    async def stream(
        self, agent: object, input: object, guard: TurnLedger, options: EngineOptions
    ) -> AsyncGenerator[EngineEvent, None]:
        session = await self._session(agent, guard, options)
        given = _given(input) if options.state is None else await decided_state(session, options.state)
        async with aclosing(session.stream(given)) as steps:
            async for step in steps:
                yield step

    async def restore(self, agent: object, saved: OwnJson, guard: TurnLedger, options: EngineOptions) -> PausedRun:
        session = await self._session(agent, guard, options)
        if saved.get("requested"):
            session.start.model = RequestedCallsModel(())
        try:
            if saved["kind"] == "handoff":
                return await PausedAtHandoff.read(session, saved)
            return await PausedAtTools.read(session, saved)
        except AgentsError:
            raise
        except Exception as exc:  # the SDK hides why it fails here, so no type can be named
            raise AgentsError(
                "AGENTS-E-RUNNER",
                f"The saved run cannot be read by openai-agents {version('openai-agents')}",
                details={"reason": "state_unreadable", "saved_by": str(saved.get("sdk"))},
            ) from exc

    async def _session(self, agent: object, guard: TurnLedger, options: EngineOptions) -> Session:
        takeover = Takeover(guard, self._mcp_tools, watches_threads=self._watches_threads)
        start = takeover.double_of(agent)
        given = _known_options(options.sdk)
        configured = given.get("run_config")
        given["run_config"] = config = config_of_run(configured)
        given["hooks"] = TurnHooks(takeover, given.get("hooks"), config)
        if options.max_turns is not None:
            given["max_turns"] = options.max_turns
        session = Session(
            takeover,
            start,
            given,
            is_requested=bool(options.requested_calls),
            is_streamed=options.is_streamed,
            configured=configured,
        )
        if options.requested_calls:
            await _make_requested_calls(session, options.requested_calls)
        return session


def _given(input: object) -> RunInput:
    return cast(RunInput, _NO_INPUT if input in (None, "") else input)


def _known_options(sdk: Mapping[str, object]) -> dict[str, Any]:
    """The SDK ignores names that it does not know. A misspelt `context` would be noticed much later."""
    known = list(RunOptions.__annotations__)
    for name in sdk:
        if name not in known:
            meant = get_close_matches(name, known, 1) or [f"one of {', '.join(known)}"]
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", f"The SDK has no option {name}; did you mean {meant[0]}?")
    return dict(sdk)


async def _make_requested_calls(session: Session, calls: tuple[PlannedCall, ...]) -> None:
    """Give the starting agent a model that makes exactly these calls and then reports what came of them."""
    with translated(session.takeover.guard, "AGENTS-E-RUNNER"):
        await session.start.get_all_tools(session.context)
    names = _names_for_the_model(session)
    wanted = [function_call(call.call_id, names[call.tool.name], dict(call.args)) for call in calls]
    session.start.model = RequestedCallsModel(wanted)
    session.start.output_type = None
    session.start.tool_use_behavior = "run_llm_again"
    session.options["run_config"] = dataclasses.replace(session.options["run_config"], model=None)


def _names_for_the_model(session: Session) -> dict[str, str]:
    catalogue = session.takeover.catalogue_of(session.start)
    names = {describe_handoff(one).name: name for name, one in catalogue.handoffs.items()}
    return names | {describe_function(tool).name: tool.name for tool in catalogue.tools.values()}
