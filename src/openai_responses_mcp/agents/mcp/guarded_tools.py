"""The tools of an agent's MCP servers as the model sees them, with what the gate needs to know about each."""

import asyncio
import copy
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from agents import Agent, FunctionTool, Handoff, RunContextWrapper, Tool, default_tool_error_function
from agents.exceptions import AgentsException
from agents.mcp import MCPServer, MCPUtil
from agents.tool_context import ToolContext
from mcp_types import CallToolResult, ContentBlock
from mcp_types import Tool as McpTool
from pydantic import ValidationError

from openai_responses_mcp.agents.mcp.connections import cause_in, entry_of
from openai_responses_mcp.agents.mcp.gateway import McpRules
from openai_responses_mcp.agents.mcp.hosted_server import HostedMcpServer, directory_of
from openai_responses_mcp.agents.sdk.guarded_calls import handed_over
from openai_responses_mcp.agents.sdk.internals import (
    prefixed_names,
    put_annotations,
    put_mcp_binding,
    shown_name,
    watched,
)
from openai_responses_mcp.agents.sdk.tool_traits import ToolTraits, with_traits
from openai_responses_mcp.gate.definitions import (
    DefinitionPins,
    McpCapability,
    MemoryPins,
    change_between,
    check_arguments,
    checked_capabilities,
    is_same,
    schema_error,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.reasons import DEFINITION_CHANGED
from openai_responses_mcp.gate.schema.checking import SchemaChecker

LONGEST_TOOL_NAME = 64


async def guarded_mcp_tools(
    agent: Agent[Any],
    context: RunContextWrapper[Any],
    kept: DefinitionPins | None = None,
    schemas: SchemaChecker | None = None,
) -> list[Tool]:
    """Every tool of the agent's servers under a unique name, with what the gate needs to know about it.

    `kept` are the pins of a durable store, for servers without a pin file.
    """
    if not agent.mcp_servers:
        return []
    names = [server.name for server in agent.mcp_servers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise schema_error(f"Two MCP servers are called {', '.join(twice)}: give one of them another name")
    listed = [(server, await _listed(server, agent, context)) for server in agent.mcp_servers]
    capabilities = [
        await asyncio.to_thread(checked_capabilities, shown_name(server), [entry_of(tool) for tool in tools])
        for server, tools in listed
    ]
    wire_names = _wire_names(agent, listed)
    made: list[Tool] = []
    for number, (server, tools) in enumerate(listed):
        pins = _pins_of(server, kept)
        known = await pins.known() if tools else {}
        for place, tool in enumerate(tools):
            capability = capabilities[number][place]
            function_tool = _function_tool(agent, server, tool, capability, wire_names[number, place], number)
            made.append(_guarded(function_tool, server, capability, pins, known, schemas or SchemaChecker()))
    return made


async def _listed(server: MCPServer, agent: Agent[Any], context: RunContextWrapper[Any]) -> list[McpTool]:
    try:
        return await server.list_tools(context, agent)
    except AgentsError:
        raise
    except (AgentsException, ValidationError) as exc:
        raise schema_error(
            f"The tools of the MCP server {shown_name(server)} cannot be used; update or remove it"
        ) from exc
    except Exception as exc:  # servers and transports raise what they like
        message = f"The MCP server {shown_name(server)} does not list its tools ({cause_in(exc)}); is it running?"
        raise AgentsError("AGENTS-E-MCP-UNREACHABLE", message) from None


def _wire_names(agent: Agent[Any], listed: Sequence[tuple[MCPServer, list[McpTool]]]) -> dict[tuple[int, int], str]:
    """The tool's own name if it is unique, else the SDK's name with the server's in front."""
    taken = [tool.name for tool in agent.tools]
    taken += [one.tool_name if isinstance(one, Handoff) else Handoff.default_tool_name(one) for one in agent.handoffs]
    batches = [(number, server, tools) for number, (server, tools) in enumerate(listed)]
    if agent.mcp_config.get("include_server_in_tool_names", False):
        return prefixed_names(batches, set(taken))
    plain = {(number, place): _fit(tool.name) for number, _, tools in batches for place, tool in enumerate(tools)}
    taken += plain.values()
    prefixed = prefixed_names(batches, set(taken))
    return {key: name if taken.count(name) == 1 else prefixed[key] for key, name in plain.items()}


def _fit(name: str) -> str:
    """A name that model APIs accept, with a hash if characters were replaced or cut."""
    fitting = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if fitting == name and len(name) <= LONGEST_TOOL_NAME:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{fitting[: LONGEST_TOOL_NAME - len(mark) - 1]}_{mark}"


def _function_tool(
    agent: Agent[Any], server: MCPServer, tool: McpTool, capability: McpCapability, wire_name: str, number: int
) -> FunctionTool:
    if isinstance(server, HostedMcpServer):
        made = _hosted_tool(server, capability, wire_name)
        put_annotations(made, copy.deepcopy(tool.annotations))
    else:
        strict = agent.mcp_config.get("convert_schemas_to_strict", False)
        on_failure = agent.mcp_config.get("failure_error_function", default_tool_error_function)
        made = MCPUtil.to_function_tool(
            tool, server, strict, agent, failure_error_function=on_failure, tool_name_override=wire_name
        )
        made.on_invoke_tool = watched(made, handed_over)
    put_mcp_binding(made, shown_name(server), tool.name, number)
    return made


_pins_of_plain: WeakKeyDictionary[MCPServer, DefinitionPins] = WeakKeyDictionary()


def _pins_of(server: MCPServer, kept: DefinitionPins | None) -> DefinitionPins:
    if isinstance(server, HostedMcpServer):
        return server.given_pins or kept or server.own_pins
    return kept or _pins_of_plain.setdefault(server, MemoryPins())


def _guarded(
    made: FunctionTool,
    server: MCPServer,
    capability: McpCapability,
    pins: DefinitionPins,
    known: Mapping[str, str],
    schemas: SchemaChecker,
) -> FunctionTool:
    """The tool with its traits for the gate. Its definition is pinned when the call is allowed.

    If the arguments do not fit, the model gets an error and the server gets nothing.
    """
    rules = server.rules if isinstance(server, HostedMcpServer) else McpRules(require_approval=False)
    key, pin = f"{shown_name(server)}/{capability.name}", capability.pin
    traits = ToolTraits(
        kind="mcp",
        name=key,
        risk_level=rules.risk_of(capability.name),
        require_approval=rules.require_approval,
        definition=capability.entry,
        directory=directory_of(server),
    )
    before = known.get(key)
    if before is not None and not is_same(before, pin):
        change = change_between(before, pin)
        traits = replace(traits, doubts=(DEFINITION_CHANGED,), definition_change=change)
    invoke = made.on_invoke_tool

    async def pin_and_invoke(context: ToolContext[Any], arguments: str) -> object:
        if before != pin:
            await pins.put(key, pin)
        try:
            args = json.loads(arguments or "{}")
            if not isinstance(args, dict):
                raise ValueError
        except (ValueError, RecursionError):
            return handed_over("The tool was not called, because its arguments are not a JSON object")
        try:
            await check_arguments(shown_name(server), capability, args, schemas)
        except AgentsError as exc:
            return handed_over(str(exc))
        return await invoke(context, arguments)

    made.on_invoke_tool = pin_and_invoke
    return with_traits(made, traits)


def _hosted_tool(server: HostedMcpServer, capability: McpCapability, wire_name: str) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> object:
        try:
            return _output_of(await server.call_tool(capability.name, json.loads(arguments or "{}")))
        except AgentsError as exc:
            if exc.details.get("reason") != "rejected":
                raise
            # The server answered with an error, so the model may try again.
            return handed_over(str(exc))

    return FunctionTool(
        name=wire_name,
        description=capability.description,
        params_json_schema={"type": "object", "properties": {}, **copy.deepcopy(dict(capability.schema))},
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _output_of(result: CallToolResult) -> str | list[dict[str, str]]:
    """Texts as one text, images as images, anything else as JSON."""
    parts = [_part(block) for block in result.content]
    if not parts and result.structured_content is not None:
        parts = [{"type": "text", "text": json.dumps(result.structured_content, ensure_ascii=False)}]
    if any(part["type"] != "text" for part in parts):
        return parts
    text = "\n".join(part["text"] for part in parts)
    return handed_over(f"The tool reports a failure: {text}") if result.is_error else text


def _part(block: ContentBlock) -> dict[str, str]:
    if block.type == "text":
        return {"type": "text", "text": block.text}
    if block.type == "image":
        return {"type": "image", "image_url": f"data:{block.mime_type};base64,{block.data}"}
    return {"type": "text", "text": block.model_dump_json(by_alias=True, exclude_none=True)}
