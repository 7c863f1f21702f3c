"""Secrets out of everything the guarded half keeps or shows, and out of paused runs without losing them.

`Masking` stars secrets out for good. `Withholding` takes them out of a run state before it is stored and puts them
back when the run is resumed: values of this process's environment by the name of their variable, which works in any
process with the same environment; other likely secrets by a number that only the process which saw them can resolve.
"""

import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.domain.masking import MASK, SHORTEST_SECRET, SecretMask

_SECRET_FIELD = re.compile(
    r"(?i)(pass(word|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization|credential|cookie)"
)
_SECRET_VARIABLE = re.compile(r"(?i)KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL")
_WITHHELD = re.compile(r"\u27e6withheld:(?:env:([^\u27e7]+)|([0-9a-f]{32}))\u27e7")
_COUNTS = re.compile(r"(?i)tokens$")


class Masking:
    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        found = dict(_secret_variables(os.environ if environ is None else environ))
        self.variables: Mapping[str, str] = found
        self._mask = SecretMask(found.values())

    def text(self, text: str) -> str:
        return self._mask(text)

    def has_secret(self, text: str) -> bool:
        return self._mask(text) != text

    def value(self, value: Any) -> Any:
        """The same JSON value without secrets: likely ones in texts, and whole fields whose name says so."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._field(str(key), inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.text(str(value))

    def error(self, failure: AgentsError, **details: object) -> AgentsError:
        """The error as it may be shown: masked, and without a cause that has a secret in its text."""
        details = self.value({**details, **failure.details})
        shown = AgentsError(failure.code, self.text(failure.message), failure.category, details)
        shown.__cause__ = failure.__cause__ if self._is_clean(failure.__cause__) else None
        return shown

    def _is_clean(self, error: BaseException | None) -> bool:
        seen: list[BaseException] = []
        while error is not None and error not in seen:
            seen.append(error)
            if self.has_secret(str(error)) or self.has_secret(repr(error)):
                return False
            error = error.__cause__ or error.__context__
        return True

    def _field(self, name: str, value: Any) -> Any:
        if _SECRET_FIELD.search(name) and not _COUNTS.search(name) and value not in (None, "", False, True):
            return MASK
        return self.value(value)


class Withholding:
    """One per process; what it holds back it never writes anywhere."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._held: dict[str, str] = {}

    def take_out(self, value: Any) -> Any:
        return _map_texts(value, self._take_out_of_text)

    def put_back(self, value: Any) -> Any:
        """Raises `AGENTS-E-RUNNER` where a secret was held back by a process that this one knows nothing of."""
        return _map_texts(value, self._put_back_into_text)

    def _take_out_of_text(self, text: str) -> str:
        for name, secret in self._masking.variables.items():
            text = text.replace(secret, f"\u27e6withheld:env:{name}\u27e7")
        if not self._masking.has_secret(text):
            return text
        number = secrets.token_hex(16)
        self._held[number] = text
        return f"\u27e6withheld:{number}\u27e7"

    def _put_back_into_text(self, text: str) -> str:
        whole = _WITHHELD.sub(self._known, text)
        return _WITHHELD.sub(self._known, whole)

    def _known(self, found: re.Match[str]) -> str:
        variable, number = found.groups()
        known = self._masking.variables.get(variable) if variable else self._held.get(number)
        if known is None:
            missing = f"the variable {variable}" if variable else "the process that paused the run"
            raise AgentsError(
                "AGENTS-E-RUNNER",
                f"A secret was kept out of the saved run; only {missing} can give it back",
                details={"reason": "secret_withheld"},
            )
        return known


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_map_texts(key, change): _map_texts(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_map_texts(inner, change) for inner in value]
    return value


def _secret_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        if _SECRET_VARIABLE.search(name) and len(value.strip()) >= SHORTEST_SECRET:
            yield name, value.strip()
