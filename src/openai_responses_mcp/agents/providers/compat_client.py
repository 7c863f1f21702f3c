"""The vendor's client for every provider: what it sends, how much it reads, and how its errors are mapped."""

import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import openai
from agents import UserError
from openai import AsyncOpenAI

from openai_responses_mcp.agents.providers.settings import TIMEOUT_VARIABLE, CompatModelConfig, Quirks
from openai_responses_mcp.domain.masking import SecretMask
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue

LONGEST_REPLY_BYTES = 32 * 1024 * 1024

# Never matches the text of a model, where quotes are escaped.
_IS_LAST = re.compile(
    r'"finish_reason"\s*:\s*"|"type"\s*:\s*"(?:response\.(?:completed|incomplete|failed)|error)"|^\[DONE\]'
)


class ReplyTooLong(ValueError):
    def __init__(self) -> None:
        super().__init__(f"more than {LONGEST_REPLY_BYTES} bytes")


class StreamCutShort(ValueError):
    def __init__(self) -> None:
        super().__init__("the stream ended before the answer did")


async def bound_body(response: httpx2.Response) -> None:
    """Hook of the HTTP client. Counts bytes after decompression: a few kilobytes may become gigabytes."""
    # Not the charset that the reply names: some codecs raise errors of their own.
    response.encoding = "utf-8"
    packed = httpx2.Response(response.status_code, headers=response.headers, stream=response.stream)
    response.headers.pop("content-encoding", None)
    response.stream = _BoundedStream(packed.aiter_bytes(), packed.aclose)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, chunks: AsyncIterable[bytes], close: Callable[[], Awaitable[None]]) -> None:
        self._chunks = chunks
        self._close = close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._chunks:
            count += len(chunk)
            if count > LONGEST_REPLY_BYTES:
                raise ReplyTooLong
            yield chunk

    async def aclose(self) -> None:
        await self._close()


