"""A server's list of tools, checked as a whole before any of it is used, and a call's arguments before they leave."""

from collections.abc import Mapping, Sequence

from openai_responses_mcp.agents.checks import LONGEST_ID
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.json_values import JsonObject
from openai_responses_mcp.agents.mcp.models import McpCapability, schema_error
from openai_responses_mcp.agents.schemas.fitting import problem_with
from openai_responses_mcp.agents.schemas.reading import problem_in

MOST_TOOLS = 1_000


def checked_capabilities(server_id: str, entries: Sequence[JsonObject]) -> list[McpCapability]:
    """All of a server's tools, or `AGENTS-E-MCP-SCHEMA`: a list with one bad entry is not to be trusted."""
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
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise schema_error(f"The input schema of {server_id}/{name} is not the schema of an object")
    # Patterns are written for the regular expressions of other languages, and never tried.
    problem = problem_in(schema, checks_patterns=False)
    if problem:
        raise schema_error(f"The input schema of {server_id}/{name} cannot be used: {problem}")
    description = entry.get("description") or entry.get("title") or ""
    return McpCapability(name, str(description), schema, entry)


async def check_arguments(server_id: str, capability: McpCapability, args: JsonObject) -> None:
    """`AGENTS-E-MCP-EXEC` with the reason `rejected` for arguments that do not fit the tool's schema."""
    problem = await problem_with(args, capability.schema)
    if problem:
        message = (
            f"{server_id}/{capability.name} was not called, because its arguments do not fit its schema: {problem}"
        )
        raise AgentsError("AGENTS-E-MCP-EXEC", message, details={"reason": "rejected"})
