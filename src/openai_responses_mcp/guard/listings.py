"""The tools of the guarded server: as the client was shown them, and as the guard itself has seen them since."""

from typing import NamedTuple

from openai_responses_mcp.guard.messages import JsonObject, JsonValue


class Listed(NamedTuple):
    """One tool. `shown` is what the client was given; `seen` is there where the guard has looked itself after that."""

    shown: JsonObject | None
    seen: JsonObject | None

    @property
    def entry(self) -> JsonObject:
        """The newest."""
        entry = self.shown if self.seen is None else self.seen
        assert entry is not None  # noqa: S101 - one of them is there
        return entry


class Listings:
    """Holds entries as they came. Whether one can be used is checked when its tool is called."""

    def __init__(self) -> None:
        self._shown: dict[str, JsonObject] = {}
        self._coming: dict[str, JsonObject] = {}
        # None: the guard has not looked since the client was shown a whole list.
        self._seen: dict[str, JsonObject] | None = None
        self._newer: set[str] = set()
        self._ambiguous: set[str] = set()
        self._is_stale = False

    def note(self, params: JsonObject, result: JsonValue) -> None:
        """A page that the client was given. Tools that are gone are forgotten with the last page of a listing."""
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            return
        if params.get("cursor") is None:
            self._coming = {}
        self._take(result["tools"], self._coming)
        self._shown.update(self._coming)
        self._newer |= self._coming.keys()
        if not result.get("nextCursor"):
            self._shown, self._coming = self._coming, {}
            self._seen, self._is_stale = None, False

    def note_whole(self, entries: list[JsonValue]) -> None:
        """All pages, as the guard has asked for them itself."""
        found: dict[str, JsonObject] = {}
        self._ambiguous.clear()
        self._take(entries, found)
        self._seen, self._newer, self._is_stale = found, set(), False

    def note_change(self) -> None:
        """The server says that its list has changed."""
        self._is_stale = True

    def get(self, name: str) -> Listed | None:
        """None if the tool is not listed, or the list may have changed."""
        if self._is_stale:
            return None
        shown = self._shown.get(name)
        if self._seen is None or name in self._newer:
            return None if shown is None else Listed(shown, None)
        seen = self._seen.get(name)
        return None if seen is None else Listed(shown, seen)

    def newest(self, name: JsonValue) -> JsonObject:
        """The last that is known of the tool, also where it may have changed. Empty where it was never listed."""
        if not isinstance(name, str):
            return {}
        return (self._seen or {}).get(name) or self._shown.get(name) or {}

    def names(self) -> set[str]:
        return self._shown.keys() | (self._seen or {}).keys()

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
