"""A chat-completions server for tests that can play each provider: its addresses, headers, refusals and lists."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import Ending, RecordedRequest, Reply

KEY = "made-up-key-0123456789"

PATHS = {
    "openai": "/v1",
    "ollama": "/v1",
    "lmstudio": "/v1",
    "gemini": "/v1beta/openai",
    "anthropic": "/v1",
    "openrouter": "/api/v1",
}

GEMINI_FIELDS = {
    "model", "messages", "tools", "tool_choice", "stream", "stream_options", "temperature", "top_p",
    "max_tokens", "max_completion_tokens", "response_format", "reasoning_effort", "stop", "n",
}  # fmt: skip
GEMINI_KEYWORDS = {
    "type", "properties", "required", "description", "title", "enum", "items", "anyOf", "default",
    "minimum", "maximum", "format", "nullable",
}  # fmt: skip


def calls(name: str, args: dict[str, Any], call_id: str = "call_1") -> dict[str, Any]:
    """A reply in which the model calls a tool."""
    function = {"name": name, "arguments": json.dumps(args)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


class ChatStandIn:
    """Says what was enqueued: a text, a message from `calls`, a `Reply`, or a wait that never ends (`None`)."""

    def __init__(self, provider: str = "openai") -> None:
        self.provider = provider
        self.server = HttpServer(self._handle, keep_requests=100)
        self.models: Any = None
        self.replies: deque[Any] = deque()
        self.origin = ""

    async def __aenter__(self) -> "ChatStandIn":
        self.origin = (await self.server.start()).removesuffix("/v1")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.server.close()

    @property
    def base_url(self) -> str:
        return self.origin + PATHS[self.provider]

    @property
    def requests(self) -> list[RecordedRequest]:
        return self.server.requests

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.json for request in self.requests if request.method == "POST"]

    def enqueue(self, *replies: Any) -> None:
        self.replies.extend(replies)

    async def _handle(self, request: RecordedRequest) -> Reply:
        if request.path == f"{PATHS[self.provider]}/models":
            return await self._list(request)
        if request.path != f"{PATHS[self.provider]}/chat/completions":
            return refusal(404, f"no such path: {request.path}")
        if request.headers.get("authorization") != f"Bearer {KEY}" and self.provider not in ("ollama", "lmstudio"):
            return refusal(401, f"Incorrect API key provided: {request.headers.get('authorization')}")
        refuse = REFUSALS.get(self.provider)
        problem = refuse(request.json) if refuse else None
        if problem:
            return refusal(400, problem)
        said = self.replies.popleft() if self.replies else "Hello."
        if said is None:
            await asyncio.Event().wait()
        if isinstance(said, Reply):
            return said
        message = said if isinstance(said, dict) else {"role": "assistant", "content": said}
        if request.json.get("stream"):
            return Reply(200, {"content-type": "text/event-stream"}, _events(message, request.json["model"]))
        return as_json({"id": "c", "object": "chat.completion", "created": 0, "model": request.json["model"],
                        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                        "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}})  # fmt: skip

    async def _list(self, request: RecordedRequest) -> Reply:
        if self.provider == "anthropic":
            is_let_in = request.headers.get("x-api-key") == KEY and "anthropic-version" in request.headers
        else:
            is_let_in = (
                self.provider in ("ollama", "lmstudio") or request.headers.get("authorization") == f"Bearer {KEY}"
            )
        if not is_let_in:
            return refusal(401, "no key")
        if isinstance(self.models, Reply):
            return self.models
        if self.models is None:
            await asyncio.Event().wait()
        prefix = "models/" if self.provider == "gemini" else ""
        return as_json({"object": "list", "data": [{"id": prefix + name} for name in self.models]})


def as_json(value: Any, status: int = 200) -> Reply:
    return Reply(status, {"content-type": "application/json"}, json.dumps(value).encode())


def refusal(status: int, message: str) -> Reply:
    return as_json({"error": {"message": message, "type": "invalid_request_error"}}, status)


HANG_UP = Reply(ending=Ending.HANG_UP)


async def _events(message: dict[str, Any], model: str) -> AsyncIterator[bytes]:
    for chunk in _chunks(message):
        event = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": model, **chunk}
        yield f"data: {json.dumps(event)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _chunks(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    delta = dict(message)
    if delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": number, **call} for number, call in enumerate(delta["tool_calls"])]
    yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}}


# ---------------------------------------------------------------------------------------------------------------------
# What the real ones refuse


def _lmstudio(body: dict[str, Any]) -> str | None:
    if isinstance(body.get("tool_choice"), dict):
        return "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
    return None


def _gemini(body: dict[str, Any]) -> str | None:
    unknown = sorted(set(body) - GEMINI_FIELDS)
    for tool in body.get("tools", ()):
        unknown += sorted(set(tool["function"]) - {"name", "description", "parameters"})
        unknown += _unknown_keywords(tool["function"].get("parameters", {}))
    if unknown:
        return "Invalid JSON payload received. " + " ".join(
            f'Unknown name "{name}": Cannot find field.' for name in unknown
        )
    return None


def _unknown_keywords(schema: dict[str, Any]) -> list[str]:
    unknown = sorted(set(schema) - GEMINI_KEYWORDS)
    for inner in schema.get("properties", {}).values():
        unknown += _unknown_keywords(inner)
    return unknown + (_unknown_keywords(schema["items"]) if "items" in schema else [])


def _anthropic(body: dict[str, Any]) -> str | None:
    return "temperature: range 0..1" if body.get("temperature", 0) > 1 else None


REFUSALS: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "lmstudio": _lmstudio,
    "gemini": _gemini,
    "anthropic": _anthropic,
}
