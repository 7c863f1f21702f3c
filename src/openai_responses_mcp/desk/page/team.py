"""The desk for a team: each person signs in with their token, and their name is in the record of a decision.

    GET  /                a form for the token
    POST /                sets the cookie, leads to the page
    POST /ROOM/sign-out   ends the session

The rest is as on the desk for one person. Tokens are those of the server over HTTP: `http.tokens_env`, or access
tokens of `http.issuer`. The token is checked with every request, so the session ends when it expires.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from openai_responses_mcp.adapters.http.access import AllowedHosts, Callers, Issuer, IssuerKeys, Unauthorized
from openai_responses_mcp.adapters.http.serving import HttpServer, listening_socket
from openai_responses_mcp.adapters.process import EXIT_CODES, stopped_by_signal
from openai_responses_mcp.commands.serve_http import HttpOptions
from openai_responses_mcp.config.settings import HttpSettings
from openai_responses_mcp.desk.page.access import HEADERS, LIMITS, CheckedRequests, Entrance
from openai_responses_mcp.desk.page.application import Handler, Rooms, static_file, welcome
from openai_responses_mcp.desk.page.desk import Desk
from openai_responses_mcp.desk.words import Words

_SESSION_SECONDS = 12 * 3600.0
_MOST_SESSIONS = 1000
_LEAVING_SECONDS = 3.0

_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": HEADERS["Content-Security-Policy"].replace("form-action 'none'", "form-action 'self'"),
    # Without a referrer, browsers send a form with the origin null.
    "Referrer-Policy": "same-origin",
}


_FORM = """<!doctype html>
<html lang="{language}">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>{title}</title>
    <link rel="icon" href="/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/desk.css">
  </head>
  <body>
    <main>
      <form class="signing-in" method="post" action="/">
        <h1>{title}</h1>
        {problem}
        <label class="field">{token}
          <input name="token" type="password" autocomplete="current-password" required autofocus></label>
        <button class="approve">{sign_in}</button>
      </form>
    </main>
  </body>
</html>
"""


def _form(request: Request, *, is_refused: bool = False) -> Response:
    words = Words("ja" if request.headers.get("accept-language", "").lower().startswith("ja") else "en")
    problem = f'<p class="problem" role="alert">{words("This token is not valid.")}</p>' if is_refused else ""
    title, token, sign_in = words("Approval desk"), words("Your token"), words("Sign in")
    text = _FORM.format(language=words.language, title=title, problem=problem, token=token, sign_in=sign_in)
    return HTMLResponse(text, 401 if is_refused else 200)


async def _to_sign_in(request: Request) -> Response:
    """A browser is redirected to the form; a request of the page gets 403."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/", 303)
    return PlainTextResponse("Sign in first\n", 403)


