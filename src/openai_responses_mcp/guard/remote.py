"""A guarded server that is reached by a URL: its transport, and its end in place of the end of a process.

`guard login` logs in at it with a browser, so that the guard can connect to it:

    guard login --url URL [--client-id ID] [--client-secret-env VAR] [--port N] [--no-browser]
    guard logout --url URL

After the login the browser is redirected to a port of this machine. If it runs on another machine (ssh), the address
of that redirect can be pasted into the terminal. Exit 0: logged in, or no login is needed; 1: it failed; 2: wrong usage.
"""

import argparse
import asyncio
import os
import re
import shlex
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from urllib.parse import parse_qs, unquote, urlsplit

from openai_responses_mcp.adapters.remote.credentials import Credentials, LoginFile, SavedLogin
from openai_responses_mcp.adapters.remote.exchange import Advice, Exchange
from openai_responses_mcp.adapters.remote.server import RemoteServer
from openai_responses_mcp.adapters.remote.wire import RemoteAddress, RemoteFault, WrongAddress, remote_address
from openai_responses_mcp.commands.live import fitted
from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.domain.masking import MASK
from openai_responses_mcp.domain.texts import visible
from openai_responses_mcp.gate.secrets.masking import Masking, is_secret_name
from openai_responses_mcp.gate.sql.own_files import own_folder
from openai_responses_mcp.guard.lifetime import ServerProcess
from openai_responses_mcp.guard.servers import HeaderVariable

_QUERY_VALUE = re.compile(r"(?<=[?&])([^=&]+)=[^&]+")


class RemoteEnd(ServerProcess):
    """A remote server does not end by itself: while it is gone, each request is answered with an error."""

    def __init__(self, transport: RemoteServer) -> None:
        self._transport = transport
        self._never: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ended(self) -> int:
        return await self._never

    async def end(self) -> None:
        await self._transport.end()


def connect(
    url: str,
    headers: Sequence[HeaderVariable],
    environ: Mapping[str, str],
    tell: Callable[[str], object],
    longest_bytes: int,
) -> RemoteServer:
    """Inside the running event loop. Nothing is sent before the first message."""
    address = remote_address(url)
    fixed = {one.name.lower(): f"{one.scheme} {environ[one.variable]}".strip() for one in headers}
    file = None if "authorization" in fixed else LoginFile(own_folder(environ), url)
    variables = tuple(one.variable for one in headers) if file is None else ()
    advice = Advice(_shown_login(url, environ), variables)
    return RemoteServer(Exchange(address, Credentials(address, file, _renew, fixed), advice), tell, longest_bytes)


def _shown_login(url: str, environ: Mapping[str, str]) -> str:
    """The command that logs in. It is in errors, which the client and the log keep, so without secrets in the query."""
    hidden = _QUERY_VALUE.sub(
        lambda found: f"{found[1]}={MASK}" if is_secret_name(unquote(found[1])) else found[0], url
    )
    return Masking(environ).text(login_command(hidden))


async def _renew(address: RemoteAddress, file: LoginFile, login: SavedLogin) -> SavedLogin:
    # The official client takes long to import, and most starts do not need it.
    from openai_responses_mcp.adapters.remote.oauth import renew

    return await renew(address, file, login)


PROGRAM = "openai-responses-mcp guard login"
SECONDS_FOR_PERSON = 600.0
_LONGEST_REQUEST = 16 * 1024
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>{title}</title><body style='font:1.2rem system-ui;margin:3rem'>"
    "<h1>{title}</h1><p>{text}</p>"
)
_DONE = _PAGE.format(title="Done", text="You can close this window and go back to the terminal.")
_FAILED = _PAGE.format(title="Not logged in", text="The terminal says why.")


def login_command(url: str) -> str:
    return f"{PROGRAM} --url {shlex.quote(url)}"


def log_in(
    argv: Sequence[str],
    environ: Mapping[str, str] = os.environ,
    is_installed: Callable[[str], object] = find_spec,
    seconds: float = SECONDS_FOR_PERSON,
) -> int:
    arguments = _parser().parse_args(list(argv))
    try:
        address = remote_address(arguments.url)
    except WrongAddress as exc:
        return _fail(f"--url {exc}", 2)
    secret = environ.get(arguments.client_secret_env) if arguments.client_secret_env else None
    if arguments.client_secret_env and not secret:
        return _fail(f"the variable {arguments.client_secret_env} is not set", 2)
    if not is_installed("mcp"):
        return _fail(needs_extra("guard"), 2)
    return asyncio.run(_log_in(address, arguments, secret, environ, seconds))


