"""The stand-in for the API on loopback: its routes on aiohttp.web, streamed and not, on the running event loop."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from openai_responses_mcp.rehearsal.api import RehearsedApi, RehearsedRun, check_key, read_json, read_starting_after
from openai_responses_mcp.rehearsal.wire import STREAM_HEADERS, ApiError, encode_event, encode_json

MAX_BODY_BYTES = 32 * 1024 * 1024


def build_app(api: RehearsedApi) -> web.Application:
    routes = _Routes(api)
    app = web.Application(middlewares=[_as_the_api_refuses], client_max_size=MAX_BODY_BYTES)
    app.on_response_prepare.append(_name_the_request)
    app.on_cleanup.append(routes.stop)
    app.router.add_post("/v1/responses", routes.create)
    app.router.add_get("/v1/responses/{id}", routes.retrieve, allow_head=False)
    app.router.add_post("/v1/responses/{id}/cancel", routes.cancel)
    return app


class _Routes:
    def __init__(self, api: RehearsedApi) -> None:
        self._api = api

    async def create(self, request: web.Request) -> web.StreamResponse:
        asked = read_json(await request.read())
        run = await self._api.create(asked)
        return await _stream(request, run) if asked.get("stream") else _json(run.response)

    async def retrieve(self, request: web.Request) -> web.StreamResponse:
        response_id = request.match_info["id"]
        if request.query.get("stream") != "true":
            return _json(self._api.runs.find(response_id).response)
        starting_after = read_starting_after(request.query.get("starting_after"))
        return await _stream(request, self._api.runs.find_streamed(response_id), starting_after)

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        return _json(self._api.runs.cancel(request.match_info["id"]).response)

    async def stop(self, app: web.Application) -> None:
        self._api.runs.stop()


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=encode_json(value), content_type="application/json")


async def _stream(request: web.Request, run: RehearsedRun, starting_after: int = -1) -> web.StreamResponse:
    reply = web.StreamResponse(headers=STREAM_HEADERS)
    await reply.prepare(request)
    async for batch in run.follow(starting_after):
        await reply.write(b"".join(map(encode_event, batch)))
    return reply


@web.middleware
async def _as_the_api_refuses(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        if request.match_info.http_exception is None:
            check_key(request.headers.get("authorization", ""))
        return await handler(request)
    except ApiError as exc:
        return _json(exc.body(), exc.status)
    except web.HTTPException as exc:
        return _json(ApiError(exc.status, f"{exc.reason} ({request.method} {request.path})").body(), exc.status)


async def _name_the_request(request: web.Request, reply: web.StreamResponse) -> None:
    reply.headers["x-request-id"] = f"req_{secrets.token_hex(16)}"


_HOST = "127.0.0.1"
_CLOSE_SECONDS = 0.1  # how long an answer under way may still take; zero would mean for ever


class RehearsalServer:
    """`known` has earlier questions by response id, so that their conversations can continue."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._runner = web.AppRunner(
            build_app(RehearsedApi(known or {})),
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
