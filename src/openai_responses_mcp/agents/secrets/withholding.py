"""Secrets out of a run that is saved, and back into it when it is resumed.

Values of this process's environment are kept by the name of their variable, which works in any process with the same
environment. Other likely secrets are kept by a number that only the process which saw them can resolve.
"""

import re
import secrets
from collections.abc import Callable
from typing import Any

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.secrets.masking import Masking

_WITHHELD = re.compile(r"\u27e6withheld:(?:env:([^\u27e7]+)|([0-9a-f]{32}))\u27e7")


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
