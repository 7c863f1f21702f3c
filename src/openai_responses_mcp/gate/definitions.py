"""Definitions of MCP tools: reading a server's list, pinning what was approved, and showing what has changed.

A pin is the hash of the whole definition as the server sent it, with the definition behind it in which each secret is a
label: the hash is compared, the rest shows a person what changed. A pin of an earlier kind is the hash alone.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from openai_responses_mcp.gate.errors import LONGEST_ID, AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, canonical, differences, digest
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import Masking

MOST_TOOLS = 1_000


@dataclass(frozen=True, slots=True)
class McpCapability:
    """One tool of a server; `entry` is its whole definition, `pin` what is stored of it."""

    name: str
    description: str
    schema: JsonObject
    entry: JsonObject

    @property
    def pin(self) -> str:
        return pin_of(self.entry)


class DefinitionPins(Protocol):
    """Remembers the definition that a tool had when it was let through. Raises `AgentsError`."""

    async def known(self) -> Mapping[str, str]:
        """The last pin of each tool that has one."""
        ...

    async def put(self, tool: str, pin: str) -> None: ...


class MemoryPins(DefinitionPins):
    """For as long as this process lives."""

    def __init__(self) -> None:
        self._pins: dict[str, str] = {}

    async def known(self) -> Mapping[str, str]:
        return self._pins

    async def put(self, tool: str, pin: str) -> None:
        self._pins[tool] = pin


def pin_of(entry: JsonObject) -> str:
    shown = _masking(tuple(os.environ.items())).shown(entry, {})
    return f"{digest('mcp-tool', entry)} {canonical(shown)}"


@lru_cache(maxsize=1)
def _masking(environ: tuple[tuple[str, str], ...]) -> Masking:
    return Masking(dict(environ))


def is_same(pin: str, other: str) -> bool:
    """By the hash alone, which is all that earlier versions stored."""
    return pin.partition(" ")[0] == other.partition(" ")[0]


def change_between(approved: str, pin: str) -> str:
    """One line for each part that differs: where, what it was, what it is. Only for pins that differ."""
    before, after = (_entry_in(one) for one in (approved, pin))
    if before is None:
        return "What it was before is not known"
    return differences(before, after) or "Only a secret in it has changed"


def _entry_in(pin: str) -> JsonValue:
    entry = pin.partition(" ")[2]
    return json.loads(entry) if entry else None


async def pinned_entries(pins: DefinitionPins | None) -> Mapping[str, JsonObject]:
    """The pinned definitions by tool, where the store has more than their hash."""
    found = {tool: _entry_in(pin) for tool, pin in (await pins.known()).items()} if pins else {}
    return {tool: entry for tool, entry in found.items() if isinstance(entry, Mapping)}


def annotations_of(entry: JsonValue) -> JsonObject:
    """What a tool claims about itself in its definition."""
    annotations = entry.get("annotations") if isinstance(entry, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}


def schema_error(message: str) -> AgentsError:
    return AgentsError("AGENTS-E-MCP-SCHEMA", message)


def checked_capabilities(server_id: str, entries: Sequence[JsonObject]) -> list[McpCapability]:
    """All of a server's tools, or `AGENTS-E-MCP-SCHEMA`: one bad entry makes the whole list untrusted."""
    if len(entries) > MOST_TOOLS:
        raise schema_error(f"{server_id} lists more than {MOST_TOOLS} tools; let it offer fewer")
    capabilities = [_capability(server_id, entry) for entry in entries]
    names = [one.name for one in capabilities]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise schema_error(f"{server_id} lists {', '.join(twice)} twice; update or remove the server")
    return capabilities


def _capability(server_id: str, entry: JsonObject) -> McpCapability:
    name, schema = entry.get("name"), entry.get("inputSchema")
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_ID or not name.isprintable():
        raise schema_error(f"{server_id} lists a tool without a name of 1 to {LONGEST_ID} printable characters")
    description = entry.get("description") or entry.get("title") or ""
    # A schema that cannot be read is left to the server, which checks the arguments itself.
    return McpCapability(name, str(description), schema if isinstance(schema, Mapping) else {}, entry)


async def check_arguments(server_id: str, capability: McpCapability, args: JsonObject, schemas: SchemaChecker) -> None:
    """`AGENTS-E-MCP-EXEC` with the reason `rejected` for arguments that do not fit the tool's schema."""
    problem = (await schemas.check(args, capability.schema)).problem
    if problem:
        message = (
            f"{server_id}/{capability.name} was not called, because its arguments do not fit its schema: {problem}"
        )
        raise AgentsError("AGENTS-E-MCP-EXEC", message, details={"reason": "rejected"})
