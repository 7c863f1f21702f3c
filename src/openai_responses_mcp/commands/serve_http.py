"""`--http`: serves MCP clients over HTTP until a signal comes.

SIGTERM lets calls in flight finish and ends with 0. An interrupt, or a second signal, ends at once.
"""

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from openai_responses_mcp.adapters.http.access import (
    MCP_PATH,
    AllowedHosts,
    Callers,
    Issuer,
    IssuerKeys,
    is_safe_url,
)
from openai_responses_mcp.adapters.http.application import McpOverHttp, Serve
from openai_responses_mcp.adapters.http.serving import AddressInUse, HttpServer, Tls, listening_socket
from openai_responses_mcp.adapters.process import EXIT_CODES, shortfalls, stopped_by_signal
from openai_responses_mcp.adapters.remote.wire import is_loopback
from openai_responses_mcp.commands.usage import PROGRAM
from openai_responses_mcp.config.loading import ConfigError as ConfigError
from openai_responses_mcp.config.loading import Configuration, Flags, load
from openai_responses_mcp.config.settings import HttpSettings
from openai_responses_mcp.domain.cancellation import CallsInFlight
from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.domain.ports import Logger, Transport
from openai_responses_mcp.domain.texts import Sentence, about, linked
from openai_responses_mcp.server.dispatch import Connection, Dispatcher
from openai_responses_mcp.server.eras import HTTP_HANDSHAKES
from openai_responses_mcp.start import Basis, basis_of, prepared, settle

if TYPE_CHECKING:
    from openai_responses_mcp.server.calling import Caller

USUAL_HOST = "127.0.0.1"
USUAL_DRAIN_SECONDS = 25.0
_LONGEST_NAME = 64
_LONGEST_DRAIN_SECONDS = 3600
# For uvicorn to close its connections.
_LEAVING_SECONDS = 3.0


