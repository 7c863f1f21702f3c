"""Every private name of the SDK that this library touches, and nothing else.

The SDK has no public way to do these things. Its version is pinned in `pyproject.toml` to where the names exist;
`PRIVATE_NAMES` says what each is needed for, and a test looks each of them up in the version that is installed.
"""

import copy
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import agents as sdk
from agents import (
    Agent,
    CustomTool,
    FunctionTool,
    Handoff,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    RunResult,
    RunResultStreaming,
    RunState,
    ShellCallData,
    ShellTool,
    ToolApprovalItem,
    ToolCallOutputItem,
    TResponseInputItem,
)
from agents import util as sdk_util
from agents.mcp import MCPServer, MCPUtil
from agents.run_internal import agent_runner_helpers as runner_helpers
from agents.run_internal import agent_tool_configuration as tool_configuration
from agents.run_internal import tool_execution, turn_preparation
from agents.tool import _FailureHandlingFunctionToolInvoker as FailureHandling
from agents.tool_context import ToolContext
from mcp_types import Tool as McpTool
from mcp_types import ToolAnnotations
from openai.types.responses import ResponseFunctionToolCall

agent_identity = sdk._run_state_agent_identity

PRIVATE_NAMES: Mapping[tuple[type | ModuleType, str], str] = {
    (sdk_util, "_approvals"): "a tool's needs_approval would be asked otherwise than in the SDK",
    (sdk, "_public_agent"): "hooks, tools and items would show a double in the place of the user's agent",
    (sdk, "_run_state_agent_identity"): "a decision could go to another agent of the same name",
    (agent_identity, "_build_agent_identity_keys_by_id"): "a decision could go to another agent of the same name",
    (agent_identity, "_get_ambiguous_agent_ids"): "a decision could go to another agent of the same name",
    (RunState, "_original_input"): "a state of another run could not go on here",
    (RunContextWrapper, "_approvals"): "a call that code approved would run without a record of that",
    (RunContextWrapper, "_resolve_function_approval_owners"): "a call that code approved would be asked about again",
    (RunContextWrapper, "_tool_invocations"): "a call that has run would be asked about again",
    (RunState, "_generated_items"): "a tool's output would become JSON in a run that goes on",
    (RunState, "_session_items"): "a tool's output would become JSON in a run that goes on",
    (RunState, "_conversation_id"): "a session beside the provider's own history would be refused too late",
    (RunState, "_previous_response_id"): "a session beside the provider's own history would be refused too late",
    (RunState, "_auto_previous_response_id"): "a session beside the provider's own history would be refused too late",
    (RunState, "_model_responses"): "a run that has not gone on from its state could not be looked at",
    (RunState, "_current_turn"): "a run that has not gone on from its state could not be looked at",
    (RunState, "_starting_agent"): "a decision for always could not be kept in a state that is written as text",
    (RunState, "_context"): "a state that was read back with a context could not be resumed with it",
    (FunctionTool, "_tool_namespace"): "two tools of one name in two namespaces would be mixed up",
    (FunctionTool, "_is_agent_tool"): "an agent used as a tool could not be paused while it runs",
    (FunctionTool, "_agent_instance"): "a run inside an agent used as a tool could not be read back after a pause",
    (FunctionTool, "_mcp_tool_binding"): "a tool of an MCP server would be judged as a plain function",
    (FunctionTool, "_mcp_annotations"): "what an MCP server says about a tool would be lost on the way to the SDK",
    (FailureHandling, "_invoke_tool_impl"): "a tool that raised would be recorded as completed",
    (Handoff, "_agent_ref"): "a saved run could not be read back into the guarded agents behind its handoffs",
    (MCPServer, "_error_name"): "credentials in a server's name would be shown",
    (MCPUtil, "_build_prefixed_tool_name_overrides"): "two MCP servers that offer one tool name could not be used",
    (RunResult, "_last_agent"): "a run that waits at a handoff could not give a result",
    (RunResultStreaming, "_current_agent_output_schema"): "a streamed run could not be looked at before it has begun",
    (RunState, "_current_agent"): "handoffs of a paused turn could not be compared with what was approved",
    (RunState, "_last_processed_response"): "handoffs of a paused turn could not be compared with what was approved",
}
"""What breaks without each."""


# ---------------------------------------------------------------------------------------------------------------------
# Tools


def namespace_of(tool: FunctionTool) -> str | None:
    return tool._tool_namespace


def is_agent_tool(tool: FunctionTool) -> bool:
    return tool._is_agent_tool


def agent_inside(tool: FunctionTool) -> object:
    """The agent that an agent tool runs."""
    return tool._agent_instance


def put_agent_inside(tool: FunctionTool, agent: Agent[Any]) -> None:
    tool._agent_instance = agent


def mcp_binding(tool: FunctionTool) -> tuple[str, str, int | None] | None:
    """Server, tool and the server's number, for a tool of an MCP server."""
    return tool._mcp_tool_binding


