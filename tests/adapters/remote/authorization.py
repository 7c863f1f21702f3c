"""An MCP server that requires a login, its authorization server, and a browser that consents; all on loopback."""

import asyncio
import json
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from openai_responses_mcp.adapters.http.serving import HttpServer, listening_socket
from tests.fakes import WAIT_SECONDS


class Authorization:
    """Tokens are valid while they are in `access`; each refresh token is valid once."""

    def __init__(self) -> None:
        self.base = ""
        self.issuer = ""
        self.clients: list[dict[str, object]] = []
        self.codes: dict[str, str] = {}
        self.access: set[str] = set()
        self.refresh: set[str] = set()
        self.expires_in = 3600
        self.token_status = 200
        self.grants: list[dict[str, str]] = []
        self.asks = True
        self.denies = False
        self.calls: list[str] = []

    @property
    def url(self) -> str:
        return f"{self.base}/mcp"

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/mcp", self._mcp, methods=["POST", "DELETE"]),
                Route("/.well-known/oauth-protected-resource/mcp", self._resource),
                Route("/.well-known/oauth-authorization-server", self._metadata),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
            ]
        )

    async def _mcp(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.asks and token not in self.access:
            self.calls.append("refused")
            where = f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
            return Response(status_code=401, headers={"www-authenticate": where})
        self.calls.append(request.method)
        if request.method == "DELETE":
            return Response()
        message = json.loads(await request.body())
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": "2025-11-25"}}
        return JSONResponse(reply, headers={"mcp-session-id": "s"})

    async def _resource(self, _: Request) -> Response:
        return JSONResponse({"resource": self.url, "authorization_servers": [self.issuer or self.base]})

    async def _metadata(self, _: Request) -> Response:
        ends = {f"{name}_endpoint": f"{self.base}/{path}" for name, path in ENDS.items()}
        return JSONResponse({"issuer": self.base, **ends, "code_challenge_methods_supported": ["S256"]})

    async def _register(self, request: Request) -> Response:
        client = {**json.loads(await request.body()), "client_id": f"client-{len(self.clients)}"}
        self.clients.append(client)
        return JSONResponse(client, 201)

    async def _authorize(self, request: Request) -> Response:
        asked = request.query_params
        code = secrets.token_hex(8)
        self.codes[code] = asked["code_challenge"]
        said = {"error": "access_denied"} if self.denies else {"code": code}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({**said, 'state': asked['state']})}", 302)

    async def _token(self, request: Request) -> Response:
        grant = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.grants.append(grant)
        if self.token_status != 200:
            return Response(status_code=self.token_status)
        if grant["grant_type"] == "refresh_token":
            is_good = grant["refresh_token"] in self.refresh
            self.refresh.discard(grant["refresh_token"])
        else:
            digest = sha256(grant["code_verifier"].encode()).digest()
            is_good = self.codes.pop(grant["code"], "") == urlsafe_b64encode(digest).decode().rstrip("=")
        if not is_good:
            return JSONResponse({"error": "invalid_grant"}, 400)
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.access.add(access)
        self.refresh.add(refresh)
        tokens = {"access_token": access, "token_type": "bearer", "refresh_token": refresh}
        return JSONResponse({**tokens, "expires_in": self.expires_in})


ENDS = {"authorization": "authorize", "token": "token", "registration": "register"}


@asynccontextmanager
async def authorizing() -> AsyncIterator[Authorization]:
    authorization = Authorization()
    listening, server = listening_socket("127.0.0.1", 0), HttpServer(authorization.app())
    authorization.base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    running = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        yield authorization
    finally:
        server.should_exit = True
        await asyncio.wait_for(running, WAIT_SECONDS)


async def browse(link: str) -> str:
    """Open the link as a browser does, and return the address it redirects to."""
    async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=WAIT_SECONDS) as client:
        at: str = (await client.get(link)).headers["location"]
    return at


def query_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
