"""The desk over HTTP: a link that lets one browser in, the page, and what the page requests.

    GET  /?secret=…              works once: sets the cookie, leads to the page
    GET  /ROOM/                  the page; beside it its scripts and its style
    GET  /ROOM/waiting           which requests wait (304 if unchanged)
    GET  /ROOM/requests?ids=A,B  some requests
    POST /ROOM/decisions         decide one or several
    GET  /ROOM/standing          standing approvals (304 if unchanged)
    POST /ROOM/revocations       end a standing approval
    GET  /ROOM/log?before=N      calls, newest first
    GET  /ROOM/log/verification  whether the log is intact

Everything below ROOM needs the cookie, and every change the token of the page.
"""

import hashlib
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn import Server

from openai_responses_mcp.adapters.http.serving import AddressInUse, bounded, listening_socket
from openai_responses_mcp.desk.page.access import LIMITS, CheckedRequests, Entrance, Limits
from openai_responses_mcp.desk.page.desk import Desk
from openai_responses_mcp.desk.page.messages import choices_in, error_view, read_json, revocation_in
from openai_responses_mcp.domain.texts import revealed
from openai_responses_mcp.gate.errors import AgentsError, config_error
from openai_responses_mcp.gate.json_values import JsonValue

_SCRIPTS = ("desk", "cards", "changes", "elements", "log", "more", "server", "standing", "words")
FILES: Mapping[str, str] = {
    **{f"{name}.js": "text/javascript; charset=utf-8" for name in _SCRIPTS},
    "desk.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def page(page_token: str, who: str) -> str:
    """The token needs no escaping. `who` has signed in, on the desk for a team."""
    text = content_of("page.html").decode().replace("PAGE-TOKEN", page_token)
    return text.replace("SIGNED-IN-AS", escape(revealed(who)))


def welcome(room: str) -> str:
    """Leads to the page. That request comes from the desk itself, so the browser sends the strict cookie."""
    return (
        "<!doctype html><meta charset=utf-8><title>Desk</title>"
        f'<meta http-equiv=refresh content="0;url=/{room}/"><a href="/{room}/">Go on to the desk</a>\n'
    )


@cache
def content_of(name: str) -> bytes:
    return (files(__package__) / "static" / name).read_bytes()


_logger = logging.getLogger("openai_responses_mcp.agents")

_STATUS: Mapping[str, int] = {
    "AGENTS-E-APPROVAL-NOT-FOUND": 404,
    "AGENTS-E-APPROVAL-INVALID": 400,
    "AGENTS-E-LOG-STORE": 503,
}
_SHUT = "Open the desk with the link that the terminal shows.\n"
_USED = (
    "This link has been used, and works once. If it was not you who used it, end the desk in the terminal now.\n"
    "Start it again for a new link.\n"
)
_STALE = "This page is not from this desk any more: load it again.\n"

_REQUESTS_AT_ONCE = 50

Handler = Callable[[Request], Awaitable[Response]]


def application(desk: Desk, entrance: Entrance, port: int, limits: Limits = LIMITS) -> ASGIApp:
    rooms = Rooms(desk, entrance, cookie=f"desk_{port}")
    # Browsers leave the usual port out.
    return CheckedRequests(rooms.routes(), "127.0.0.1" if port == 80 else f"127.0.0.1:{port}", limits)


class Rooms:
    """The name of the approver is in the scope as `who`, if known."""

    entering: Sequence[str] = ("GET",)

    def __init__(self, desk: Desk, entrance: Entrance, cookie: str) -> None:
        self._desk = desk
        self._entrance = entrance
        self._cookie = cookie

    def routes(self) -> Starlette:
        room = f"/{self._entrance.room}"
        looks: Mapping[str, Handler] = {
            "/": self._page,
            "/waiting": self._waiting,
            "/requests": self._requests,
            "/standing": self._standing,
            "/log": self._log,
            "/log/verification": self._verification,
            **{f"/{name}": static_file for name in FILES},
        }
        changes: Mapping[str, Handler] = {"/decisions": self._decisions, "/revocations": self._revocations}
        return Starlette(
            routes=[
                Route("/", self._enter, methods=[*self.entering]),
                *(Route(room + path, self._seated(look), methods=["GET"]) for path, look in looks.items()),
                *(Route(room + path, self._changing(change), methods=["POST"]) for path, change in changes.items()),
            ],
            exception_handlers={AgentsError: _refused, Exception: _failed},
        )

    # -----------------------------------------------------------------------------------------------------------------
    # Who may

    async def _enter(self, request: Request) -> Response:
        secret = request.query_params.get("secret")
        if request.method != "GET" or secret is None:
            return PlainTextResponse(_SHUT, 403)
        session = self._entrance.enter(secret)
        if session is None:
            return PlainTextResponse(_USED if self._entrance.is_used else _SHUT, 403)
        # Not a redirect: after a link from elsewhere, a browser follows a redirect without the strict cookie.
        entered = HTMLResponse(welcome(self._entrance.room))
        entered.set_cookie(self._cookie, session, path=f"/{self._entrance.room}/", httponly=True, samesite="strict")
        return entered

    def _seated(self, handler: Handler) -> Handler:
        async def checked(request: Request) -> Response:
            if not any(self._entrance.knows(session) for session in self._sessions(request)):
                return PlainTextResponse(_SHUT, 403)
            return await handler(request)

        return checked

    def _sessions(self, request: Request) -> list[str]:
        """Every cookie of our name: another program on this host may have set one."""
        pairs = (one.strip().partition("=") for head in request.headers.getlist("cookie") for one in head.split(";"))
        return [value for name, _, value in pairs if name == self._cookie]

    def _changing(self, handler: Handler) -> Handler:
        async def checked(request: Request) -> Response:
            if not self._entrance.is_from_the_page(request.headers.get("x-page-token")):
                return PlainTextResponse(_STALE, 403)
            if request.headers.get("content-type") != "application/json":
                return PlainTextResponse("Changes come as application/json\n", 415)
            return await handler(request)

        return self._seated(checked)

    # -----------------------------------------------------------------------------------------------------------------
    # What for

    async def _page(self, request: Request) -> Response:
        return HTMLResponse(page(self._entrance.page_token, request.scope.get("who", "")))

    async def _waiting(self, request: Request) -> Response:
        return _unless_known(request, await self._desk.waiting())

    async def _requests(self, request: Request) -> Response:
        ids = [one for one in request.query_params.get("ids", "").split(",") if one]
        return _json(await self._desk.requests(ids[:_REQUESTS_AT_ONCE]))

    async def _decisions(self, request: Request) -> Response:
        choices = choices_in(read_json(await request.body()))
        return _json(await self._desk.decide(choices, request.scope.get("who", "")))

    async def _standing(self, request: Request) -> Response:
        return _unless_known(request, await self._desk.standing())

    async def _revocations(self, request: Request) -> Response:
        standing_id = revocation_in(read_json(await request.body()))
        return _json(await self._desk.revoke(standing_id, request.scope.get("who", "")))

    async def _log(self, request: Request) -> Response:
        before = request.query_params.get("before", "")
        is_number = before.isascii() and before.isdigit() and len(before) < 19
        return _json(await self._desk.log(int(before) if is_number else None))

    async def _verification(self, request: Request) -> Response:
        return _json(await self._desk.verify())


def _json(facts: JsonValue, status: int = 200, **headers: str) -> Response:
    # In ASCII: a store may contain lone surrogates, which have no UTF-8.
    return Response(json.dumps(facts), status, headers, "application/json")


def _unless_known(request: Request, facts: JsonValue) -> Response:
    """304 if the page has this already."""
    tag = f'"{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304)
    return _json(facts, etag=tag)


async def static_file(request: Request) -> Response:
    name = request.url.path.rpartition("/")[2]
    return Response(content_of(name), media_type=FILES[name])


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AgentsError)  # noqa: S101 - what the handler is registered for
    return JSONResponse({"error": error_view(error)}, _STATUS.get(error.code, 500))


