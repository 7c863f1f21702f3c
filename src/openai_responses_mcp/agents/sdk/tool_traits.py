"""What the gate has to know about the tools of the SDK: kind, name, risk and a hash of the definition; arguments as it
reads them; and the catalogue of what an agent offers to its model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias, get_args, get_origin

from agents import (
    CodeInterpreterTool,
    CustomTool,
    FileSearchTool,
    FunctionTool,
    Handoff,
    HostedMCPTool,
    ImageGenerationTool,
    ProgrammaticToolCallingTool,
    ShellTool,
    Tool,
    ToolSearchTool,
    WebSearchTool,
)

from openai_responses_mcp.agents.sdk.internals import mcp_binding, namespace_of
from openai_responses_mcp.domain.jsonrpc import KeyTwice, UnreadableJson, read_json
from openai_responses_mcp.gate.calls import AMBIGUOUS, ToolDescription, ToolKind
from openai_responses_mcp.gate.definitions import annotations_of
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, digest
from openai_responses_mcp.gate.reasons import Reason

_TOOL_CLASSES: tuple[type, ...] = tuple(get_origin(one) or one for one in get_args(Tool))
HOSTED = (
    WebSearchTool,
    FileSearchTool,
    CodeInterpreterTool,
    ImageGenerationTool,
    HostedMCPTool,
    ToolSearchTool,
    # The provider runs the program. The function calls that it makes come here one by one, and pass the gate.
    ProgrammaticToolCallingTool,
)

# For modules that may not import the SDK.
SdkTool: TypeAlias = Tool
SdkFunctionTool: TypeAlias = FunctionTool

MOST_LEVELS = 100
_UNREADABLE = "<unreadable>"


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """What was declared where the tool was made.

    `definition` is all that the tool's origin says about it, such as its whole entry in an MCP server's list; if any of
    it changes, the tool has to be approved again.
    """

    kind: ToolKind | None = None
    name: str | None = None
    risk_level: int | None = None
    require_approval: bool = False
    definition: JsonValue = None
    doubts: tuple[Reason, ...] = ()
    definition_change: str = ""
    directory: str = ""


@dataclass
class DeclaredTool(FunctionTool):
    """A tool of the SDK with its traits as a field, so that they are in every copy, `dataclasses.replace` included."""

    traits: ToolTraits = field(default_factory=ToolTraits, kw_only=True)


def with_traits(tool: FunctionTool, traits: ToolTraits) -> FunctionTool:
    values = {one.name: getattr(tool, one.name) for one in fields(FunctionTool)}
    return DeclaredTool(**values, traits=traits)


def describe_function(tool: FunctionTool) -> ToolDescription:
    traits = tool.traits if isinstance(tool, DeclaredTool) else ToolTraits()
    binding = mcp_binding(tool)
    kind: ToolKind = traits.kind or ("mcp" if binding else "function")
    name = traits.name or (f"{binding[0]}/{binding[1]}" if binding else tool.qualified_name)
    annotations = tool.mcp_annotations
    facts = (
        kind,
        name,
        tool.description,
        tool.params_json_schema,
        tool.strict_json_schema,
        str(annotations),
        traits.definition,
    )
    return ToolDescription(
        name=name,
        kind=kind,
        description=tool.description,
        parameters=tool.params_json_schema,
        risk_level=traits.risk_level,
        require_approval=traits.require_approval,
        definition_hash=digest(*facts),
        doubts=traits.doubts,
        definition_change=traits.definition_change,
        directory=traits.directory,
        annotations=annotations_of(traits.definition),
    )


def check_is_tool(tool: object) -> None:
    if isinstance(tool, _TOOL_CLASSES):
        return
    name = getattr(tool, "__name__", type(tool).__name__)
    message = f"{name} is not a tool: put @tool over a function, or give an MCP server to mcp_servers"
    raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", message)


def describe_handoff(handoff: Handoff[Any, Any]) -> ToolDescription:
    facts = ("handoff", handoff.agent_name, handoff.tool_name, handoff.tool_description, handoff.input_json_schema)
    return ToolDescription(
        name=handoff.agent_name,
        kind="function",
        description=handoff.tool_description,
        parameters=handoff.input_json_schema,
        definition_hash=digest(*facts),
    )


def describe_hosted(tool: Tool) -> ToolDescription:
    """A tool that the provider runs. One that would run here and cannot be gated is refused."""
    if isinstance(tool, HostedMCPTool):
        label = str(tool.tool_config.get("server_label", ""))
        return ToolDescription(f"{label}/*", "mcp", definition_hash=digest("hosted", label))
    if isinstance(tool, (*HOSTED, ShellTool)):  # a shell that runs here is guarded call by call
        return ToolDescription(tool.name, "function", definition_hash=digest("hosted", tool.name))
    raise AgentsError(
        "AGENTS-E-AGENT-CAPABILITY-RESOLVE",
        f"A {type(tool).__name__} runs code here and cannot be guarded call by call; offer it as a function tool",
    )


def describe_custom(tool: CustomTool) -> ToolDescription:
    """A tool that is called with a text instead of JSON; the gate sees the text as `input`."""
    facts = ("custom", tool.name, tool.description, str(tool.format))
    parameters: JsonObject = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return ToolDescription(
        tool.name, "function", description=tool.description, parameters=parameters, definition_hash=digest(*facts)
    )


def is_local(tool: ShellTool) -> bool:
    return bool(field_of(tool.environment, "type") == "local")


SHELL_RISK = 3  # the model writes the commands, so a human is asked unless a rule or a profile says otherwise


def describe_shell(tool: ShellTool) -> ToolDescription:
    """A shell that runs here, by its commands."""
    parameters: JsonObject = {"type": "object", "properties": {"commands": {"type": "array"}}, "required": ["commands"]}
    hashed = digest("shell", tool.name)
    return ToolDescription(
        tool.name,
        "function",
        description="Run commands in a shell.",
        parameters=parameters,
        definition_hash=hashed,
        risk_level=SHELL_RISK,
    )


def describe_hosted_call(tool: HostedMCPTool, item: object) -> ToolDescription:
    """A call on a hosted MCP server that the provider asks permission for."""
    name = f"{field_of(item, 'server_label')}/{field_of(item, 'name')}"
    facts = ("hosted", name, tool.tool_config.get("server_url"), tool.tool_config.get("connector_id"))
    return ToolDescription(name, "mcp", definition_hash=digest(*facts))


@dataclass(slots=True)
class Catalogue:
    """What an agent offers to its model in one turn, by the names that the model uses."""

    tools: dict[tuple[str | None, str], FunctionTool] = field(default_factory=dict)
    handoffs: dict[str, Handoff[Any, Any]] = field(default_factory=dict)
    hosted: dict[str, HostedMCPTool] = field(default_factory=dict)
    custom: dict[str, CustomTool] = field(default_factory=dict)
    shell: ShellTool | None = None
    _described: dict[int, ToolDescription] = field(default_factory=dict)

    @property
    def descriptions(self) -> list[ToolDescription]:
        tools = [self.description_of(tool) for tool in self.tools.values()]
        tools += [describe_custom(tool) for tool in self.custom.values()]
        tools += [] if self.shell is None else [describe_shell(self.shell)]
        return tools + [describe_handoff(one) for one in self.handoffs.values()]

    def description_of(self, tool: FunctionTool) -> ToolDescription:
        """Made once for each turn: hashing a definition takes longer than all the rest."""
        if id(tool) not in self._described:
            self._described[id(tool)] = describe_function(tool)
        return self._described[id(tool)]

    def function(self, namespace: str | None, name: str) -> FunctionTool | None:
        """The SDK gives a deferred tool without a namespace one of the tool's own name."""
        found = self.tools.get((namespace, name))
        return self.tools.get((None, name)) if found is None and namespace == name else found

    def offer(self, tool: Tool) -> ToolDescription | None:
        """Take a tool in. Returns its description if the provider runs it."""
        if isinstance(tool, FunctionTool):
            self.tools[namespace_of(tool), tool.name] = tool
        elif isinstance(tool, CustomTool):
            self.custom[tool.name] = tool
        elif isinstance(tool, ShellTool) and is_local(tool):
            self.shell = tool
        else:
            if isinstance(tool, HostedMCPTool):
                self.hosted[str(tool.tool_config.get("server_label"))] = tool
            return describe_hosted(tool)
        return None