def watched(
    tool: FunctionTool, notice: Callable[[Exception], object]
) -> Callable[[ToolContext[Any], str], Awaitable[Any]]:
    """The tool's own call. What the tool raises is noticed, even if the SDK turns it into an answer for the model."""
    invoke = tool.on_invoke_tool
    if not isinstance(invoke, FailureHandling):
        return invoke
    inner, copied = invoke._invoke_tool_impl, copy.copy(invoke)

    async def noticing(context: ToolContext[Any], arguments: str) -> object:
        try:
            return await inner(context, arguments)
        except Exception as exc:
            notice(exc)
            raise

    copied._invoke_tool_impl = noticing
    return copied


async def asks_a_human(
    tool: FunctionTool | CustomTool | ShellTool, context: RunContextWrapper[Any], arguments: Any, call_id: str
) -> bool:
    """As the SDK decides: arguments that cannot be parsed, or that validation would change, need a human."""
    if not isinstance(tool, FunctionTool):
        setting: Any = tool.needs_approval
        return await sdk_util._approvals.evaluate_needs_approval_setting(setting, context, arguments, call_id)
    approval = await sdk_util._approvals.evaluate_function_tool_approval(tool, context, arguments, call_id)
    return approval.outcome == "require_approval"


def shell_call_in(item: object) -> ShellCallData:
    """Raises `ModelBehaviorError` for a call without commands."""
    return tool_execution.coerce_shell_call(item)


def put_mcp_binding(tool: FunctionTool, server: str, name: str, number: int) -> None:
    tool._mcp_tool_binding = (server, name, number)


def put_annotations(tool: FunctionTool, annotations: ToolAnnotations | None) -> None:
    tool._mcp_annotations = annotations


# ---------------------------------------------------------------------------------------------------------------------
# MCP servers


def shown_name(server: MCPServer) -> str:
    """The server's name without credentials."""
    return server._error_name


def prefixed_names(
    batches: Sequence[tuple[int, MCPServer, list[McpTool]]], taken: set[str]
) -> dict[tuple[int, int], str]:
    """A name with the server's in front for each tool, by the numbers of server and tool."""
    return MCPUtil._build_prefixed_tool_name_overrides(list(batches), reserved_names=taken)


# ---------------------------------------------------------------------------------------------------------------------
# Handoffs and runs


def public_agent(agent: Agent[Any]) -> Agent[Any]:
    """The user's own agent behind a double."""
    return sdk._public_agent.get_public_agent(agent)


def put_public_agent(double: Agent[Any], agent: Agent[Any]) -> None:
    sdk._public_agent.set_public_agent(double, agent)


def call_id_of(item: ToolApprovalItem) -> str:
    """The ledger's id of the call, which is not always the provider's: runs inside runs may use one id twice."""
    return getattr(item, "guarded_call_id", None) or item.call_id or ""


def put_call_id(item: ToolApprovalItem, call_id: str | None) -> None:
    item.guarded_call_id = call_id  # type: ignore[attr-defined]


def show_own_agent(item: ToolApprovalItem) -> None:
    """Put the user's agent in the place of its double, by which the SDK finds the item again."""
    item.guarded_agent = item.agent  # type: ignore[attr-defined]
    item.agent = public_agent(item.agent)


def as_the_sdk_knows_it(item: ToolApprovalItem) -> ToolApprovalItem:
    known = copy.copy(item)
    known.agent = getattr(item, "guarded_agent", item.agent)
    return known


def decided_in(context: RunContextWrapper[Any], item: ToolApprovalItem) -> tuple[bool, str | None] | None:
    """The decision on this call in the caller's context: yes or no, and the message of a no."""
    if not context._approvals or not item.call_id:
        return None
    name, namespace, key = item.tool_name or "", item.tool_namespace, item.tool_lookup_key
    status = context.get_approval_status(
        name, item.call_id, tool_namespace=namespace, tool_lookup_key=key, current_invocation=item
    )
    if status is None:
        return None
    return status, context.get_rejection_message(
        name, item.call_id, tool_namespace=namespace, tool_lookup_key=key, existing_pending=item
    )


def without_decisions(context: RunContextWrapper[Any], agent: Agent[Any] | None = None) -> RunContextWrapper[Any]:
    """A copy without decisions, for a run that asks about every call. With `agent`, decisions in the given context are first
    assigned to their agents."""
    if agent is not None:
        context._resolve_function_approval_owners(agent)
    made = copy.copy(context)
    made._approvals = {}
    return made


def places_of_agents(root: Agent[Any]) -> dict[int, str]:
    """Names by which agents are found again in another process, without ambiguous ones."""
    named, unclear = agent_identity._build_agent_identity_keys_by_id(root), ambiguous_agents(root)
    return {agent: name for agent, name in named.items() if agent not in unclear}


def ambiguous_agents(root: Agent[Any]) -> set[int]:
    return agent_identity._get_ambiguous_agent_ids(root)


def has_run(state: RunState[Any, Any], item: ToolApprovalItem) -> bool:
    context = context_in(state)
    record = None if context is None else context._tool_invocations.get(item.call_id or "")
    return record is not None and record.executed