def log_out(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    parser = argparse.ArgumentParser("openai-responses-mcp guard logout", description="Forget a login.")
    parser.add_argument("--url", metavar="URL", required=True, help="the address of the MCP server")
    url = parser.parse_args(list(argv)).url
    is_forgotten = LoginFile(own_folder(environ), url).forget()
    _say("The login is forgotten." if is_forgotten else "There is no login for this URL.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        PROGRAM, description="Log in at a remote MCP server, for the guard in front of it.", allow_abbrev=False
    )
    parser.add_argument("--url", metavar="URL", required=True, help="the address of the MCP server")
    parser.add_argument("--client-id", metavar="ID", help="a client id of that server (default: register a new one)")
    parser.add_argument("--client-secret-env", metavar="VAR", help="the variable that holds the client's secret")
    parser.add_argument(
        "--port", metavar="N", type=int, default=0, help="local port for the redirect (default: any free one)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the link, but open no browser")
    return parser


async def _log_in(
    address: RemoteAddress,
    arguments: argparse.Namespace,
    secret: str | None,
    environ: Mapping[str, str],
    seconds: float,
) -> int:
    from openai_responses_mcp.adapters.remote import oauth

    file = LoginFile(own_folder(environ), address.url)
    returning = _Returning(seconds)
    try:
        port = await returning.listen(arguments.port)
    except OSError as exc:
        return _fail(f"port {arguments.port} cannot be used: {exc.strerror}", 1)
    redirect_uri = f"http://127.0.0.1:{port}/callback"
    client: dict[str, object] = {}
    if arguments.client_id:
        method = {"client_secret": secret, "token_endpoint_auth_method": "client_secret_post"} if secret else {}
        client = {"client_id": arguments.client_id, "redirect_uris": [redirect_uri], **method}
    is_remote = "SSH_CONNECTION" in environ or arguments.no_browser

    async def open_page(link: str) -> None:
        _say(f"To log in at {address.host}, open this link:\n\n  {visible(link)}\n")
        _say("If the browser runs on another machine: after the login, paste the address it shows here.")
        returning.read_terminal()
        if not is_remote:
            await asyncio.to_thread(webbrowser.open, link)

    try:
        was_asked = await oauth.log_in(
            address, file, SavedLogin(client=client), redirect_uri, open_page, returning.result
        )
    except (RemoteFault, LoginRefused) as exc:
        return _fail(str(exc), 1)
    finally:
        await returning.close()
    _say(f"Logged in at {address.host}." if was_asked else f"{address.host} needs no login, so none was saved.")
    return 0


class LoginRefused(Exception):
    """The browser came back without a code, or not at all."""


class _Returning:
    """Waits for the redirect: on a port of this machine, or pasted into the terminal."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._query: asyncio.Future[str] = self._loop.create_future()
        self._server: asyncio.Server

    async def listen(self, port: int) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_LONGEST_REQUEST)
        taken: int = self._server.sockets[0].getsockname()[1]
        return taken

    async def close(self) -> None:
        self._server.close()
        self._query.cancel()

    def read_terminal(self) -> None:
        threading.Thread(target=self._read_terminal, name="paste", daemon=True).start()

    async def result(self) -> Mapping[str, str]:
        """The query of the redirect, with a code in it. Raises `LoginRefused`."""
        try:
            given = parse_qs(await asyncio.wait_for(self._query, self._seconds))
        except TimeoutError:
            raise LoginRefused(f"the browser did not come back within {self._seconds:.0f} seconds") from None
        said = {name: values[0] for name, values in given.items()}
        if "code" not in said:
            why = said.get("error_description") or said.get("error") or "no reason given"
            raise LoginRefused(f"the login was refused: {why[:200]}")
        return said

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ConnectionError):
            writer.close()
            return
        target = urlsplit(head.split(b" ")[1].decode("ascii", "replace")) if head.count(b" ") > 1 else urlsplit("")
        is_back = head.startswith(b"GET ") and target.path == "/callback"
        page = (_DONE if "code" in parse_qs(target.query) else _FAILED).encode() if is_back else b""
        status = b"200 OK" if is_back else b"404 Not Found"
        writer.write(
            b"HTTP/1.1 %b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n"
            b"Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\r\n%b" % (status, len(page), page)
        )
        writer.close()
        if is_back:
            self._take(target.query)

    def _take(self, query: str) -> None:
        with suppress(asyncio.InvalidStateError):  # The first redirect counts.
            self._query.set_result(query)

    def _read_terminal(self) -> None:
        """Read until a line is an address with a code or an error. The thread ends with the process."""
        for line in sys.stdin:
            query = urlsplit(line.strip()).query
            if {"code", "error"} & set(parse_qs(query)):
                with suppress(RuntimeError):  # The loop is closed: the command has ended.
                    self._loop.call_soon_threadsafe(self._take, query)
                return


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _fail(reason: str, code: int) -> int:
    sys.stderr.write(fitted(f"{PROGRAM}: {visible(reason)}", sys.stderr))
    return code
