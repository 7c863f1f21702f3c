"""The engine on the OpenAI Agents SDK: takes an agent over, and runs it, streams it, or reads a paused run of it back.

A run that paused at tools is the SDK's own run state. A run that paused at handoffs alone is the model's reply with the
input that it answered: on resume the reply is replayed.

Two models ask no provider: one makes the calls that a caller requested, one repeats a saved reply.
"""

import dataclasses
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from importlib.metadata import version
from typing import Any, cast

from agents import Agent, Model, ModelResponse, RunConfig, RunState, TResponseInputItem, Usage, UserError
from agents.items import TResponseOutputItem, TResponseStreamEvent
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import TypeAdapter

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.agents.runs.models import UsageStats
from openai_responses_mcp.agents.runs.ports import (
    AgentEngine,
    EngineEvent,
    EngineOptions,
    PausedRun,
    Said,
)
from openai_responses_mcp.agents.sdk.internals import (
    calls_in,
    context_in,
    has_run,
    keep_outputs,
    pending_handoffs,
    put_calls,
    without_decisions,
)
from openai_responses_mcp.agents.sdk.nested_runs import runner_of_the_sdk, watch_threads
from openai_responses_mcp.agents.sdk.request_settings import config_of_run, known_options
from openai_responses_mcp.agents.sdk.sessions import RunInput, Session, approve_all, context_for, translated
from openai_responses_mcp.agents.sdk.takeover import McpTools, Takeover
from openai_responses_mcp.agents.sdk.tool_traits import describe_function, describe_handoff
from openai_responses_mcp.agents.sdk.turns import TurnHooks, planned
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription, Turn
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, OwnJson

# The SDK needs an input, also for calls that the caller asks for without one.
_NO_INPUT = "Make the calls."


class OpenAIAgentsEngine(AgentEngine):
    """`mcp_tools` lists the tools of an agent's MCP servers, with everything the gate needs to know about each."""

    def __init__(self, mcp_tools: McpTools, *, watches_threads: bool = False) -> None:
        self._mcp_tools = mcp_tools
        self._watches_threads = watches_threads
        runner_of_the_sdk()
        if watches_threads:
            watch_threads()

    async def describe(self, agent: object, ledger: RunLedger, context: object = None) -> list[ToolDescription]:
        takeover = Takeover(ledger, self._mcp_tools)
        double = takeover.double_of(agent)
        with translated(ledger, "AGENTS-E-RUNNER"):
            await double.get_all_tools(context_for(context))
        return takeover.catalogue_of(double).descriptions

    async def stream(
        self, agent: object, input: object, ledger: RunLedger, options: EngineOptions
    ) -> AsyncGenerator[EngineEvent, None]:
        session = await self._session(agent, ledger, options)
        given: RunInput = cast(RunInput, _NO_INPUT if input in (None, "") else input)
        if options.state is not None:
            given = await decided_state(session, options.state)
        async with aclosing(session.stream(given)) as steps:
            async for step in steps:
                yield step

    async def restore(self, agent: object, saved: OwnJson, ledger: RunLedger, options: EngineOptions) -> PausedRun:
        session = await self._session(agent, ledger, options)
        if saved.get("requested"):
            session.start.model = RequestedCallsModel(())
        try:
            if saved["kind"] == "handoff":
                return await _paused_at_handoff(session, saved)
            return await _paused_at_tools(session, saved)
        except AgentsError:
            raise
        except Exception as exc:  # the SDK hides why it fails here, so no type can be named
            raise AgentsError(
                "AGENTS-E-RUNNER",
                f"The saved run cannot be read by openai-agents {version('openai-agents')}",
                details={"reason": "state_unreadable", "saved_by": str(saved.get("sdk"))},
            ) from exc

    async def _session(self, agent: object, ledger: RunLedger, options: EngineOptions) -> Session:
        takeover = Takeover(ledger, self._mcp_tools, watches_threads=self._watches_threads)
        start = takeover.double_of(agent)
        given = known_options(options.sdk)
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