def parsed(arguments: str | None) -> JsonObject:
    """Arguments as the gate sees them. Anything but a JSON object is judged as it stands.

    A key twice and more levels than any tool needs are refused: two readers could read them differently.
    """
    try:
        args = read_json(arguments or "{}")
    except KeyTwice:
        return {AMBIGUOUS: arguments}
    except UnreadableJson as exc:
        return {AMBIGUOUS if isinstance(exc.__cause__, RecursionError) else _UNREADABLE: arguments}
    if _is_deep(args):
        return {AMBIGUOUS: arguments}
    return args if isinstance(args, dict) else {_UNREADABLE: args}


def why_not_for_a_tool(arguments: str) -> str | None:
    """Why no tool may get these. Python reads infinities and NaN where JSON has none."""
    try:
        read_json(arguments or "{}")
    except UnreadableJson as exc:
        return None if isinstance(exc.__cause__, json.JSONDecodeError) else str(exc)
    return None


def _is_deep(value: JsonValue) -> bool:
    level = [value]
    for _ in range(MOST_LEVELS):
        if not level:
            return False
        inner = [list(one.values()) if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for values in inner for one in values]
    return bool(level)


def field_of(item: object, name: str) -> Any:
    """A field of one of the SDK's items, which are objects when fresh and may be mappings when read back."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
