"""Secrets out of everything that the guarded half keeps or shows, for good.

Where they must come back when a run goes on, `withholding` does it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.domain.masking import MASK, SHORTEST_SECRET, SecretMask

_SECRET_FIELD = re.compile(
    r"(?i)(pass(word|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization|credential|cookie)"
)
_SECRET_VARIABLE = re.compile(r"(?i)KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL")
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


def _secret_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        if _SECRET_VARIABLE.search(name) and len(value.strip()) >= SHORTEST_SECRET:
            yield name, value.strip()
