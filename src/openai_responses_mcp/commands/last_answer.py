"""The last answer in the terminal, remembered so that `--continue` needs no id. Only its owner can read the file.

In a rehearsal, the stand-in ends with the command and has forgotten everything. So what was asked is remembered too, in a
file of its own, for the next stand-in to know.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from openai_responses_mcp.adapters.bounded_file import read_text
from openai_responses_mcp.domain.texts import without_surrogates

_OWNER_ONLY = 0o600
_FOLDER_MODE = 0o700
_MOST_BYTES = 64 * 1024


class LastAnswer:
    def __init__(self, environ: Mapping[str, str], *, rehearses: bool, platform: str = sys.platform) -> None:
        self._keeps_question = rehearses
        name = "last-rehearsal" if rehearses else "last-answer"
        self.path = os.path.join(_state_folder(environ, platform), "openai-responses-mcp", name)

    def maybe_recall(self) -> str | None:
        response_id, _ = self._read()
        return response_id if response_id.startswith("resp_") else None

    def rehearsed(self) -> dict[str, str]:
        """The id and the question of the last rehearsal, for the stand-in."""
        response_id, question = self._read()
        return {response_id: question} if self._keeps_question and response_id else {}

    def remember(self, response_id: str, question: str) -> bool:
        """Says whether that was possible. The answer is shown in any case."""
        text = f"{response_id}\n{question if self._keeps_question else ''}"
        beside = f"{self.path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self.path), mode=_FOLDER_MODE, exist_ok=True)
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY), "wb") as file:
                file.write(without_surrogates(text).encode())
            os.replace(beside, self.path)
        except OSError:
            with suppress(OSError):
                os.remove(beside)
            return False
        return True

    def _read(self) -> tuple[str, str]:
        try:
            response_id, _, question = read_text(self.path, most_bytes=_MOST_BYTES).partition("\n")
        except (OSError, ValueError):
            return "", ""
        return response_id.strip(), question


def _state_folder(environ: Mapping[str, str], platform: str) -> str:
    if platform == "win32" and environ.get("LOCALAPPDATA"):
        return environ["LOCALAPPDATA"]
    stated = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(stated):
        return stated
    return os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local", "state")
