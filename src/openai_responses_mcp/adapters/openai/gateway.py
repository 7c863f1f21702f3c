"""One attempt at the Responses API, bounded in time and in number at once.

Who listens to progress is answered through the SDK, which takes streams apart; everything else is asked at once and
needs no more than an HTTP session.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic_core import from_json, to_json

from openai_responses_mcp.adapters.openai.api_errors import api_errors_translated, refusal
from openai_responses_mcp.adapters.openai.checks import COUNTING_PATH, counted_body, shutdown_date
from openai_responses_mcp.adapters.openai.session import ApiSession
from openai_responses_mcp.adapters.openai.wire import JsonObject, read_reply, request_body
from openai_responses_mcp.domain.errors import GatewayError, GatewayTimeout, KeyUnusable
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, ProgressListener
from openai_responses_mcp.domain.ports import Clock, LLMGateway

if TYPE_CHECKING:
    from openai_responses_mcp.adapters.openai.client import SdkClient


class OpenAIResponsesGateway(LLMGateway):
    """`load_sdk` is called in threads, for the first questions that somebody listens to; it always gives the same."""

    def __init__(
        self,
        session: ApiSession,
        load_sdk: "Callable[[], SdkClient]",
        *,
        api_key: str,
        api_key_variable: str,
        timeout_seconds: float,
        max_concurrency: int,
        omit: Iterable[str],
        clock: Clock,
        mask: Callable[[str], str] = str,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        self._session = session
        self._load_sdk = load_sdk
        self._sdk: SdkClient | None = None
        self._api_key = api_key.strip()
        self._api_key_variable = api_key_variable
        self._timeout_seconds = timeout_seconds
        self._places = asyncio.Semaphore(max_concurrency)
        self._omit = tuple(omit)
        self._extra = extra
        self._clock = clock
        self._mask = mask

    async def respond(self, request: ModelRequest, on_progress: ProgressListener | None = None) -> ModelReply:
        self._refuse_unusable_key()
        body = request_body(request, self._omit, self._extra)
        async with self._places:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    response = await (self._stream(body, on_progress) if on_progress else self._ask(body))
            except TimeoutError as exc:
                raise self._timeout() from exc
        return read_reply(response)

    async def check_model(self, model: str) -> str | None:
        """The day on which the model will be shut down, if one is announced. Raises as `respond`."""
        return shutdown_date(await self._check("GET", f"models/{quote(model, safe='')}"))

    async def check_request(self, request: ModelRequest) -> None:
        """Try a request without having it answered, which costs nothing. Raises as `respond`."""
        body = counted_body(request_body(request, self._omit, self._extra))
        await self._check("POST", COUNTING_PATH, to_json(body))

    def prepare(self) -> None:
        """Pay for the first question in advance, in a thread without an event loop.

        What goes wrong here goes wrong again, and is told, with the first question.
        """
        with contextlib.suppress(OSError, GatewayError):
            self._session.prepare()

    def prepare_streaming(self) -> None:
        """The same for the first question with a listener; takes many times longer."""
        with contextlib.suppress(OSError, GatewayError):
            from openai_responses_mcp.adapters.openai.client import load_what_a_first_request_loads

            load_what_a_first_request_loads()

    async def close(self) -> None:
        await self._session.close()
        if self._sdk is not None:
            await self._sdk.close()

    async def _ask(self, body: JsonObject) -> object:
        with api_errors_translated(self._mask):
            content = await self._request("POST", "responses", to_json(body))
            return _parsed(content)

    async def _check(self, method: str, path: str, content: bytes | None = None) -> bytes:
        self._refuse_unusable_key()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                with api_errors_translated(self._mask):
                    return await self._request(method, path, content)
        except TimeoutError as exc:
            raise self._timeout() from exc

    async def _request(self, method: str, path: str, content: bytes | None = None) -> bytes:
        reply = await self._session.request(method, path, content)
        if not reply.is_success:
            raise refusal(reply, self._clock.now, self._mask)
        return reply.body

    async def _stream(self, body: JsonObject, on_progress: ProgressListener) -> object:
        if self._sdk is None:
            self._sdk = await asyncio.to_thread(self._load_sdk)
        return await self._sdk.respond(body, on_progress)

    def _refuse_unusable_key(self) -> None:
        if not self._api_key:
            raise KeyUnusable(f"Missing API key: set {self._api_key_variable}")
        if not (self._api_key.isascii() and self._api_key.isprintable()) or " " in self._api_key:
            raise KeyUnusable(
                f"The API key in {self._api_key_variable} holds a space, a control character or a letter that no key"
                " has. Copy it again."
            )

    def _timeout(self) -> GatewayTimeout:
        return GatewayTimeout(
            f"No complete answer within {self._timeout_seconds:g} s. Ask again, ask for less,"
            " or raise request.timeout_ms (OPENAI_API_TIMEOUT)."
        )


def _parsed(content: bytes) -> object:
    """`json` takes half as long again, and what `from_json` refuses: half a surrogate pair, say."""
    try:
        return from_json(content, cache_strings="keys")  # No words of an answer are kept.
    except ValueError:
        return json.loads(content.decode("utf-8"))
