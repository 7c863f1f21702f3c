"""The API over HTTP: its routes on aiohttp.web, streamed and not, and its errors in its own format."""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from openai_responses_mcp.rehearsal.api_errors import ApiError
from openai_responses_mcp.rehearsal.request_checks import check_key, read_json, read_starting_after
from openai_responses_mcp.rehearsal.responses_api import ResponsesApi
from openai_responses_mcp.rehearsal.runs import Run
from openai_responses_mcp.rehearsal.stream_events import STREAM_HEADERS, encode_event, encode_json

MAX_BODY_BYTES = 32 * 1024 * 1024


def build_app(api: ResponsesApi) -> web.Application:
    routes = _Routes(api)
    app = web.Application(middlewares=[_as_the_api_refuses], client_max_size=MAX_BODY_BYTES)
    app.on_response_prepare.append(_name_the_request)
    app.on_cleanup.append(routes.stop)
    app.router.add_post("/v1/responses", routes.create)
    app.router.add_get("/v1/responses/{id}", routes.retrieve, allow_head=False)
    app.router.add_post("/v1/responses/{id}/cancel", routes.cancel)
    return app


class _Routes:
    def __init__(self, api: ResponsesApi) -> None:
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


async def _stream(request: web.Request, run: Run, starting_after: int = -1) -> web.StreamResponse:
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
