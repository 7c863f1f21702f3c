"""The HTTP server around an application: uvicorn with limits on request heads, and without its signal handlers.

uvicorn waits for the head of a request without a time limit. Here a connection that sends none in time is closed, so
that silent connections cannot use up all descriptors.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from openai_responses_mcp.domain.texts import Sentence

LARGEST_HEAD = 16 * 1024
# Long, because a client on a busy machine may connect well before it sends its request.
HEAD_SECONDS = 60.0
_SHUTDOWN_SECONDS = 2


class Tls(NamedTuple):
    certificate: str
    key: str


class AddressInUse(Exception):
    """The server cannot listen there; the text says why."""


def listening_socket(host: str, port: int) -> socket.socket:
    """Port 0 picks a free port. Raises `AddressInUse`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )[0]
        # asyncio sets TCP_NODELAY only on sockets that name the protocol.
        listening = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as exc:
        why = getattr(exc, "strerror", None) or exc
        raise AddressInUse(Sentence("{place} cannot be used: {why}", place=f"{host}:{port}", why=why)) from exc
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except OSError as exc:
        listening.close()
        says = "{place} cannot be used: {why}"
        raise AddressInUse(Sentence(says, place=f"{host}:{port}", why=exc.strerror)) from exc
    return listening


def bounded(app: ASGIApp, head_seconds: float, **more: Any) -> Config:
    return Config(
        app,
        # uvicorn creates the protocol, so the setting is an attribute of its class.
        http=type("HeadTimeout", (HeadTimeoutProtocol,), {"head_seconds": head_seconds}),
        ws="none",
        lifespan="off",
        log_config=None,
        # The application does its own logging.
        log_level="critical",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        **more,
    )


class HttpServer(Server):
    """`serve` runs until `should_exit` is set. Creating it raises OSError for a certificate that cannot be used."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tls: Tls | None = None,
        trusted_proxies: Sequence[str] = (),
        head_seconds: float = HEAD_SECONDS,
    ) -> None:
        config = bounded(
            app,
            head_seconds,
            proxy_headers=bool(trusted_proxies),
            forwarded_allow_ips=list(trusted_proxies),
            timeout_keep_alive=60,
            backlog=1024,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        config.load()
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are handled by the caller of the server."""
        yield


class HeadTimeoutProtocol(H11Protocol):
    head_seconds: float
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._update_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _update_deadline(self) -> None:
        # `cycle` is None before the first request. After a reply it is still that of the last request.
        is_waiting_for_a_head = getattr(self.cycle, "response_complete", True)
        if not is_waiting_for_a_head:
            self._cancel_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.head_seconds, self.transport.abort)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