def note_calls(context: RunContextWrapper[Any], result: object) -> None:
    """Record the calls that ran in the caller's context, so that another run with this context does not repeat them."""
    used = getattr(result, "context_wrapper", None)
    if isinstance(used, RunContextWrapper):
        context._tool_invocations.update(used._tool_invocations)


def calls_in(context: RunContextWrapper[Any]) -> dict[str, object]:
    """The calls that a context knows, also of other runs that were given it."""
    return dict(context._tool_invocations)


def put_calls(state: RunState[Any, Any], calls: Mapping[str, Any]) -> None:
    if state._context is not None:
        state._context._tool_invocations = {**calls, **state._context._tool_invocations}


def keep_outputs(state: RunState[Any, Any], restored: RunState[Any, Any]) -> None:
    """Copy the tools' outputs as objects: a state that is read back has them as JSON."""
    pairs = [(state._generated_items, restored._generated_items), (state._session_items, restored._session_items)]
    for items, read_back_items in pairs:
        for item, read_back in zip(items, read_back_items, strict=False):
            if not isinstance(item, ToolCallOutputItem) or not isinstance(read_back, ToolCallOutputItem):
                continue
            if item.call_id == read_back.call_id:
                read_back.output = item.output


def starting_agent(state: RunState[Any, Any]) -> Agent[Any] | None:
    found: Agent[Any] | None = state._starting_agent
    return found


def context_in(state: RunState[Any, Any]) -> RunContextWrapper[Any] | None:
    return state._context


def watch_tools(agent: Agent[Any]) -> AbstractContextManager[None]:
    """Refuse a change of the agent's tools while another run uses the agent, as the SDK does."""
    return tool_configuration.guard_agent_tool_configuration(agent)


def use_tools(agent: Agent[Any]) -> None:
    """From now on this run uses the agent."""
    tool_configuration.register_agent_tool_configuration(agent)


def handoff_target(handoff: Handoff[Any, Any]) -> object:
    return handoff._agent_ref() if handoff._agent_ref else None


def put_handoff_target(handoff: Handoff[Any, Any], agent: Agent[Any]) -> None:
    handoff._agent_ref = weakref.ref(agent)


def pending_handoffs(state: RunState[Any, Any]) -> tuple[Agent[Any] | None, list[ResponseFunctionToolCall]]:
    """Who was speaking when the run paused, and the calls for handoffs among what it said."""
    processed = state._last_processed_response
    return state._current_agent, [run.tool_call for run in processed.handoffs] if processed else []


def original_input(state: RunState[Any, Any]) -> str | list[TResponseInputItem]:
    return state._original_input


def check_options(agent: Agent[Any], options: Mapping[str, Any], state: RunState[Any, Any] | None = None) -> None:
    """Raises what the SDK raises before a run begins, or goes on from a state."""
    turn_preparation.validate_run_hooks(options.get("hooks"))
    kept = {name: options.get(name) for name in ("conversation_id", "previous_response_id")}
    kept["auto_previous_response_id"] = bool(options.get("auto_previous_response_id"))
    if state is not None:
        kept["conversation_id"] = kept["conversation_id"] or state._conversation_id
        kept["previous_response_id"] = kept["previous_response_id"] or state._previous_response_id
        kept["auto_previous_response_id"] = kept["auto_previous_response_id"] or state._auto_previous_response_id
    settings: Any = runner_helpers
    settings.validate_session_conversation_settings(options.get("session"), **kept)
    if any(kept.values()):
        config = options.get("run_config") or {}
        config = RunConfig(**config) if isinstance(config, dict) else config
        settings.validate_output_guardrails_with_server_managed_conversation(agent, config, **kept)


def unstarted_result(
    input: str | list[TResponseInputItem] | RunState[Any, Any],
    agent: Agent[Any],
    context: RunContextWrapper[Any],
    max_turns: int | None,
) -> RunResultStreaming:
    """The result of a run that has not begun, or has not gone on from its state."""
    state = input if isinstance(input, RunState) else None
    made = RunResultStreaming(
        input=original_input(input) if isinstance(input, RunState) else input,
        raw_responses=[] if state is None else list(state._model_responses),
        context_wrapper=context,
        current_agent=agent,
        current_turn=0 if state is None else state._current_turn,
        max_turns=max_turns,
        _current_agent_output_schema=None,
        trace=None,
        **_nothing_done(),
    )
    made.new_items = [] if state is None else list(state._session_items)
    return made


def unfinished_result(
    said: list[TResponseInputItem], response: ModelResponse, context: RunContextWrapper[Any], agent: Agent[Any]
) -> RunResult:
    """The result of a run that stops after this reply."""
    return RunResult(
        input=said, raw_responses=[response], context_wrapper=context, _last_agent=agent, **_nothing_done()
    )


def _nothing_done() -> dict[str, Any]:
    guardrails = ("input", "output", "tool_input", "tool_output")
    return {"new_items": [], "final_output": None, **{f"{name}_guardrail_results": [] for name in guardrails}}
