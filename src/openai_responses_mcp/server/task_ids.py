"""The ids of tasks. An id holds all that is needed to go on with its task, so nothing is stored here.

It is signed, so that nobody can make one up. The key for that is derived from the API key: every server with the same
API key knows the ids of the others.
"""

import binascii
import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

LONGEST_ID = 512
_PREFIX = "task_"
_PURPOSE = b"openai-responses-mcp: ids of tasks, version 1"
_SIGNATURE_BYTES = 16


class TaskFacts(NamedTuple):
    """What an id says. The domains are None where there was no room for them: then the API knows them."""

    response_id: str
    tool: str
    created_ms: int
    domains: tuple[str, ...] | None = ()


class NotATask(ValueError):
    """The id was not made by this server, or not with this API key; `str(error)` says which."""


class TaskIds:
    def __init__(self, api_key: str) -> None:
        # A variable may hold bytes that are no text.
        self._key = hmac.digest(api_key.strip().encode("utf-8", "surrogateescape"), _PURPOSE, hashlib.sha256)

    def maybe_made(self, facts: TaskFacts) -> str | None:
        """The id; None where it would be too long even without the domains."""
        for shorter in (facts, facts._replace(domains=None)):
            task_id = self._signed(json.dumps(shorter, separators=(",", ":")).encode())
            if len(task_id) <= LONGEST_ID:
                return task_id
        return None

    def read(self, task_id: str) -> TaskFacts:
        """Raises `NotATask`."""
        signature, payload = _parts(task_id)
        # Bytes can be written in more than one way as text; only ours counts.
        if not hmac.compare_digest(signature, self._signature(payload)) or self._signed(payload) != task_id:
            raise NotATask("its id was changed, or made with another API key")
        response_id, tool, created_ms, domains = json.loads(payload)
        return TaskFacts(response_id, tool, created_ms, None if domains is None else tuple(domains))

    def _signed(self, payload: bytes) -> str:
        return _PREFIX + urlsafe_b64encode(self._signature(payload) + payload).decode().rstrip("=")

    def _signature(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, hashlib.sha256)[:_SIGNATURE_BYTES]


def _parts(task_id: str) -> tuple[bytes, bytes]:
    text = task_id.removeprefix(_PREFIX)
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raw = b""
    if text == task_id or len(task_id) > LONGEST_ID or len(raw) <= _SIGNATURE_BYTES:
        raise NotATask("no task of this server has such an id")
    return raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
