"""Secrets out of everything that the guarded half keeps or shows, for good, in two views.

The human or judge who decides on a call sees it exactly: a label for each real secret (`‹OPENAI_API_KEY›`), and
everything else whole, because the model chose the keys and the texts. The log may hide more: also what only looks like
a secret. Where secrets must come back when a run goes on, `withholding` does it.
"""

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence

from openai_responses_mcp.domain.masking import (
    SHORTEST_SECRET,
    SecretFinder,
    SecretMask,
    known_secrets,
    label_of,
    replaced,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, texts_in
from openai_responses_mcp.gate.secrets.fields import Path, is_secret_name, secret_fields

_LABEL = re.compile(r"‹[^‹›]{1,300}›")
_SURE_LABEL = re.compile(r"‹(?:.*, [1-9][0-9]* characters?|[A-Z][A-Z0-9_]+|password in .*)›", re.DOTALL)
_COMMAND = re.compile(r"\s|`|\$\(")


class Masking:
    """`also` names a variable that holds a secret, whatever its name says."""

    def __init__(self, environ: Mapping[str, str] | None = None, also: str = "") -> None:
        known = known_secrets(os.environ if environ is None else environ, key_variable=also)
        self.finder = SecretFinder(known)
        self._mask = SecretMask(secret.value for secret in known)

    # -----------------------------------------------------------------------------------------------------------------
    # For the approver and the judge

    def shown_text(self, text: str) -> str:
        """The text with a label for each real secret in it."""
        found = self.finder.find(text)
        return replaced(text, found) if found else text

    def shown(self, args: JsonObject, schema: JsonObject) -> dict[str, JsonValue]:
        """The arguments of a call. `schema` is the tool's own, and says which of its fields hold a secret."""
        fields = secret_fields(schema, args)
        return _mapped_object(args, self.shown_text, lambda path, text: fields.get(path, ""))

    def label_in(self, args: JsonObject) -> str | None:
        """The first label in the arguments that stands, or may stand, in the place of a secret."""
        for text in texts_in(args):
            for match in _LABEL.finditer(text) if "‹" in text else ():
                if _SURE_LABEL.fullmatch(match[0]) or match[0] in self.finder.labels:
                    return match[0]
        return None

    # -----------------------------------------------------------------------------------------------------------------
    # For the log

    def text(self, text: str, also: Sequence[str] = ()) -> str:
        """The text without secrets and without what looks like one. `also` are texts of secret fields."""
        if not text:
            return text
        for secret in also:
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, label_of("secret", len(secret)))
        return self._mask.rest(self.shown_text(text))

    def value(self, value: JsonValue, also: Sequence[str] = ()) -> JsonValue:
        """The same JSON value without secrets: likely ones in texts, and texts of fields whose name says so."""
        return _mapped(value, lambda text: self.text(text, also), _likely_field)

    def mapping(self, value: JsonObject, also: Sequence[str] = ()) -> dict[str, JsonValue]:
        return _mapped_object(value, lambda text: self.text(text, also), _likely_field)

    def error(self, failure: AgentsError, also: Sequence[str] = (), **details: object) -> AgentsError:
        """The error as it may be shown: masked, and without a cause that has a secret in its text."""
        told = self.mapping({**details, **failure.details}, also)
        shown = AgentsError(failure.code, self.text(failure.message, also), failure.category, told)
        shown.__cause__ = failure.__cause__ if self._is_clean(failure.__cause__, also) else None
        return shown

    def _is_clean(self, error: BaseException | None, also: Sequence[str]) -> bool:
        seen: list[BaseException] = []
        while error is not None and error not in seen:
            seen.append(error)
            if any(self.text(text, also) != text for text in (str(error), repr(error))):
                return False
            error = error.__cause__ or error.__context__
        return True


def _likely_field(path: Path, text: str) -> str:
    """The name of a field if it sounds like a secret. Shell commands are not hidden."""
    name = path[-1] if path else None
    is_likely = isinstance(name, str) and is_secret_name(name) and not _COMMAND.search(text)
    return str(name) if is_likely else ""


def _mapped(
    value: JsonValue, change: Callable[[str], str], field: Callable[[Path, str], str], path: Path = ()
) -> JsonValue:
    """The value as JSON can say it, every text changed. A text that is a secret field gives way to a label."""
    if isinstance(value, str):
        name = field(path, value)
        return _labelled(name, value) if name and value else change(value)
    if isinstance(value, Mapping):
        return _mapped_object(value, change, field, path)
    if isinstance(value, list | tuple):
        return [_mapped(inner, change, field, (*path, place)) for place, inner in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value if value is None or isinstance(value, bool | int | float) else change(str(value))


def _mapped_object(
    value: JsonObject, change: Callable[[str], str], field: Callable[[Path, str], str], path: Path = ()
) -> dict[str, JsonValue]:
    mapped: dict[str, JsonValue] = {}
    for key, inner in value.items():
        mapped[_unused(change(str(key)), mapped)] = _mapped(inner, change, field, (*path, key))
    return mapped


def _labelled(name: str, text: str) -> str:
    # A label is left as it is: what was shown may be shown again.
    is_label = text.startswith("‹") and text.find("›") == len(text) - 1
    return text if is_label else label_of(name, len(text))


def _unused(key: str, taken: JsonObject, number: int = 2) -> str:
    """Two keys that look the same when masked stay two keys."""
    if key not in taken:
        return key
    numbered = f"{key} ({number})"
    return numbered if numbered not in taken else _unused(key, taken, number + 1)
