"""Secrets out of a run that is saved, and back into it when it is resumed.

What is cut out of a text is noted beside the saved run by its place: which text, at which character, and what. Only
that is put back, and only there. The texts themselves are never searched again, so nothing that a tool or a model wrote
can ask for a secret. Values of the environment are noted by the name of their variable, which works in any process with
the same environment. Any other secret stays in the memory of the process that took it out.
"""

import json
import re
import secrets
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

from openai_responses_mcp.domain.masking import SHORTEST_SECRET, Found, joined
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, OwnJson
from openai_responses_mcp.gate.secrets.masking import Masking, Path


def with_secrets(changed: JsonObject, shown: JsonObject, original: JsonObject) -> JsonObject:
    """The changed arguments, with the secret put back wherever a text was left as it was shown."""
    return {key: _restored(inner, shown.get(key), original.get(key)) for key, inner in changed.items()}


def _restored(changed: JsonValue, shown: JsonValue, original: JsonValue) -> JsonValue:
    if isinstance(changed, dict) and isinstance(shown, dict) and isinstance(original, Mapping):
        return {key: _restored(inner, shown.get(key), original.get(key)) for key, inner in changed.items()}
    if isinstance(changed, list) and isinstance(shown, list) and isinstance(original, list | tuple):
        return [_restored(inner, _at(shown, place), _at(original, place)) for place, inner in enumerate(changed)]
    return original if isinstance(changed, str) and changed == shown and isinstance(original, str) else changed


def _at(items: Sequence[JsonValue], place: int) -> JsonValue:
    return items[place] if place < len(items) else None


MOST_SAVES = 1000

# A text inside JSON inside a text, as the arguments of a call are saved. One without an end extends to
# the end of the text: looking for its end from each of its quotes would take quadratic time.
_LITERAL = re.compile(r'"((?:[^"\\]++|\\.?)*+)(?:"|\Z)', re.DOTALL)


@dataclass(slots=True)
class _Save:
    """What one save took out: `gaps` is stored with the run, `held` never is."""

    number: str = field(default_factory=lambda: secrets.token_hex(16))
    gaps: list[dict[str, JsonValue]] = field(default_factory=list)
    held: list[str] = field(default_factory=list)

    def note(self, path: Path, at: int, text: str, one: Found, *, is_key: bool = False) -> None:
        known = {"name": one.name, "form": one.form} if one.name else {}
        self.gaps.append({"path": list(path), "is_key": is_key, "at": at, "held": len(self.held), **known})
        self.held.append(text[one.start : one.end])