async def _failed(request: Request, error: Exception) -> Response:
    _logger.error("the desk failed at %s", request.url.path.rpartition("/")[2], exc_info=error)
    message = "The desk failed; the terminal it was started in says more"
    return JSONResponse({"error": {"code": "", "message": message}}, 500)


# ---------------------------------------------------------------------------------------------------------------------
# The server, on 127.0.0.1 and nowhere else, for a handful of connections


class LoopbackServer(Server):
    """Calls `on_listening` when it accepts connections. `serve` returns when a signal ends the process."""

    def __init__(self, app: ASGIApp, on_listening: Callable[[], object], limits: Limits = LIMITS) -> None:
        most = limits.most_connections
        super().__init__(bounded(app, limits.head_seconds, proxy_headers=False, limit_concurrency=most))
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_listening()


async def serve(desk: Desk, entrance: Entrance, port: int, on_listening: Callable[[str], object]) -> None:
    """Serve until a signal ends the process. Raises `AGENTS-E-RUNNER-CONFIG` for a port that cannot be used."""
    try:
        bound = listening_socket("127.0.0.1", port)
    except AddressInUse as exc:
        raise config_error(exc.args[0]) from None
    with bound as listening:
        taken: int = listening.getsockname()[1]
        link = f"http://127.0.0.1:{taken}/?secret={entrance.link_secret}"
        server = LoopbackServer(application(desk, entrance, taken), lambda: on_listening(link))
        await server.serve(sockets=[listening])
