"""docs/reference/tools.md: what clients are told about the tools, from the tools themselves."""

import json
from collections.abc import Iterator
from typing import Any

from openai_responses_mcp.config.settings import ServerSettings
from openai_responses_mcp.server.arguments import Argument
from openai_responses_mcp.server.tools import RESULT_TOOL, TOOLS, Tool

PAGE = "reference/tools.md"

_INTRODUCTION = """\
# Tools

What a client is told about each tool, and what comes back. This page is written by `make references` from the tools themselves. What the arguments
do to a question: [specification](../spec.md#tools). Where the pieces of a result stand: [result](../spec.md#result).

Arguments are checked before anything is sent. `null` for an optional argument counts as absent, and a string of digits as the number. Unknown arguments
are ignored.
"""
_OFFERED = "Offered by default."
_ASKED_FOR = "Offered where `server.tools` lists it."
_HANDED_OVER = "Offered where `server.tools` lists it, and to clients for which `server.hand_over_after_s` is on."


def tools_page() -> str:
    return _INTRODUCTION + "".join(f"\n{_section(tool)}" for tool in TOOLS.values()) + "\n" + _as_listed()


def _section(tool: Tool) -> str:
    return "\n".join(
        [f"## `{tool.name}`", "", tool.description, "", _when(tool), "", *_arguments(tool), "", *_result(tool), ""]
    )


def _when(tool: Tool) -> str:
    if tool.name in ServerSettings().tools:
        return _OFFERED
    return _HANDED_OVER if tool.name == RESULT_TOOL else _ASKED_FOR


def _arguments(tool: Tool) -> Iterator[str]:
    yield "| argument | takes | | what it is for |"
    yield "| --- | --- | --- | --- |"
    for argument in tool.arguments:
        needed = "required" if argument.is_required else ""
        yield f"| `{argument.name}` | {_takes(argument)} | {needed} | {argument.description} |".replace("|  |", "| |")


def _takes(argument: Argument) -> str:
    names = argument.schema.get("enum")
    return ", ".join(f"`{name}`" for name in names) if names else argument.kind.words


def _result(tool: Tool) -> Iterator[str]:
    yield "| in the result | type | | |"
    yield "| --- | --- | --- | --- |"
    for name, schema in tool.output_schema["properties"].items():
        yield from _fields(name, schema, is_required=name in tool.output_schema["required"])


def _fields(name: str, schema: dict[str, Any], *, is_required: bool) -> Iterator[str]:
    kind = ", ".join(f"`{value}`" for value in schema["enum"]) if "enum" in schema else schema["type"]
    always = "always" if is_required else ""
    yield f"| `{name}` | {kind} | {always} | {schema.get('description', '')} |".replace("|  |", "| |").replace(
        "|  |", "| |"
    )
    items = schema.get("items", {})
    for inner, inner_schema in items.get("properties", {}).items():
        yield from _fields(f"{name}[].{inner}", inner_schema, is_required=inner in items["required"])


def _as_listed() -> str:
    entry = json.dumps(TOOLS["answer"].described(), ensure_ascii=False, indent=2)
    return f"""\
## As `tools/list` has it

The whole entry of `answer`; the others have the same form.

```json
{entry}
```
"""