class Withholding:
    """One per process. It remembers what the last saves took out, and never writes it anywhere."""

    def __init__(self, masking: Masking) -> None:
        self._finder = masking.finder
        self._held: OrderedDict[str, list[str]] = OrderedDict()

    def take_out(self, value: JsonValue, fields: Collection[str] = ()) -> dict[str, JsonValue]:
        """The value without secrets, and the places where there were some. `fields` are texts of secret fields."""
        save = _Save()
        kept = self._kept(value, frozenset(fields), (), save)
        self._held[save.number] = save.held
        while len(self._held) > MOST_SAVES:
            self._held.popitem(last=False)
        return {"kept": kept, "gaps": save.gaps, "save": save.number}

    def put_back(self, taken: OwnJson) -> JsonValue:
        """Raises `AGENTS-E-RUNNER` if another process took the secret out and kept it."""
        gaps: dict[tuple[Path, bool], list[tuple[int, str]]] = {}
        for gap in taken["gaps"]:
            place = (tuple(gap["path"]), bool(gap["is_key"]))
            gaps.setdefault(place, []).append((gap["at"], self._secret_for(gap, taken["save"])))
        return _filled(taken["kept"], gaps, ())

    # -----------------------------------------------------------------------------------------------------------------

    def _kept(self, value: JsonValue, fields: frozenset[str], path: Path, save: _Save) -> JsonValue:
        if isinstance(value, str):
            return self._cut(value, fields, path, save)
        if isinstance(value, list):
            return [self._kept(inner, fields, (*path, place), save) for place, inner in enumerate(value)]
        if not isinstance(value, dict):
            return value
        kept: dict[str, JsonValue] = {}
        for key, inner in value.items():
            name = self._kept_key(key, (value, kept), fields, path, save)
            kept[name] = self._kept(inner, fields, (*path, name), save)
        return kept

    def _kept_key(
        self, key: str, taken: Sequence[Collection[str]], fields: frozenset[str], path: Path, save: _Save
    ) -> str:
        """A key with a secret in it gives way to a name that no other key has."""
        found = self._secrets_in(key, fields)
        if not found:
            return key
        names = (f"withheld {number}" for number in count(1))
        name = next(name for name in names if not any(name in keys for keys in taken))
        whole = found[0] if len(found) == 1 and found[0].end - found[0].start == len(key) else Found(0, len(key), "")
        save.note((*path, name), 0, key, whole, is_key=True)
        return name

    def _cut(self, text: str, fields: frozenset[str], path: Path, save: _Save) -> str:
        kept, end = "", 0
        for one in self._secrets_in(text, fields):
            kept += text[end : one.start]
            save.note(path, len(kept), text, one)
            end = one.end
        return kept + text[end:]

    def _secret_for(self, gap: OwnJson, number: str) -> str:
        if number in self._held:
            held: str = self._held[number][gap["held"]]
            return held
        name = gap.get("name")
        known: str | None = self._finder.value_of(name, gap["form"]) if name else None
        if known is None:
            missing = "the process that paused the run" if name is None else f"an environment with the {name}"
            raise AgentsError(
                "AGENTS-E-RUNNER",
                f"A secret was kept out of the saved run; only {missing} can give it back",
                details={"reason": "secret_withheld"},
            )
        return known

    def _secrets_in(self, text: str, fields: frozenset[str]) -> Sequence[Found]:
        found = self._finder.find(text)
        found += _written_fields(text, fields)
        if "\\" in text:
            known = joined(found)
            found += [span for span in _literals(text) if self._hides_more(text, span, known)]
        return joined(found)

    def _hides_more(self, text: str, span: Found, known: Sequence[Found]) -> bool:
        """Whether a text in JSON has a secret in it that is seen only once its escapes are read."""
        if text.find("\\", span.start, span.end) < 0:
            return False
        rest, end = "", span.start
        for one in islice(known, bisect_left(known, span.start, key=lambda one: one.start), None):
            if one.end > span.end:
                break
            rest += text[end : one.start]
            end = one.end
        return bool(self._finder.find(_read(rest + text[end : span.end])))


def _written_fields(text: str, fields: frozenset[str]) -> Iterator[Found]:
    """A secret field as the whole text, as a string inside JSON, or, if long enough to be distinct, anywhere."""
    if not fields:
        return
    if text in fields:
        yield Found(0, len(text), "")
    yield from (span for span in _literals(text) if _read(text[span.start : span.end]) in fields)
    for secret in fields:
        if len(secret) >= SHORTEST_SECRET:
            yield from (Found(*match.span(), "") for match in re.finditer(re.escape(secret), text))


def _literals(text: str) -> Iterator[Found]:
    return (Found(*match.span(1), "") for match in _LITERAL.finditer(text))


def _read(inside: str) -> str:
    if "\\" not in inside:
        return inside
    try:
        return str(json.loads(f'"{inside}"', strict=False))
    except ValueError:
        return inside


def _filled(value: JsonValue, gaps: dict[tuple[Path, bool], list[tuple[int, str]]], path: Path) -> JsonValue:
    if isinstance(value, str):
        for at, secret in reversed(gaps.get((path, False), ())):
            value = value[:at] + secret + value[at:]
        return value
    if isinstance(value, list):
        return [_filled(inner, gaps, (*path, place)) for place, inner in enumerate(value)]
    if not isinstance(value, dict):
        return value
    filled: dict[str, JsonValue] = {}
    for name, inner in value.items():
        withheld = gaps.get(((*path, name), True))
        filled[withheld[0][1] if withheld else name] = _filled(inner, gaps, (*path, name))
    return filled