async def _make_requested_calls(session: Session, calls: tuple[PlannedCall, ...]) -> None:
    """Give the starting agent a model that makes exactly these calls and then reports their results."""
    with translated(session.takeover.ledger, "AGENTS-E-RUNNER"):
        await session.start.get_all_tools(session.context)
    catalogue = session.takeover.catalogue_of(session.start)
    names = {describe_handoff(one).name: name for name, one in catalogue.handoffs.items()}
    names |= {describe_function(tool).name: tool.name for tool in catalogue.tools.values()}
    wanted = [function_call(call.call_id, names[call.tool.name], dict(call.args)) for call in calls]
    session.start.model = RequestedCallsModel(wanted)
    session.start.output_type = None
    session.start.tool_use_behavior = "run_llm_again"
    session.options["run_config"] = dataclasses.replace(session.options["run_config"], model=None)


# ---------------------------------------------------------------------------------------------------------------------
# Paused runs

_OUTPUT = TypeAdapter(list[ResponseOutputItem])


async def _paused_at_tools(session: Session, saved: OwnJson) -> PausedRun:
    takeover, context = session.takeover, session.context
    # Called here first: inside the SDK a failure would lose its name.
    await session.start.get_all_tools(context)
    given = session.options.pop("context", None)
    override = None if given is None else context_for(given)
    calls_before = {} if override is None else calls_in(override)
    state = await RunState.from_json(session.start, dict(saved["state"]), context_override=override)
    put_calls(state, calls_before)
    turns: list[Turn] = []
    takeover.ids.first_uses = dict(saved["first_uses"])
    waiting = state.get_interruptions()
    if len(waiting) < len(saved["call_ids"]):
        message = "An agent used as a tool that waits for a human is gone, or is another one now"
        raise AgentsError("AGENTS-E-RESUME-TOKEN", message, details={"reason": "changed"})
    for item, call_id in zip(waiting, saved["call_ids"], strict=True):
        takeover.ids.put(item.raw_item, call_id)
        await item.agent.get_all_tools(context)
        turns.append(_turn(takeover, item.agent, await planned(takeover, item.agent, [item.raw_item])))
    speaker, handoffs = pending_handoffs(state)
    if handoffs and speaker is not None:
        transfers = await planned(takeover, speaker, handoffs)
        takeover.handoffs.expect(transfers)
        turns.append(_turn(takeover, speaker, transfers))

    async def stream(said: Said) -> AsyncGenerator[EngineEvent, None]:
        with translated(takeover.ledger, "AGENTS-E-RUNNER"):
            await approve_all(state, takeover, said.rejections)
        for input in filter(None, (said.text, list(said.input))):
            # If the run ends with this tool's result, the model is not asked again and gets no input.
            with suppress(UserError):
                state.add_input(cast("str | list[TResponseInputItem]", input))
        yield EngineEvent(raw=state)  # so that callers know how far the run came if it fails
        async with aclosing(session.stream(state)) as steps:
            async for step in steps:
                yield step

    return PausedRun(turns, stream)


async def _paused_at_handoff(session: Session, saved: OwnJson) -> PausedRun:
    double = session.takeover.double_named(saved["agent"])
    if double is None:
        raise LookupError("the agent that was speaking cannot be reached from the agent given")
    await double.get_all_tools(session.context)
    output = _OUTPUT.validate_python(saved["output"])
    calls = await planned(session.takeover, double, output)
    session.start = double
    session.usage_before = UsageStats(**saved["usage"])
    reply = ModelResponse(output=output, usage=Usage(), response_id=saved["response_id"])
    config: RunConfig = session.options["run_config"]
    rest = config.model or double.model

    def real_model() -> Model:
        return rest if isinstance(rest, Model) else config.model_provider.get_model(rest)

    repeated = RepeatedModel(reply, real_model)
    if config.model is None:
        double.model = repeated
    else:
        session.options["run_config"] = dataclasses.replace(config, model=repeated)

    def stream(said: Said) -> AsyncGenerator[EngineEvent, None]:
        added: list[TResponseInputItem] = [] if said.text is None else [{"role": "user", "content": said.text}]
        added += cast("list[TResponseInputItem]", said.input)
        # A session has the input already, and puts it in front.
        has_input = session.options.get("session") is not None
        return session.stream(added if has_input else [*saved["input"], *added])

    return PausedRun([_turn(session.takeover, double, calls)], stream)


