"""A server of the official SDK with its own authorization server: log in, call through the guard, renew in a new process."""

import asyncio
import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

from openai_responses_mcp.adapters.http.serving import HttpServer, listening_socket
from openai_responses_mcp.adapters.remote.credentials import LoginFile
from tests.e2e.client import COMMAND, Server, environment
from tests.fakes import SLOW_SECONDS
from tests.guard.conftest import ALLOW_ALL, ENVELOPE, policy_file, text_of
from tests.guard.test_login import BROWSER

pytestmark = pytest.mark.slow


class Memory(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Says yes to everybody. A refresh token counts once."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.access: dict[str, AccessToken] = {}
        self.renewed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.renewed += 1
        del self.refresh[refresh_token.token]
        return self._tokens(client, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None: ...

    def _tokens(self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        of = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, expires_at=int(time.time()) + 3600, **of)  # type: ignore[arg-type]
        self.refresh[refresh] = RefreshToken(token=refresh, **of)  # type: ignore[arg-type]
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes))


class Protected:
    """The server in a thread, because the guard is talked to from the test's."""

    def __init__(self) -> None:
        self.provider = Memory()
        listening = listening_socket("127.0.0.1", 0)
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.url = f"{base}/mcp"
        settings = AuthSettings(
            issuer_url=AnyHttpUrl(base),
            resource_server_url=AnyHttpUrl(self.url),
            client_registration_options=ClientRegistrationOptions(enabled=True),
            validate_token_resource=True,
        )
        server: MCPServer[Any] = MCPServer(
            "protected", auth_server_provider=self.provider, auth=settings, log_level="CRITICAL"
        )

        @server.tool(description="Add two numbers.")
        def add(a: int, b: int) -> int:
            return a + b

        self._server, self._listening = server, listening
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()

    async def _serve(self) -> None:
        app = self._server.streamable_http_app()
        http = HttpServer(app)
        async with self._server.session_manager.run():
            running = asyncio.create_task(http.serve(sockets=[self._listening]))
            await asyncio.to_thread(self._is_over.wait)
            http.should_exit = True
            await running

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(SLOW_SECONDS)


@pytest.fixture
def protected() -> Iterator[Protected]:
    with closing(Protected()) as server:
        yield server


def test_log_in_call_and_renew(protected: Protected, tmp_path: Path) -> None:
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    environ = environment(tmp_path, XDG_STATE_HOME=str(tmp_path), BROWSER=f"{sys.executable} {script} %s")
    policy = policy_file(tmp_path, ALLOW_ALL)
    guard = [*COMMAND, "guard", "--policy", policy, "--url", protected.url]

    def said_by_call(**meta: Any) -> Any:
        with closing(Server(guard, environ)) as talking:
            if not meta:
                params = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "t", "version": "1"},
                }
                reply = talking.request("initialize", params)
                if "error" in reply:
                    return reply["error"]["message"]
                talking.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            return text_of(talking.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}, **meta}))

    login = f"openai-responses-mcp guard login --url {protected.url}"
    assert login in said_by_call()
    done = subprocess.run(
        [*COMMAND, *login.split()[1:]], env=environ, capture_output=True, text=True, timeout=SLOW_SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert said_by_call() == "3"
    assert said_by_call(_meta=ENVELOPE) == "3"
    assert protected.provider.renewed == 0
    # Another process finds the login expired, and needs no browser.
    file = LoginFile(str(tmp_path / "openai-responses-mcp"), protected.url)
    saved = json.loads(file.path.read_text())
    file.path.write_text(json.dumps({**saved, "expires_at": 1}))
    assert said_by_call() == "3"
    assert protected.provider.renewed == 1
    tokens = [*protected.provider.access, *protected.provider.refresh]
    kept = b"".join(path.read_bytes() for path in (tmp_path / "openai-responses-mcp").glob("guard.db*"))
    assert kept
    assert not [token for token in tokens if token.encode() in kept]
