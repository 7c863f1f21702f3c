"""Who may use the desk, and the checks that every request has to pass.

The link works once and gives one browser a cookie. Browsers send cookies for 127.0.0.1 to every port there, so the desk
has a path that cannot be guessed, and the cookie is for that path only. Requests for another host name or from another
page are refused. A body is read whole, with limits on size and time.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from hmac import compare_digest
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Entrance:
    """`room` is the path of the desk. `page_token` is in its page only, and must come with every change."""

    def __init__(self) -> None:
        self.link_secret = secrets.token_urlsafe(32)
        self.room = secrets.token_urlsafe(16)
        self.page_token = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._is_open = True

    def enter(self, secret: str) -> str | None:
        """A session for the first request with the link's secret; None for all others."""
        if not self._is_open or not _same(secret, self.link_secret):
            return None
        self._is_open = False
        return self._session

    @property
    def is_used(self) -> bool:
        return not self._is_open

    def knows(self, session: str | None) -> bool:
        """Always False before the link was used."""
        return self.is_used and session is not None and _same(session, self._session)

    def is_from_the_page(self, token: str | None) -> bool:
        return token is not None and _same(token, self.page_token)


def _same(given: str, expected: str) -> bool:
    return compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


class Limits(NamedTuple):
    """Limits of one connection, and how many there may be."""

    head_seconds: float = 10.0
    body_seconds: float = 10.0
    largest_body: int = 4 * 1024 * 1024
    most_connections: int = 64


LIMITS = Limits()

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_LOOKING = ("GET", "HEAD")


class CheckedRequests:
    """Wraps an application. Only requests for `authority` (host and port) reach it."""

    headers: Mapping[str, str] = HEADERS

    def __init__(self, app: ASGIApp, authority: str, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._authority = authority
        self._origin = f"http://{authority}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope["method"], headers)
        body = refusal or await self._whole_body(receive, headers)
        if isinstance(body, bytes):
            await self._app(scope, _replaying(body), self._with_headers(send))
        else:
            await body(scope, receive, self._with_headers(send))

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        """Another page can make a browser send requests here, but cannot forge their origin."""
        if not self._is_named_right(headers):
            return _refused(f"The desk answers at {self._authority or 'its public address'} and at no other name", 403)
        origins = headers.getlist("origin")
        is_ours = self._is_origin(headers, origins) or (not origins and method in _LOOKING)
        if not is_ours or not self._is_from_here(headers):
            return _refused("The desk answers its own page only", 403)
        return None

    def _is_named_right(self, headers: Headers) -> bool:
        return headers.getlist("host") == [self._authority]

    def _is_origin(self, headers: Headers, origins: list[str]) -> bool:
        return origins == [self._origin]

    def _is_from_here(self, headers: Headers) -> bool:
        """By headers that only the browser can set. Following a link from elsewhere is fine: it needs the secret."""
        if headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document":
            return True
        return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")

    def _with_headers(self, send: Send) -> Send:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        return answer

    async def _whole_body(self, receive: Receive, headers: Headers) -> bytes | Response:
        announced = headers.get("content-length", "0")
        if not announced.isdigit() or int(announced) > self._limits.largest_body:
            return _refused("This is too much at once", 413)
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return _refused("This ended in the middle", 400)
                    body += message["body"]
                    if len(body) > self._limits.largest_body:
                        return _refused("This is too much at once", 413)
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            return _refused("This took too long", 408)


def _refused(why: str, status: int) -> Response:
    """Closes the connection with the reply, because the rest of the request is not read."""
    return PlainTextResponse(f"{why}\n", status, {"Connection": "close"})


def _replaying(body: bytes) -> Callable[[], Awaitable[Message]]:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
