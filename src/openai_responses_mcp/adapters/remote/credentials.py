"""Stored logins at remote servers: one file per URL, readable only by its owner.

A login is stored with its expiry and its authorization server, so that another process can renew it without a browser.
Only the holder of the lock renews, because some servers accept a refresh token only once.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from openai_responses_mcp.adapters.remote.wire import RemoteAddress, RemoteFault
from openai_responses_mcp.gate.sql.own_files import replace_private

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows. There, if two guards renew at once, the user may have to log in again.
    fcntl = None

_LARGEST_FILE = 1024 * 1024
_SECONDS_BEFORE_EXPIRY = 30.0
_SECONDS_FOR_LOCK = 30.0
_SECONDS_BETWEEN_TRIES = 0.05


@dataclass(frozen=True, slots=True)
class SavedLogin:
    """In the formats of the official MCP client. `expires_at` is Unix time, None if the token never expires."""

    tokens: dict[str, Any] = field(default_factory=dict)
    expires_at: float | None = None
    client: dict[str, Any] = field(default_factory=dict)
    authorization_server: dict[str, Any] = field(default_factory=dict)
    resource: dict[str, Any] = field(default_factory=dict)

    @property
    def access_token(self) -> str:
        return str(self.tokens.get("access_token") or "")

    @property
    def can_be_renewed(self) -> bool:
        return bool(self.tokens.get("refresh_token") and self.client)

    def is_valid(self) -> bool:
        is_expired = self.expires_at is not None and time.time() > self.expires_at - _SECONDS_BEFORE_EXPIRY
        return bool(self.access_token) and not is_expired


class LoginFile:
    def __init__(self, own_folder: str, url: str) -> None:
        self.path = Path(own_folder) / "logins" / f"{sha256(url.encode()).hexdigest()[:32]}.json"

    def read(self) -> SavedLogin:
        """An empty login if the file is missing or cannot be read."""
        try:
            with open(self.path, "rb") as opened:
                content = json.loads(opened.read(_LARGEST_FILE))
            parts = [content[name] for name in ("tokens", "client", "authorization_server", "resource")]
            expires_at = content["expires_at"]
            if not all(isinstance(part, dict) for part in parts) or not isinstance(expires_at, int | float | None):
                return SavedLogin()
            tokens, client, authorization_server, resource = parts
            return SavedLogin(tokens, expires_at, client, authorization_server, resource)
        except (OSError, ValueError, KeyError, TypeError):
            return SavedLogin()

    def write(self, login: SavedLogin) -> None:
        self._make_folder()
        replace_private(self.path, json.dumps(asdict(login), indent=1))

    def forget(self) -> bool:
        """False if there was none."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        with suppress(OSError):
            self.path.with_suffix(".lock").unlink()
        return True

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Raises `TimeoutError` if another process holds the lock for too long."""
        self._make_folder()
        descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if fcntl is not None:
                async with asyncio.timeout(_SECONDS_FOR_LOCK):
                    while not _try_lock(descriptor, fcntl):  # noqa: ASYNC110 -- another process holds it
                        await asyncio.sleep(_SECONDS_BETWEEN_TRIES)
            yield
        finally:
            os.close(descriptor)

    def _make_folder(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def _try_lock(descriptor: int, locks: ModuleType) -> bool:
    try:
        locks.flock(descriptor, locks.LOCK_EX | locks.LOCK_NB)
    except BlockingIOError:
        return False
    return True


Renew = Callable[[RemoteAddress, LoginFile, SavedLogin], Awaitable[SavedLogin]]


class Credentials:
    """Headers for requests: the fixed ones, and the stored login.

    An expired login is renewed. If another process has stored a new one, that is used. All methods raise `RemoteFault`.
    """

    def __init__(
        self, address: RemoteAddress, file: LoginFile | None, renew: Renew, fixed: Mapping[str, str] | None = None
    ) -> None:
        self._address = address
        self._renew = renew
        self._file = file
        self._fixed = fixed or {}
        self._renewing = asyncio.Lock()
        # The access token of a login whose renewal was refused: it is not tried again.
        self._refused = ""

    async def headers(self) -> Mapping[str, str]:
        """For the next request."""
        if self._file is None:
            return self._fixed
        login = self._file.read()
        found = _bearer(login) if login.is_valid() else await self._renewed(self._file, login.access_token)
        return {**self._fixed, **found}

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        """New headers after the server refused these; empty if the login cannot be renewed."""
        if self._file is None:
            return {}
        found = await self._renewed(self._file, refused.get("authorization", "").removeprefix("Bearer "))
        return {**self._fixed, **found} if found else {}

    async def _renewed(self, file: LoginFile, old_token: str) -> Mapping[str, str]:
        async with self._renewing:
            try:
                if not file.path.exists():
                    return {}
                async with file.locked():
                    login = file.read()
                    if login.access_token != old_token and login.is_valid():
                        return _bearer(login)
                    if not login.can_be_renewed or login.access_token == self._refused:
                        return {}
                    new = await self._renew(self._address, file, login)
            except (TimeoutError, OSError) as exc:
                text = f"The login at {self._address.host} cannot be renewed: its file is in use; call again later"
                raise RemoteFault(text) from exc
            self._refused = "" if new.access_token else login.access_token
            return _bearer(new)


def _bearer(login: SavedLogin) -> Mapping[str, str]:
    return {"authorization": f"Bearer {login.access_token}"} if login.access_token else {}
