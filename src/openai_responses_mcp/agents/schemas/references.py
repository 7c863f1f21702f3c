"""Where a `$ref` leads: to a place or an anchor of the schema that it stands in, and nowhere else."""

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from openai_responses_mcp.agents.json_values import JsonObject, JsonValue

Schema = JsonObject | bool

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class References:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        own = root.get("$id", root.get("id"))
        self._own_address = own.partition("#")[0] if isinstance(own, str) else ""
        self._found: dict[str, Schema | None] = {}
        self._anchors: dict[str, Schema] | None = None

    def find(self, reference: JsonValue) -> Schema | None:
        """The schema that is meant, or None where this schema does not contain it."""
        if not isinstance(reference, str):
            return None
        if reference not in self._found:
            self._found[reference] = self._look_up(reference)
        return self._found[reference]

    def _look_up(self, reference: str) -> Schema | None:
        address, _, fragment = reference.partition("#")
        if address not in ("", self._own_address):
            return None
        place = unquote(fragment)
        if place and not place.startswith("/"):
            return self._anchor(place)
        found: JsonValue = self._root
        for name in place.split("/")[1:]:
            found = _inside(found, name.replace("~1", "/").replace("~0", "~"))
        return found if isinstance(found, Mapping | bool) else None

    def _anchor(self, name: str) -> Schema | None:
        if self._anchors is None:
            parts = [node for node in nodes_of(self._root) if isinstance(node, Mapping)]
            self._anchors = {anchor: part for part in parts for anchor in _anchors_of(part)}
        return self._anchors.get(name)


def _anchors_of(part: JsonObject) -> list[str]:
    """Older drafts write an anchor as an `$id` or `id` that begins with a #."""
    written = [part.get("$anchor"), part.get("$dynamicAnchor")]
    older = [one for one in (part.get("$id"), part.get("id")) if isinstance(one, str) and one.startswith("#")]
    return [one for one in written if isinstance(one, str)] + [one[1:] for one in older]


def nodes_of(value: JsonValue) -> Iterator[JsonValue]:
    """The value and everything inside it, without recursion: it may be nested to any depth."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ())


def _inside(value: JsonValue, name: str) -> JsonValue:
    if isinstance(value, Mapping):
        return value.get(name)
    if not isinstance(value, list) or not (name.isascii() and name.isdigit() and len(name) < 7):
        return None
    return value[int(name)] if int(name) < len(value) else None