class TeamSessions:
    """Who has signed in, with which token; in memory only."""

    def __init__(self, callers: Callers, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._callers = callers
        self._monotonic = monotonic
        self._tokens: dict[str, tuple[str, float]] = {}

    async def enter(self, token: str) -> str | None:
        """A session for a valid token."""
        if await self._name_of(token) is None:
            return None
        while len(self._tokens) >= _MOST_SESSIONS:
            del self._tokens[next(iter(self._tokens))]
        session = secrets.token_urlsafe(32)
        self._tokens[session] = token, self._monotonic() + _SESSION_SECONDS
        return session

    async def name_in(self, session: str) -> str | None:
        token, until = self._tokens.get(session, ("", 0.0))
        name = await self._name_of(token) if self._monotonic() < until else None
        if name is None:
            self.leave(session)
        return name

    def leave(self, session: str) -> None:
        self._tokens.pop(session, None)

    async def _name_of(self, token: str) -> str | None:
        try:
            return await self._callers.caller([f"Bearer {token}"])
        except Unauthorized:
            return None


class _TeamRooms(Rooms):
    entering = ("GET", "POST")

    def __init__(self, desk: Desk, sessions: TeamSessions, *, is_secure: bool) -> None:
        super().__init__(desk, Entrance(), cookie="desk")
        self._people = sessions
        self._is_secure = is_secure

    def routes(self) -> Starlette:
        app = super().routes()
        leaving = self._changing(self._sign_out)
        app.routes.extend(
            [
                *(Route(f"/{name}", static_file, methods=["GET"]) for name in ("desk.css", "icon.svg")),
                Route(f"/{self._entrance.room}/sign-out", leaving, methods=["POST"]),
                # Also a bookmark of an earlier desk.
                Route("/{rest:path}", _to_sign_in, methods=["GET"]),
            ]
        )
        return app

    async def _enter(self, request: Request) -> Response:
        if request.method != "POST":
            return _form(request)
        given = parse_qs((await request.body()).decode("utf-8", "replace")).get("token", [""])
        session = await self._people.enter(given[0].strip())
        if session is None:
            return _form(request, is_refused=True)
        entered = HTMLResponse(welcome(self._entrance.room))
        entered.set_cookie(
            self._cookie,
            session,
            path=f"/{self._entrance.room}/",
            httponly=True,
            samesite="strict",
            secure=self._is_secure,
        )
        return entered

    def _seated(self, handler: Handler) -> Handler:
        async def checked(request: Request) -> Response:
            for session in self._sessions(request):
                name = await self._people.name_in(session)
                if name is not None:
                    request.scope["who"] = name
                    return await handler(request)
            return await _to_sign_in(request)

        return checked

    async def _sign_out(self, request: Request) -> Response:
        for session in self._sessions(request):
            self._people.leave(session)
        return JSONResponse({})


class _TeamRequests(CheckedRequests):
    """Accepts the names of this machine and the public address."""

    headers = _HEADERS

    def __init__(self, app: ASGIApp, hosts: AllowedHosts) -> None:
        super().__init__(app, "", LIMITS)
        self._hosts = hosts

    def _is_named_right(self, headers: Headers) -> bool:
        return self._hosts.is_open_to(headers.getlist("host"), [])

    def _is_origin(self, headers: Headers, origins: list[str]) -> bool:
        if len(origins) != 1 or not self._hosts.is_open_to(headers.getlist("host"), origins):
            return False
        return urlsplit(origins[0]).netloc.lower() == headers.get("host", "").lower()


def team_application(desk: Desk, hosts: AllowedHosts, callers: Callers, *, is_secure: bool = False) -> ASGIApp:
    return _TeamRequests(_TeamRooms(desk, TeamSessions(callers), is_secure=is_secure).routes(), hosts)


async def serve_team(
    desk: Desk,
    options: HttpOptions,
    settings: HttpSettings,
    tokens: dict[str, str],
    on_listening: Callable[[str], object],
) -> int:
    """Serve until a signal ends the process; the exit code. Raises `AddressInUse`, OSError for a certificate that is unfit."""
    stopped = stopped_by_signal()
    listening = listening_socket(options.host, options.port)
    address = options.address(listening.getsockname()[1])
    issuer = Issuer(settings.issuer, settings.audience) if settings.issuer and settings.audience else None
    link = settings.public_url or f"{address}/"
    app = team_application(
        desk,
        AllowedHosts(address, settings.public_url),
        Callers(tokens, IssuerKeys(issuer) if issuer else None),
        is_secure=link.startswith("https"),
    )
    server = HttpServer(app, tls=options.tls, trusted_proxies=settings.trusted_proxies)
    running = asyncio.ensure_future(server.serve(sockets=[listening]))
    await asyncio.to_thread(partial(on_listening, f"{urlsplit(link).scheme}://{urlsplit(link).netloc}/"))
    await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)  # type: ignore[type-var]
    server.should_exit = True
    await asyncio.wait({running}, timeout=_LEAVING_SECONDS)
    code = stopped.result() if stopped.done() else 1
    return 0 if code == EXIT_CODES["SIGTERM"] else code
