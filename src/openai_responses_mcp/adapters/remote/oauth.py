"""OAuth as the MCP specification requires it: log in with a browser, and renew the login. Uses the official MCP client.

Only the flow of that client is used: which requests to send, and what their answers mean. If it authenticated every
request, only one could be sent at a time, and it would forget when a token expires.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from openai_responses_mcp.adapters.remote.credentials import LoginFile, SavedLogin
from openai_responses_mcp.adapters.remote.wire import RemoteAddress, RemoteFault, WrongAddress, remote_address

CLIENT_NAME = "openai-responses-mcp guard"

_LARGEST_ANSWER = 1024 * 1024
_SECONDS_FOR_ANSWER = 30.0
_LONGEST_WORDS = 300
_INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"openai-responses-mcp guard","version":"1"}}}'
)

# Silenced, because its messages may quote a server's answer with a token in it.
logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())
logging.getLogger("mcp.client.auth").propagate = False

OpenPage = Callable[[str], Awaitable[None]]
Callback = Callable[[], Awaitable[Mapping[str, str]]]
"""Waits for the browser's redirect, and returns its parameters."""


class _Storage:
    """The storage of the official client: our file, with everything that a renewal needs."""

    def __init__(self, file: LoginFile, login: SavedLogin) -> None:
        self._file = file
        self._login = login
        self.provider: OAuthClientProvider

    async def get_tokens(self) -> OAuthToken | None:
        return OAuthToken.model_validate(self._login.tokens) if self._login.tokens else None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return OAuthClientInformationFull.model_validate(self._login.client) if self._login.client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Stored together with the tokens."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.provider.context
        self._file.write(
            SavedLogin(
                _dumped(context.current_tokens),
                context.token_expiry_time,
                _dumped(context.client_info),
                _dumped(context.oauth_metadata),
                _dumped(context.protected_resource_metadata),
            )
        )


def _dumped(model: BaseModel | None) -> dict[str, Any]:
    return {} if model is None else model.model_dump(mode="json", exclude_none=True)


def _provider(
    url: str,
    file: LoginFile,
    login: SavedLogin,
    redirect_uri: str = "http://127.0.0.1/callback",
    open_page: OpenPage | None = None,
    callback: Callback | None = None,
) -> OAuthClientProvider:
    """Raises `ValidationError` for a login with invalid parts."""
    storage = _Storage(file, login)

    async def code() -> AuthorizationCodeResult:
        query = {} if callback is None else await callback()
        return AuthorizationCodeResult(code=query.get("code", ""), state=query.get("state"), iss=query.get("iss"))

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(redirect_uri)], client_name=CLIENT_NAME)
    provider = storage.provider = OAuthClientProvider(url, metadata, storage, open_page, code)
    context = provider.context
    if login.authorization_server:
        context.oauth_metadata = OAuthMetadata.model_validate(login.authorization_server)
    if login.resource:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(login.resource)
        context.auth_server_url = str(context.protected_resource_metadata.authorization_servers[0])
    return provider


async def renew(address: RemoteAddress, file: LoginFile, login: SavedLogin) -> SavedLogin:
    """The renewed login; empty if the refresh token was refused. Raises `RemoteFault`."""
    request = httpx2.Request("POST", address.url)
    try:
        provider = _provider(address.url, file, login)
        # Marked as expired, because the official client treats every stored token as valid.
        provider.context.token_expiry_time = 1.0
        async with _client(address) as client, aclosing(provider.async_auth_flow(request)) as flow:
            outgoing = await anext(flow)
            while outgoing is not request:
                answer = await _answer(client, outgoing)
                if answer.status_code == 429 or answer.status_code >= 500:
                    raise RemoteFault(f"The login cannot be renewed now ({answer.status_code}); call again later")
                outgoing = await flow.asend(answer)
    except (OAuthFlowError, ValidationError):
        return SavedLogin()
    except (httpx2.HTTPError, TimeoutError) as exc:
        raise RemoteFault(f"The login cannot be renewed now ({type(exc).__name__}); call again later") from exc
    return file.read() if "authorization" in request.headers else SavedLogin()


async def log_in(
    address: RemoteAddress,
    file: LoginFile,
    client_info: SavedLogin,
    redirect_uri: str,
    open_page: OpenPage,
    callback: Callback,
) -> bool:
    """Log in with a browser, and keep the login. False if the server asks for none. Raises `RemoteFault`."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    try:
        provider = _provider(address.url, file, client_info, redirect_uri, open_page, callback)
        async with _client(address) as client:
            request = client.build_request("POST", address.url, headers=headers, content=_INITIALIZE)
            async with aclosing(provider.async_auth_flow(request)) as flow:
                outgoing, was_asked = await anext(flow), False
                while True:
                    answer = await _answer(client, outgoing, is_read=outgoing is not request)
                    was_asked = was_asked or outgoing is not request
                    if outgoing is request and (answer.is_success or was_asked):
                        break
                    outgoing = await flow.asend(answer)
            if session := answer.headers.get("mcp-session-id"):
                bearer = {"authorization": request.headers.get("authorization", "")}
                ending = client.build_request("DELETE", address.url, headers={**bearer, "mcp-session-id": session})
                await _answer(client, ending, is_read=False)
    except (OAuthFlowError, ValidationError) as exc:
        raise RemoteFault(f"The login at {address.host} failed: {_words_of(exc)}") from exc
    except (httpx2.HTTPError, TimeoutError) as exc:
        raise RemoteFault(f"The login at {address.host} failed ({type(exc).__name__}: {_words_of(exc)})") from exc
    except StopAsyncIteration:
        raise RemoteFault(f"{address.host} answered with status {answer.status_code}: check the URL") from None
    if not answer.is_success:
        raise RemoteFault(f"{address.host} refuses the new login with status {answer.status_code}", answer.status_code)
    return was_asked


def _client(address: RemoteAddress) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=_SECONDS_FOR_ANSWER, trust_env=not address.is_loopback, follow_redirects=False)


async def _answer(client: httpx2.AsyncClient, request: httpx2.Request, *, is_read: bool = True) -> httpx2.Response:
    """The response with its body, up to a limit. Tokens are sent over https or to this machine only."""
    try:
        remote_address(str(request.url.copy_with(userinfo=b"", fragment=None)))
    except WrongAddress:
        raise OAuthFlowError(f"the connection to {request.url.host} would not be encrypted") from None
    async with asyncio.timeout(_SECONDS_FOR_ANSWER * 2):
        response = await client.send(request, stream=True)
        body = b""
        async with aclosing(response):
            if is_read or response.status_code in (401, 403):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _LARGEST_ANSWER:
                        raise OAuthFlowError(f"the answer of {request.url.host} is too large")
    headers = [pair for pair in response.headers.multi_items() if pair[0] not in ("content-encoding", "content-length")]
    bounded = httpx2.Response(response.status_code, headers=headers, content=body, request=request)
    bounded.next_request = response.next_request
    return bounded


def _words_of(exc: Exception) -> str:
    if isinstance(exc, ValidationError):
        return "an answer of the authorization server cannot be read"
    words = " ".join(str(exc).split())
    return words if len(words) <= _LONGEST_WORDS else f"{words[:_LONGEST_WORDS]}…"
