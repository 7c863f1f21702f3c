"""Pinned definitions in a small JSON file that only its owner can read, written by renaming.

A writer holds the lock of a file beside it from reading to renaming, so that no process loses another's pins.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from openai_responses_mcp.gate.definitions import DefinitionPins
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.sql.own_files import replace_private

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no fcntl
    fcntl = None  # type: ignore[assignment]


class PinFile(DefinitionPins):
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    async def known(self) -> Mapping[str, str]:
        return self._read()

    async def put(self, tool: str, pin: str) -> None:
        try:
            with self._locked():
                pins = self._read()
                if pins.get(tool) != pin:
                    replace_private(self._path, json.dumps({**pins, tool: pin}, indent=0, sort_keys=True))
        except OSError as exc:
            message = f"The pinned definitions cannot be written ({exc.strerror}), so nothing was run; check the folder"
            raise AgentsError("AGENTS-E-MCP-SCHEMA", message) from exc

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> dict[str, str]:
        try:
            pins = json.loads(self._path.read_text())
            if not isinstance(pins, dict):
                raise ValueError
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            # Starting over would let a changed definition pass for a new one.
            message = f"The pinned definitions in {self._path.name} cannot be read; mend or remove the file"
            raise AgentsError("AGENTS-E-MCP-SCHEMA", message) from exc
        return {str(tool): str(pin) for tool, pin in pins.items()}
