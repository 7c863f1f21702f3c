"""docs/reference/tools.md: what clients are told about the tools, from the tools themselves."""

import json
from collections.abc import Iterator

from openai_responses_mcp.config.settings import ServerSettings
from openai_responses_mcp.domain.jsonrpc import JsonObject
from openai_responses_mcp.server.arguments import Argument
from openai_responses_mcp.server.tools import RESULT_TOOL, TOOLS, Tool
from tests.tools.docs.markdown import table_row

PAGE = "reference/tools.md"

_INTRODUCTION = """\
# Tools

What a client is told about each tool, and what comes back. This page is written by `make references` from the tools themselves. What the arguments
do to a question: [specification](../spec.md#tools). Where the pieces of a result stand: [result](../spec.md#result).

Arguments are checked before anything is sent. `null` for an optional argument counts as absent, and a string of digits as the number. Unknown arguments
are ignored.
"""
_RULE = "| --- | --- | --- | --- |"
_OFFERED = "Offered by default."
_ASKED_FOR = "Offered where `server.tools` lists it."
_HANDED_OVER = "Offered where `server.tools` lists it, and to clients for which `server.hand_over_after_s` is on."


def tools_page() -> str:
    return _INTRODUCTION + "".join(f"\n{_section(tool)}" for tool in TOOLS.values()) + "\n" + _as_listed()


def _section(tool: Tool) -> str:
    head = [f"## `{tool.name}`", "", tool.description, "", _when(tool), ""]
    return "\n".join([*head, *_arguments(tool), "", *_result(tool), ""])


def _when(tool: Tool) -> str:
    if tool.name in ServerSettings().tools:
        return _OFFERED
    return _HANDED_OVER if tool.name == RESULT_TOOL else _ASKED_FOR


def _arguments(tool: Tool) -> Iterator[str]:
    yield table_row("argument", "takes", "", "what it is for")
    yield _RULE
    for argument in tool.arguments:
        needed = "required" if argument.is_required else ""
        yield table_row(f"`{argument.name}`", _takes(argument), needed, argument.description)


def _takes(argument: Argument) -> str:
    return _names(argument.schema) or argument.kind.words


def _result(tool: Tool) -> Iterator[str]:
    yield table_row("in the result", "type", "", "")
    yield _RULE
    yield from _fields("", tool.output_schema)


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


def _as_listed() -> str:
    entry = json.dumps(TOOLS["answer"].described(), ensure_ascii=False, indent=2)
    return f"""\
## As `tools/list` has it

The whole entry of `answer`; the others have the same form.

```json
{entry}
```
"""
