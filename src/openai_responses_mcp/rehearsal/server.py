"""The stand-in for the API on loopback, on the running event loop."""

from collections.abc import Mapping

from aiohttp import web

from openai_responses_mcp.rehearsal.responses_api import ResponsesApi
from openai_responses_mcp.rehearsal.routes import build_app

_HOST = "127.0.0.1"
_CLOSE_SECONDS = 0.1  # how long an answer under way may still take; zero would mean for ever


class RehearsalServer:
    """`known` has what was asked before, by the ids of the responses: such a conversation can go on."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        api = ResponsesApi()
        for response_id, question in (known or {}).items():
            api.remember(response_id, question)
        self._runner = web.AppRunner(
            build_app(api),
            access_log=None,
            handler_cancellation=True,  # a client that has left needs no answer
            shutdown_timeout=_CLOSE_SECONDS,
        )

    async def start(self) -> str:
        """Listen on a free port; gives the base URL for clients."""
        await self._runner.setup()
        await web.TCPSite(self._runner, _HOST, 0).start()
        port = self._runner.addresses[0][1]
        return f"http://{_HOST}:{port}/v1"

    async def close(self) -> None:
        """Stop listening and drop every connection; safe to call twice."""
        await self._runner.cleanup()