class HttpOptions(NamedTuple):
    """Where to serve, and how to end."""

    host: str
    port: int
    drain_seconds: float = USUAL_DRAIN_SECONDS
    tls: Tls | None = None

    def address(self, port: int) -> str:
        """Without a path. `port` is the one that was taken, where 0 was asked for."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{port}"


def http_options(where: str, drain: str | None, tls_cert: str | None, tls_key: str | None) -> HttpOptions:
    """From the command line. Raises ValueError with the reason."""
    host, _, port = where.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError(Sentence("--http takes [HOST:]PORT (found {found})", found=where))
    try:
        drain_seconds = USUAL_DRAIN_SECONDS if drain is None else float(drain)
    except ValueError:
        drain_seconds = -1
    if not 0 <= drain_seconds <= _LONGEST_DRAIN_SECONDS:
        raise ValueError(
            Sentence("--drain takes 0 to {most} seconds (found {found})", most=_LONGEST_DRAIN_SECONDS, found=drain)
        )
    if (tls_cert is None) != (tls_key is None):
        raise ValueError(Sentence("--tls-cert and --tls-key go together"))
    tls = Tls(tls_cert, tls_key) if tls_cert and tls_key else None
    return HttpOptions(host.strip("[]") or USUAL_HOST, int(port), drain_seconds, tls)


def http_settings(config: str | None, environ: Mapping[str, str], say: Callable[[str], str] = str) -> HttpSettings:
    """Those of the configuration file, for the guard and the desk. Raises `ConfigError`."""
    return load(Flags(config=config), environ, say).settings.http


def tokens_in(text: str) -> dict[str, str]:
    """`name:token`, one per line. Raises ValueError, which never contains a token."""
    tokens: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, has_token, token = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not has_token or not token or not token.isascii() or not 1 <= len(name) <= _LONGEST_NAME:
            raise ValueError(Sentence("line {number} is not name:token", number=number))
        if name in tokens or token in tokens.values():
            raise ValueError(Sentence("line {number} has a name or a token that is there already", number=number))
        tokens[name] = token
    if not tokens:
        raise ValueError(Sentence("it has no name:token lines"))
    return tokens


def serve_http(
    options: HttpOptions, configuration: Configuration, environ: Mapping[str, str], *, rehearses: bool
) -> int:
    """The exit code. Raises `ConfigError` for settings that are not safe to serve with."""
    settings = configuration.settings.http
    tokens = checked_tokens(options, settings, environ)
    check_usage_store(settings, environ)
    basis = basis_of(configuration, environ, tokens.values())
    for shortfall in shortfalls():
        basis.logger.warning(shortfall)
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(_serve(options, settings, tokens, basis, rehearses=rehearses))
    basis.logger.close()
    return code


def checked_tokens(options: HttpOptions, settings: HttpSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """The tokens by the name of their owner. Raises `ConfigError`."""
    problems: list[str] = []
    tokens: dict[str, str] = {}
    if settings.tokens_env is not None:
        try:
            tokens = tokens_in(environ.get(settings.tokens_env, ""))
        except ValueError as exc:
            problems.append(about(f"http.tokens_env: {settings.tokens_env}", exc.args[0]))
    if not is_loopback(options.host):
        outside = "{host} can be reached from outside: set {keys}"
        if settings.tokens_env is None and settings.issuer is None:
            keys = linked("{first} or {second}", ["http.tokens_env", "http.issuer"])
            problems.append(Sentence(outside, host=options.host, keys=keys))
        if settings.public_url is None:
            problems.append(Sentence(outside, host=options.host, keys="http.public_url"))
    if settings.issuer is not None:
        if not is_safe_url(settings.issuer):
            problems.append(Sentence("http.issuer has to be https, or http on this machine"))
        if settings.audience is None:
            problems.append(Sentence("http.issuer needs http.audience, the audience of its tokens"))
    if problems:
        raise ConfigError(tuple(problems))
    return tokens


def check_usage_store(settings: HttpSettings, environ: Mapping[str, str]) -> None:
    """Raises `ConfigError` for a store in which limits cannot be counted."""
    store = environ.get("AGENTS_STORE", "")
    if not store or not any(settings.limits):
        return
    try:
        from openai_responses_mcp.gate.errors import AgentsError
        from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
    except ModuleNotFoundError as exc:
        raise ConfigError((about("AGENTS_STORE", needs_extra("guard")),)) from exc
    try:
        SqlDatabase(store)
    except (AgentsError, ModuleNotFoundError) as exc:
        raise ConfigError((f"AGENTS_STORE: {exc}",)) from exc


async def _serve(
    options: HttpOptions, settings: HttpSettings, tokens: Mapping[str, str], basis: Basis, *, rehearses: bool
) -> int:
    stopped = stopped_by_signal()
    if rehearses:
        basis = await basis.rehearsed()
    # Load everything first: this server starts before its clients.
    is_ending, server, logger = asyncio.Event(), basis.configuration.settings.server, basis.logger
    container = await asyncio.to_thread(basis.load_container, is_observed=True, is_ending=is_ending, is_over_http=True)
    caller = await asyncio.to_thread(prepared, container)

    async def load_caller() -> "Caller":
        return caller

    async def serve(transport: Transport) -> None:
        dispatcher = Dispatcher(
            CallsInFlight(logger),
            logger,
            server.tools,
            load_caller=load_caller,
            hand_over=server.hand_over_after_s,
            handshakes=HTTP_HANDSHAKES,
        )
        await Connection(transport, dispatcher).serve()

    def warn_of_missing_key(_address: str) -> None:
        if not basis.api_key.strip():
            variable = basis.configuration.settings.openai.api_key_env
            logger.warning(f"{variable} is not set: calls will fail until this server is started with it")

    code = await serve_until_stopped(
        options,
        settings,
        tokens,
        serve,
        logger,
        stopped,
        on_draining=is_ending.set,
        on_drained=container.openai_gateway().let_all_go,
        on_listening=warn_of_missing_key,
    )
    await settle(container)
    return code


async def serve_until_stopped(
    options: HttpOptions,
    settings: HttpSettings,
    tokens: Mapping[str, str],
    serve: Serve,
    logger: Logger,
    stopped: "asyncio.Future[int]",
    *,
    on_draining: Callable[[], object] = lambda: None,
    on_drained: Callable[[], object] = lambda: None,
    on_listening: Callable[[str], object] = lambda address: None,
    admit: Callable[[str], bool] = lambda key: True,
    on_reply: Callable[[str], object] = lambda key: None,
    program: str = PROGRAM,
) -> int:
    """The exit code. `on_drained` is called when the time for calls in flight is over, before the rest is dropped."""
    try:
        listening = listening_socket(options.host, options.port)
    except AddressInUse as exc:
        raise ConfigError((exc.args[0],)) from exc
    address = options.address(listening.getsockname()[1])
    issuer = Issuer(settings.issuer, settings.audience) if settings.issuer and settings.audience else None
    mcp = McpOverHttp(
        serve,
        AllowedHosts(address, settings.public_url),
        Callers(tokens, IssuerKeys(issuer) if issuer else None),
        logger,
        issuer=issuer,
        admit=admit,
        on_reply=on_reply,
    )
    try:
        server = HttpServer(mcp.app, tls=options.tls, trusted_proxies=settings.trusted_proxies)
    except (OSError, ssl.SSLError) as exc:
        listening.close()
        raise ConfigError((f"--tls-cert, --tls-key: {exc.strerror or exc}",)) from exc
    running = asyncio.ensure_future(server.serve(sockets=[listening]))
    os.write(2, f"{program}: serving on {address}{MCP_PATH}\n".encode())
    on_listening(address.partition("://")[2])
    ends: set[asyncio.Future[Any]] = {running, stopped}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    on_draining()
    code = stopped.result() if stopped.done() else 1
    # Another signal ends it at once.
    hurry = stopped_by_signal()
    await mcp.drain(options.drain_seconds if code == EXIT_CODES["SIGTERM"] else 0, hurry, on_drained)
    server.should_exit = True
    await asyncio.wait({running}, timeout=_LEAVING_SECONDS)
    return 0 if code == EXIT_CODES["SIGTERM"] else code
