"""The tools as the server has last listed them, to the client or to the guard."""

from openai_responses_mcp.agents.guard.messages import JsonObject, JsonValue


class Listings:
    """Holds entries as they came. Whether one can be used is checked when its tool is called."""

    def __init__(self) -> None:
        self._known: dict[str, JsonObject] = {}
        self._coming: dict[str, JsonObject] = {}
        self._ambiguous: set[str] = set()
        self._is_stale = False

    def note(self, params: JsonObject, result: JsonValue) -> None:
        """A page that the client was given. Tools that are gone are forgotten with the last page of a listing."""
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            return
        if params.get("cursor") is None:
            self._coming = {}
        self._take(result["tools"], self._coming)
        self._known.update(self._coming)
        if not result.get("nextCursor"):
            self._known, self._coming, self._is_stale = self._coming, {}, False

    def note_whole(self, entries: list[JsonValue]) -> None:
        """All pages, as the guard has asked for them itself."""
        found: dict[str, JsonObject] = {}
        self._ambiguous.clear()
        self._take(entries, found)
        self._known, self._is_stale = found, False

    def note_change(self) -> None:
        """The server says that its list has changed."""
        self._is_stale = True

    def get(self, name: str) -> JsonObject | None:
        """None if the tool was never listed, or the list may have changed."""
        return None if self._is_stale else self._known.get(name)

    def is_ambiguous(self, name: str) -> bool:
        return name in self._ambiguous

    def _take(self, entries: list[JsonValue], into: dict[str, JsonObject]) -> None:
        for entry in entries:
            name = entry.get("name") if isinstance(entry, dict) else None
            if not isinstance(entry, dict) or not isinstance(name, str):
                continue
            if into.get(name, entry) != entry:
                self._ambiguous.add(name)
            else:
                self._ambiguous.discard(name)
            into[name] = entry