async def decided_state(session: Session, state: object) -> RunState[Any, Any]:
    """A state that did not come from a pause here. Its calls are decided as if the model had just made them."""
    assert isinstance(state, RunState)  # noqa: S101 - nothing else is given as a state
    takeover, ledger = session.takeover, session.takeover.ledger
    with translated(ledger, "AGENTS-E-RUNNER"):
        saved = state.to_json(context_serializer=lambda context: {})
        saved["context"]["approvals"] = {}  # the text may come from elsewhere, and these with it
        given = session.options.get("context")
        context = context_for(given) if given is not None else context_in(state) or context_for(None)
        context = without_decisions(context)
        restored = await RunState.from_json(session.start, saved, context_override=context)
        keep_outputs(state, restored)
        # A call that has run does not run again: the SDK goes on with its result.
        over = [item for item in restored.get_interruptions() if has_run(restored, item)]
        waiting = [item for item in restored.get_interruptions() if item not in over]
        for speaker in {id(item.agent): item.agent for item in waiting}.values():
            await speaker.get_all_tools(context)
            raw = [item.raw_item for item in waiting if item.agent is speaker]
            calls = await planned(takeover, speaker, raw, context)
            await ledger.judge(takeover.original_of(speaker), calls, takeover.catalogue_of(speaker).descriptions)
        if not any(ledger.is_waiting(takeover.ids.of_waiting(item)) for item in waiting):
            await approve_all(restored, takeover)
        for item in over:
            restored.approve(item)
    return restored


def _turn(takeover: Takeover, double: Agent[Any], calls: Sequence[PlannedCall]) -> Turn:
    return Turn(takeover.original_of(double), tuple(calls), tuple(takeover.catalogue_of(double).descriptions))


NO_TOKENS = ResponseUsage(
    input_tokens=0,
    output_tokens=0,
    total_tokens=0,
    input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
    output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
)


def message(text: str, item_id: str = "msg_standin") -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id=item_id, content=[content], role="assistant", status="completed", type="message")


def function_call(call_id: str, name: str, args: JsonObject | str) -> ResponseFunctionToolCall:
    arguments = args if isinstance(args, str) else json.dumps(args)
    return ResponseFunctionToolCall(call_id=call_id, name=name, arguments=arguments, type="function_call", id=call_id)


def completed(
    output: Sequence[TResponseOutputItem], response_id: str = "resp_standin", usage: ResponseUsage | None = NO_TOKENS
) -> ResponseCompletedEvent:
    response = Response(
        id=response_id,
        created_at=0,
        model="standin",
        object="response",
        output=list(output),
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
        usage=usage,
    )
    return ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


class RequestedCallsModel(Model):
    """Replies with the calls, then with their results as the final text."""

    def __init__(self, calls: Sequence[ResponseFunctionToolCall]) -> None:
        self._calls = list(calls)

    async def get_response(
        self, system_instructions: str | None, input: str | list[TResponseInputItem], *args: Any, **options: Any
    ) -> ModelResponse:
        items: Sequence[object] = input
        results: list[OwnJson] = [
            item for item in items if isinstance(item, dict) and item.get("type") == "function_call_output"
        ]
        done = {item["call_id"] for item in results}
        if self._calls and not any(call.call_id in done for call in self._calls):
            return ModelResponse(output=list(self._calls), usage=Usage(), response_id=None)
        mine = [item for item in results if not self._calls or item["call_id"] in {c.call_id for c in self._calls}]
        outputs = [item["output"] for item in mine]
        text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in outputs)
        return ModelResponse(output=[message(text)], usage=Usage(), response_id=None)

    async def stream_response(
        self, system_instructions: str | None, input: str | list[TResponseInputItem], *args: Any, **options: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        yield completed((await self.get_response(system_instructions, input)).output)


class RepeatedModel(Model):
    """Repeats the reply that was given before the run was saved. After that the real model is asked."""

    def __init__(self, reply: ModelResponse, rest: Callable[[], Model]) -> None:
        self._reply: ModelResponse | None = reply
        self._rest = rest

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        if self._reply is not None:
            reply, self._reply = self._reply, None
            return reply
        return await self._rest().get_response(*args, **options)

    async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[TResponseStreamEvent]:
        if self._reply is not None:
            reply, self._reply = self._reply, None
            # Its usage was counted when it was first given.
            yield completed(reply.output, reply.response_id or "resp_standin", usage=None)
            return
        async for event in self._rest().stream_response(*args, **options):
            yield event
