"""An HTTP server on 127.0.0.1 and nowhere else, for one application and a handful of connections.

uvicorn waits for the head of a request for as long as it takes. Here a connection that does not say what it wants in
time is closed, so that a few silent ones cannot keep everybody else out.
"""

import socket
from collections.abc import Callable

from starlette.types import ASGIApp
from uvicorn import Config, Server

from openai_responses_mcp.adapters.http.serving import PromptProtocol
from openai_responses_mcp.desk.page.access import LIMITS, Limits
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.errors import AgentsError

_LARGEST_HEAD = 16 * 1024
_LEAVING_SECONDS = 2


def listening_socket(port: int) -> socket.socket:
    """Port 0 takes one that is free. Raises `AGENTS-E-RUNNER-CONFIG`."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as exc:
        listening.close()
        reason = exc.strerror if isinstance(exc, OSError) else Sentence("a port is a number from 0 to 65535")
        raise AgentsError(
            "AGENTS-E-RUNNER-CONFIG",
            Sentence("Port {port} of 127.0.0.1 cannot be used: {reason}", port=port, reason=reason),
        ) from None
    return listening


class LoopbackServer(Server):
    """`on_listening` is called once connections are taken. `serve` returns when a signal ends the process."""

    def __init__(self, app: ASGIApp, on_listening: Callable[[], object], limits: Limits = LIMITS) -> None:
        config = Config(
            app,
            http=_prompt(limits.head_seconds),
            ws="none",
            lifespan="off",
            log_config=None,
            # What is worth telling, the application tells.
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=limits.most_connections,
            h11_max_incomplete_event_size=_LARGEST_HEAD,
            timeout_graceful_shutdown=_LEAVING_SECONDS,
        )
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_listening()


def _prompt(seconds: float) -> type[PromptProtocol]:
    """uvicorn makes the protocol by itself, and gives it nothing of ours."""

    class Prompt(PromptProtocol):
        head_seconds = seconds

    return Prompt
