"""Who may use the desk, and what every request has to pass before the desk looks at it.

The link lets one browser in, once, and gives it a cookie to come back with. Cookies for 127.0.0.1 go to every port
there, so the desk has a path that cannot be guessed, and the cookie goes to that path only. A request under another name
or from another page is refused. A body is read whole, bounded in size and in time.
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
    """`room` is the path of the desk, `page_token` is in its page and nowhere else, and comes back with every change."""

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
        """False for everybody before the link was used."""
        return self.is_used and session is not None and _same(session, self._session)

    def is_from_the_page(self, token: str | None) -> bool:
        return token is not None and _same(token, self.page_token)


def _same(given: str, expected: str) -> bool:
    return compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


class Limits(NamedTuple):
    """What one connection may take, and how many there may be."""

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
    """Wraps an application that is reached at `authority` (host and port) and at no other name."""

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
        """A page elsewhere can make a browser send requests here. It cannot make it lie about where they come from."""
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
        """What browsers say of a request by themselves. Following a link from elsewhere is fine: it needs the secret."""
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
    """What the other side may still be sending is not read: the connection ends with the reply."""
    return PlainTextResponse(f"{why}\n", status, {"Connection": "close"})


def _replaying(body: bytes) -> Callable[[], Awaitable[Message]]:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
