"""A called tool as the gate sees it: looked up if it was never listed, and compared with the approved definition."""

import asyncio

from openai_responses_mcp.agents.calls import ASKS_FOR_APPROVAL, ToolDescription
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.guard.client_ways import envelope_of
from openai_responses_mcp.agents.guard.listings import Listings
from openai_responses_mcp.agents.guard.messages import LIST, JsonObject, JsonValue, object_in
from openai_responses_mcp.agents.guard.peers import AnsweredWithError, Peer, PeerGone
from openai_responses_mcp.agents.mcp.capabilities import MOST_TOOLS, checked_capabilities
from openai_responses_mcp.agents.mcp.definitions import CHANGED, change_between, is_same
from openai_responses_mcp.agents.mcp.models import McpCapability, schema_error
from openai_responses_mcp.agents.mcp.ports import DefinitionPins

LOOK_UP_SECONDS = 10.0
_MOST_PAGES = 100


class UnknownTool(Exception):
    """The server lists no tool of this name."""


class Definitions:
    def __init__(self, server_name: str, listings: Listings, server: Peer, pins: DefinitionPins) -> None:
        self._server_name = server_name
        self._listings = listings
        self._server = server
        self._pins = pins
        self._approved: dict[str, str] | None = None
        self._read: dict[str, tuple[JsonObject, McpCapability, str]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def find(self, name: str, params: JsonObject, *, is_fresh: bool = False) -> ToolDescription:
        """The tool as it is now. With `is_fresh` the server is asked for its list again.

        Raises `UnknownTool`, and `AgentsError` if the list cannot be read or the definition cannot be used.
        """
        if is_fresh or self._listings.get(name) is None:
            await self._look_up(params)
        entry = self._listings.get(name)
        if entry is None:
            raise UnknownTool(name)
        if self._listings.is_ambiguous(name):
            raise schema_error(f"{self._server_name} lists {name} twice; update or remove the server")
        capability, pin = await self._capability(name, entry)
        return await self._described(capability, pin)

    async def let_through(self, tool: ToolDescription) -> None:
        """The definition that the tool has now is the approved one from here on."""
        _, _, pin = self._read[tool.name]
        approved = await self._approved_pins()
        if approved.get(tool.name) != pin:
            await self._pins.put(tool.name, pin)
            approved[tool.name] = pin

    async def _described(self, capability: McpCapability, pin: str) -> ToolDescription:
        key = f"{self._server_name}/{capability.name}"
        before = (await self._approved_pins()).get(key)
        has_changed = before is not None and not is_same(before, pin)
        return ToolDescription(
            name=key,
            kind="mcp",
            description=capability.description,
            parameters=capability.schema,
            require_approval=has_changed,
            definition_hash=pin.partition(" ")[0],
            approval_reason=CHANGED if has_changed else ASKS_FOR_APPROVAL,
            definition_change=change_between(before, pin) if before is not None and has_changed else "",
        )

    async def _approved_pins(self) -> dict[str, str]:
        if self._approved is None:
            self._approved = dict(await self._pins.known())
        return self._approved

    async def _capability(self, name: str, entry: JsonObject) -> tuple[McpCapability, str]:
        key = f"{self._server_name}/{name}"
        known = self._read.get(key)
        if known is None or known[0] is not entry:
            # In a thread: a schema may be long, and all of it is read.
            capability = (await asyncio.to_thread(checked_capabilities, self._server_name, [entry]))[0]
            known = self._read[key] = (entry, capability, capability.pin)
        return known[1], known[2]

    # -----------------------------------------------------------------------------------------------------------------

    async def _look_up(self, params: JsonObject) -> None:
        """Calls that look something up at the same time share one request."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._list_all(envelope_of(params)))
            self._looking.add_done_callback(self._looked)
        await asyncio.shield(self._looking)

    def _looked(self, task: "asyncio.Task[None]") -> None:
        self._looking = None
        # Those who wait get the failure. It is read here too, because asyncio warns of one that nobody reads.
        _ = task.cancelled() or task.exception()

    async def _list_all(self, envelope: JsonObject) -> None:
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                self._listings.note_whole(await self._pages(envelope))
        except TimeoutError:
            failure = f"it did not list its tools within {LOOK_UP_SECONDS:g} s"
        except AnsweredWithError as exc:
            failure = f"it does not list its tools ({str(exc)[:200]})"
        except PeerGone:
            failure = "it has ended"
        else:
            return
        raise AgentsError("AGENTS-E-MCP-UNREACHABLE", f"The tool of {self._server_name} cannot be looked up: {failure}")

    async def _pages(self, envelope: JsonObject) -> list[JsonValue]:
        entries: list[JsonValue] = []
        cursor: JsonValue = None
        for _ in range(_MOST_PAGES):
            asked = envelope if cursor is None else {**envelope, "cursor": cursor}
            page = object_in(await self._server.ask(LIST, asked))
            tools = page.get("tools")
            if not isinstance(tools, list):
                raise schema_error(f"{self._server_name} answers tools/list with something else")
            entries += tools
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return entries
            if len(entries) > MOST_TOOLS:
                break
        raise schema_error(f"{self._server_name} lists more than {MOST_TOOLS} tools; let it offer fewer")
