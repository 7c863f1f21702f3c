"""The definition of a called tool: looked up if it was never listed, and compared with the pinned one.

The pin is read from the store for every call, because another guard may have changed it a moment ago. What the client
was shown counts too. If the guard itself sees another definition, a person is asked, and sees both.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from openai_responses_mcp.gate.budgets import Spending
from openai_responses_mcp.gate.calls import GuardedServer, ToolDescription
from openai_responses_mcp.gate.definitions import (
    MOST_TOOLS,
    McpCapability,
    annotations_of,
    change_between,
    checked_capabilities,
    is_same,
    pin_of,
    schema_error,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import canonical, shown_json
from openai_responses_mcp.gate.policy.fitting import claims_of
from openai_responses_mcp.gate.reasons import DEFINITION_CHANGED, Reason
from openai_responses_mcp.gate.stores import CallStart, KnownTool, StartBook
from openai_responses_mcp.guard.messages import (
    LIST,
    MOST_LEVELS,
    JsonObject,
    JsonValue,
    envelope_of,
    is_deeper_than,
    object_in,
)
from openai_responses_mcp.guard.peers import AnsweredWithError, Listed, Listings, Peer, PeerGone

LOOK_UP_SECONDS = 10.0
LONGEST_DEFINITION = 1_000_000
_MOST_PAGES = 100
# Of one tool: as it was shown to the client, as the guard has seen it since, and as it was before a question.
_MOST_KEPT = 3

_OTHER_COMMAND = Reason("command", "needs_human")
_SHOWN_OTHERWISE = Reason("shown", "needs_human")


class UnknownTool(Exception):
    """The server lists no tool of this name."""


class Defined(NamedTuple):
    """A tool with the definition that a decision is based on. `seen_pin` is the stored pin at that moment."""

    tool: ToolDescription
    name: str
    listed: Listed
    pin: str
    seen_pin: str | None


class Definitions:
    """`stable` removes the parts of a definition that do not count."""

    def __init__(
        self,
        guarded: GuardedServer,
        listings: Listings,
        server: Peer,
        starts: StartBook,
        stable: Callable[[str, JsonObject], Mapping[str, JsonValue]] = lambda tool, entry: entry,
    ) -> None:
        self._guarded = guarded
        self._listings = listings
        self._server = server
        self._starts = starts
        self._stable = stable
        self._read: dict[str, tuple[JsonObject, McpCapability]] = {}
        self._hashed: dict[str, list[tuple[Mapping[str, JsonValue], str]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def find(self, name: str, params: JsonObject) -> Defined:
        """The tool as it was last listed. Raises `UnknownTool`, and `AgentsError` if the list or the definition cannot be
        used."""
        if self._listings.get(name) is None:
            await self._look_up(params)
        return await self._found(name)

    async def look_again(self, before: Defined, params: JsonObject) -> Defined:
        """The tool as the server lists it now. Its definition before counts as shown, so this is never less strict."""
        await self._look_up(params)
        return await self._found(before.name, before.listed.entry)

    def is_current(self, defined: Defined) -> bool:
        """True if the tool is still listed as it was when it was decided on."""
        return self._listings.get(defined.name) == defined.listed

    def start_of(self, defined: Defined, spends: tuple[Spending, ...]) -> CallStart:
        return CallStart(self._guarded, defined.tool.name, defined.pin, defined.seen_pin, spends, ())

    def reading(self, defined: Defined) -> dict[str, str]:
        """The tools listed now that claim to read only, with the hashes of their definitions.

        Empty if this tool does not claim it.
        """
        if not _claims_to_read(defined.listed.entry):
            return {}
        found = {name: self._listings.get(name) for name in sorted(self._listings.names())}
        return {
            key: self._pin(key, listed.entry).partition(" ")[0]
            for name, listed in found.items()
            if listed and _claims_to_read(listed.entry) and not self._listings.is_ambiguous(name)
            for key in [f"{self._guarded.name}/{name}"]
        }

    async def _found(self, name: str, shown_before: JsonObject | None = None) -> Defined:
        listed = self._listings.get(name)
        if listed is None:
            raise UnknownTool(name)
        if self._listings.is_ambiguous(name):
            raise schema_error(f"{self._guarded.name} lists {name} twice; update or remove the server")
        key = f"{self._guarded.name}/{name}"
        capability = await self._capability(key, listed.entry)
        known, pin = await self._starts.known(self._guarded, key), self._pin(key, listed.entry)
        shown = [self._pin(key, entry) for entry in (listed.shown, shown_before) if entry is not None]
        doubts = list(self._doubts(known, pin, shown))
        tool = ToolDescription(
            name=key,
            kind="mcp",
            description=capability.description,
            parameters=capability.schema,
            definition_hash=pin.partition(" ")[0],
            doubts=tuple(reason for reason, _ in doubts),
            definition_change="\n".join(shown for _, shown in doubts),
            origin=self._guarded.fingerprint,
            annotations=annotations_of(capability.entry),
        )
        return Defined(tool, name, listed, pin, known.pin)

    def _doubts(self, known: KnownTool, pin: str, shown: list[str]) -> Iterator[tuple[Reason, str]]:
        """Why a person has to look at the tool, whatever the rules say, and what that person has to see."""
        if known.other_commands:
            before, now = json.dumps(known.other_commands[-1]), json.dumps(self._guarded.command)
            yield _OTHER_COMMAND, f"command: {before} is now {now}"
        if known.pin is not None and not is_same(known.pin, pin):
            yield DEFINITION_CHANGED, change_between(known.pin, pin)
        other = next((one for one in shown if not is_same(one, pin)), None)
        if other is not None:
            yield _SHOWN_OTHERWISE, f"shown to the client and seen by the guard:\n{change_between(other, pin)}"

    def _pin(self, key: str, entry: JsonObject) -> str:
        """Remembered for the last entries: to mask and hash them again with each call takes a tenth of it."""
        stable, kept = self._stable(key, entry), self._hashed.setdefault(key, [])
        known = next((pin for one, pin in kept if one is stable), None)
        if known is not None:
            return known
        try:
            pin = pin_of(stable)
        except RecursionError:
            raise schema_error(f"a definition of {key} is nested too deep to be compared") from None
        self._hashed[key] = [*kept[-_MOST_KEPT + 1 :], (stable, pin)]
        return pin

    async def _capability(self, key: str, entry: JsonObject) -> McpCapability:
        read = self._read.get(key)
        if read is None or read[0] is not entry:
            # In a thread: a schema may be long, and all of it is read.
            capability = await asyncio.to_thread(self._checked, key, entry)
            read = self._read[key] = (entry, capability)
        return read[1]

    def _checked(self, key: str, entry: JsonObject) -> McpCapability:
        """Limits the size, because a definition is searched for secrets, hashed and shown many times."""
        if is_deeper_than(MOST_LEVELS, entry):
            raise schema_error(f"the definition of {key} is nested more than {MOST_LEVELS} levels deep")
        if len(canonical(entry)) > LONGEST_DEFINITION:
            raise schema_error(f"the definition of {key} has more than {LONGEST_DEFINITION} characters")
        return checked_capabilities(self._guarded.name, [entry])[0]

    # -----------------------------------------------------------------------------------------------------------------

    async def _look_up(self, params: JsonObject) -> None:
        """Calls that look something up at the same time share one request."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._list_all(envelope_of(params)))
            self._looking.add_done_callback(self._looked)
        await asyncio.shield(self._looking)

    def _looked(self, task: "asyncio.Task[None]") -> None:
        self._looking = None
        # The waiting calls get the failure. Reading it here keeps asyncio from warning if there is none.
        _ = task.cancelled() or task.exception()

    async def _list_all(self, envelope: JsonObject) -> None:
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                self._listings.note_whole(await self._pages(envelope))
        except TimeoutError:
            failure = f"it did not list its tools within {LOOK_UP_SECONDS:g} s"
        except AnsweredWithError as exc:
            failure = f"it does not list its tools ({shown_json(str(exc)[:200])})"
        except PeerGone:
            failure = "it has ended"
        else:
            return
        raise AgentsError(
            "AGENTS-E-MCP-UNREACHABLE", f"The tool of {self._guarded.name} cannot be looked up: {failure}"
        )

    async def _pages(self, envelope: JsonObject) -> list[JsonValue]:
        entries: list[JsonValue] = []
        cursor: JsonValue = None
        for _ in range(_MOST_PAGES):
            asked = envelope if cursor is None else {**envelope, "cursor": cursor}
            page = object_in(await self._server.ask(LIST, asked))
            tools = page.get("tools")
            if not isinstance(tools, list):
                raise schema_error(f"{self._guarded.name} answers tools/list with something else")
            entries += tools
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                return entries
            if len(entries) > MOST_TOOLS:
                break
        raise schema_error(f"{self._guarded.name} lists more than {MOST_TOOLS} tools; let it offer fewer")


def _claims_to_read(entry: JsonObject) -> bool:
    return "reads" in claims_of(annotations_of(entry))