class WholeStreams:
    """Wraps the vendor's decoder of server-sent events: raises if a stream ends before its answer does.

    When a provider crashes, it or its proxy often closes the connection cleanly.
    """

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    async def aiter_bytes(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        is_whole = False
        async for event in self._decoder.aiter_bytes(chunks):
            is_whole = is_whole or _IS_LAST.search(event.data) is not None
            yield event
        if not is_whole:
            raise StreamCutShort


LONGEST_REASON = 300

_CONFIG, _COMPAT, RUNNER_CODE = "AGENTS-E-PROVIDER-CONFIG", "AGENTS-E-COMPAT-UNSUPPORTED", "AGENTS-E-RUNNER"

FAILURES: tuple[tuple[type[Exception], str, str, str], ...] = (
    (TimeoutError, _CONFIG, "timeout", f"did not answer in time; raise {TIMEOUT_VARIABLE} or try again"),
    (openai.APITimeoutError, _CONFIG, "timeout", f"did not answer in time; raise {TIMEOUT_VARIABLE} or try again"),
    (openai.APIConnectionError, _CONFIG, "network_error", "cannot be reached; check {base_url_variable}"),
    (openai.AuthenticationError, _CONFIG, "key", "does not take the key; check {key_variable}"),
    (openai.PermissionDeniedError, _CONFIG, "key", "does not let this key do that; check {key_variable}"),
    (
        openai.NotFoundError,
        _CONFIG,
        "not_found",
        "knows no such model or address; check {model_variable}, {base_url_variable}",
    ),
    (openai.BadRequestError, _COMPAT, "refused", "refuses the request; change what it names, or use another model"),
    (openai.UnprocessableEntityError, _COMPAT, "refused", "refuses the request; change what it names"),
    (UserError, _COMPAT, "refused", "cannot be asked that; change the agent or its model settings"),
    (openai.RateLimitError, RUNNER_CODE, "overloaded", "is asked too often; wait, or raise its limits"),
    (openai.APIStatusError, RUNNER_CODE, "http_error", "failed; try again, or check {base_url_variable}"),
    (openai.APIError, RUNNER_CODE, "broken", "broke off or sent what cannot be read; try again"),
    (openai.OpenAIError, RUNNER_CODE, "broken", "sent what cannot be read; check {base_url_variable}"),
    (httpx2.TimeoutException, _CONFIG, "timeout", f"stopped answering; raise {TIMEOUT_VARIABLE} or try again"),
    (httpx2.HTTPError, RUNNER_CODE, "broken", "broke off; try again"),
    (StreamCutShort, RUNNER_CODE, "broken", "stopped in the middle of its answer; try again"),
    (ReplyTooLong, RUNNER_CODE, "broken", "sends more than any answer can be; check {base_url_variable}"),
    (ValueError, RUNNER_CODE, "broken", "sent what cannot be read; check {base_url_variable}"),
)
"""The first class that matches is used. ValueError covers JSON and UTF-8 that cannot be decoded."""


def failure_from(exc: Exception, config: CompatModelConfig, mask: SecretMask) -> AgentsError:
    if isinstance(exc.__cause__, ReplyTooLong):
        # The vendor reports it as a failed connection.
        exc = exc.__cause__
    code, reason, said = next((code, reason, said) for kind, code, reason, said in FAILURES if isinstance(exc, kind))
    status = getattr(exc, "status_code", None)
    detail = mask(str(exc))[:LONGEST_REASON]
    names = ("key_variable", "base_url_variable", "model_variable")
    message = f"{config.provider} {said.format(**{name: getattr(config, name) for name in names})}"
    facts = {"provider": config.provider, "reason": reason, **({} if status is None else {"status": status})}
    failure = AgentsError(code, f"{message} ({detail})" if detail else message, details=facts)
    failure.__cause__ = exc if mask(f"{exc!r} {exc}") == f"{exc!r} {exc}" else None
    return failure


class _Client(AsyncOpenAI):
    """Removes the headers that the vendor's client reads from the environment, unless it talks to OpenAI."""

    quirks = Quirks()
    is_for_openai = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not self.is_for_openai:
            self.organization = None
            self.project = None
            self._custom_headers = dict(options.get("default_headers") or {})

    async def _prepare_options(self, options: Any) -> Any:
        options = await super()._prepare_options(options)
        if isinstance(options.json_data, dict):
            options.json_data = fitting_body(options.json_data, self.quirks)
        return options

    def _make_sse_decoder(self) -> Any:
        return WholeStreams(super()._make_sse_decoder())


def client_for(config: CompatModelConfig) -> AsyncOpenAI:
    # A class for each config: the vendor's client copies itself, and passes on only the arguments that it knows.
    kind = type("ProviderClient", (_Client,), {"quirks": config.quirks, "is_for_openai": config.provider == "openai"})
    client: AsyncOpenAI = kind(
        api_key=config.api_key,
        base_url=config.base_url,
        default_headers=dict(config.headers),
        max_retries=0,
        timeout=config.timeout_seconds,
        http_client=httpx2.AsyncClient(
            follow_redirects=False,
            timeout=config.timeout_seconds,
            event_hooks={"response": [bound_body]},
            # Models are never closed, so a connection kept open would leak with every event loop that ends.
            limits=httpx2.Limits(max_keepalive_connections=0),
        ),
    )
    return client


def fitting_body(body: JsonObject, quirks: Quirks) -> dict[str, JsonValue]:
    fitting = {name: value for name, value in body.items() if name not in quirks.dropped_fields}
    tools = fitting.get("tools")
    if isinstance(tools, list):
        fitting["tools"] = [_fitting_tool(tool, quirks) for tool in tools]
    return fitting


def _fitting_tool(tool: JsonValue, quirks: Quirks) -> JsonValue:
    if not isinstance(tool, dict) or not isinstance(function := tool.get("function"), dict):
        return tool
    fitting = {name: value for name, value in function.items() if name != "strict" or quirks.strict}
    if quirks.dropped_keywords:
        fitting["parameters"] = _without_keywords(fitting.get("parameters"), quirks.dropped_keywords)
    return {**tool, "function": fitting}


def _without_keywords(schema: JsonValue, keywords: frozenset[str]) -> JsonValue:
    if isinstance(schema, list):
        return [_without_keywords(part, keywords) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        # Keys below `properties` are names of arguments, not keywords.
        name: {inner: _without_keywords(part, keywords) for inner, part in value.items()}
        if name in ("properties", "$defs") and isinstance(value, dict)
        else _without_keywords(value, keywords)
        for name, value in schema.items()
        if name not in keywords
    }
