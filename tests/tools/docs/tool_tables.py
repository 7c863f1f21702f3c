"""The tables in docs/spec.md: arguments and results of the tools, from the tools themselves."""

from collections.abc import Iterator

from openai_responses_mcp.domain.jsonrpc import JsonObject
from openai_responses_mcp.server.tools import TOOLS, Argument
from tests.tools.docs.markdown import table_row

PAGE = "spec.md"
REGION = "tools"
_RULE = "| --- | --- | --- | --- |"


def tool_tables() -> str:
    return "\n".join(["", *_arguments(), "", *_results(), "", ""])


def _arguments() -> Iterator[str]:
    yield table_row("argument", "takes", "of", "what it is for")
    yield _RULE
    for argument in {one.name: one for tool in TOOLS.values() for one in tool.arguments}.values():
        tools = (f"`{tool.name}`" for tool in TOOLS.values() if argument in tool.arguments)
        needed = ", required" if argument.is_required else ""
        yield table_row(f"`{argument.name}`", _takes(argument) + needed, ", ".join(tools), argument.description)


def _takes(argument: Argument) -> str:
    return _names(argument.schema) or argument.kind.words


def _results() -> Iterator[str]:
    yield table_row("in the result", "type", "", "")
    yield _RULE
    yield from _fields("", TOOLS["answer"].output_schema)


def _fields(prefix: str, schema: JsonObject) -> Iterator[str]:
    """A row for each property, and below a list those of its items."""
    for name, inner in schema["properties"].items():
        always = "always" if name in schema["required"] else ""
        kind = _names(inner) or inner["type"]
        yield table_row(f"`{prefix}{name}`", kind, always, inner.get("description", ""))
        if "items" in inner:
            yield from _fields(f"{prefix}{name}[].", inner["items"])


def _names(schema: JsonObject) -> str:
    return ", ".join(f"`{name}`" for name in schema.get("enum", ()))
