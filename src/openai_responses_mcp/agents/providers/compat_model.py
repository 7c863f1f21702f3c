"""The six providers: their models for the SDK and their lists of models, over each one's variant of the OpenAI API.

Before anything is sent, a model checks whether the provider supports the request, and adapts what it can. It retries
once after a timeout unless it streams. Fields that a provider would refuse are removed in `compat_client`. Errors become
an `AgentsError` by the table `FAILURES`.
"""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import httpx2
from agents import (
    AgentOutputSchemaBase,
    FunctionTool,
    Handoff,
    Model,
    ModelResponse,
    ModelRetryAdvice,
    ModelRetryAdviceRequest,
    ModelSettings,
    ModelTracing,
    Tool,
    TResponseInputItem,
)
from agents.items import TResponseStreamEvent
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from openai.types.responses import ResponsePromptParam

from openai_responses_mcp.agents.providers.compat_client import FAILURES, RUNNER_CODE, client_for, failure_from
from openai_responses_mcp.agents.providers.settings import (
    LONGEST_MODEL_NAME,
    CompatModelConfig,
    ListFailure,
    ListSource,
    ModelList,
    ProviderName,
    ProviderSettings,
    config_error,
)
from openai_responses_mcp.domain.masking import SecretMask
from openai_responses_mcp.gate.errors import AgentsError

MOST_TRIES = 2
LONGEST_LIST_BYTES = 8 * 1024 * 1024


# ---------------------------------------------------------------------------------------------------------------------
# Models


@dataclasses.dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of `get_response` and `stream_response`."""

    system_instructions: str | None
    input: str | list[TResponseInputItem]
    model_settings: ModelSettings
    tools: list[Tool]
    output_schema: AgentOutputSchemaBase | None
    handoffs: list[Handoff[Any, Any]]
    tracing: ModelTracing
    previous_response_id: str | None = None
    conversation_id: str | None = None
    prompt: ResponsePromptParam | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class CompatModel(Model):
    def __init__(self, model: str, config: CompatModelConfig) -> None:
        self.model = model
        self.config = config
        self._mask = SecretMask([config.api_key])
        # Connections belong to an event loop, and `run_sync` makes a new loop each time.
        self._models: WeakKeyDictionary[asyncio.AbstractEventLoop, Model] = WeakKeyDictionary()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = WeakKeyDictionary()

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        request = self._adapted(_Request(*args, **options))
        for number in range(1, MOST_TRIES + 1):
            try:
                with self._translated():
                    async with asyncio.timeout(self.config.timeout_seconds):
                        return await self._inner().get_response(**request.arguments)
            except AgentsError as exc:
                if exc.details.get("reason") != "timeout" or number == MOST_TRIES:
                    raise
        raise AssertionError("the loop above returns or raises")  # pragma: no cover

    async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[TResponseStreamEvent]:
        request = self._adapted(_Request(*args, **options))
        has_begun = False
        try:
            with self._translated():
                events = self._inner().stream_response(**request.arguments)
                try:
                    async for event in events:
                        has_begun = True
                        yield event
                finally:
                    await events.aclose()  # type: ignore[attr-defined]
        except AgentsError as exc:
            if not has_begun and exc.code != RUNNER_CODE:
                raise
            failure = AgentsError("AGENTS-E-STREAM", f"The stream broke: {exc.message}", details=exc.details)
            failure.__cause__ = exc.__cause__
        else:
            return
        raise failure

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        return self._inner().get_retry_advice(request)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        loop = asyncio.get_running_loop()
        self._models.pop(loop, None)
        client = self._clients.pop(loop, None)
        if client is not None:
            await client.close()

    def __repr__(self) -> str:
        return f"<{self.config.provider} model {self.model}>"

    def _inner(self) -> Model:
        loop = asyncio.get_running_loop()
        if loop not in self._models:
            client = self._clients[loop] = client_for(self.config)
            kind = OpenAIResponsesModel if self.config.api == "responses" else OpenAIChatCompletionsModel
            self._models[loop] = kind(model=self.model, openai_client=client)
        return self._models[loop]

    def _adapted(self, request: _Request) -> _Request:
        if self.config.api == "responses":
            return request
        self._require_chat_features(request)
        request = self._with_tool_choice(request)
        quirks, settings = self.config.quirks, request.model_settings
        changes: dict[str, Any] = {"include_usage": True} if settings.include_usage is None else {}
        limit = quirks.highest_temperature
        if limit is not None and settings.temperature is not None:
            changes["temperature"] = min(settings.temperature, limit)
        request = dataclasses.replace(request, model_settings=dataclasses.replace(settings, **changes))
        if request.output_schema is None or quirks.json_schema or request.output_schema.is_plain_text():
            return request
        schema = json.dumps(request.output_schema.json_schema(), ensure_ascii=False)
        wanted = "Answer with one JSON object and nothing else, without a code fence. It must fit this JSON Schema:"
        instructions = "\n\n".join(filter(None, [request.system_instructions, f"{wanted}\n{schema}"]))
        return dataclasses.replace(request, system_instructions=instructions, output_schema=None)

    def _require_chat_features(self, request: _Request) -> None:
        hosted = [tool.name for tool in request.tools if not isinstance(tool, FunctionTool)]
        if hosted:
            raise self._unsupported("hosted_tools", f"no tools that run on its side ({', '.join(hosted)})")
        for name in ("previous_response_id", "conversation_id", "prompt"):
            if getattr(request, name) is not None:
                raise self._unsupported(name, f"no {name}; it does not keep conversations or prompts")

    def _with_tool_choice(self, request: _Request) -> _Request:
        quirks, choice = self.config.quirks, request.model_settings.tool_choice
        if choice is None or choice == "auto":
            return request
        if choice == "none" and not quirks.required_tool_choice:
            without = dataclasses.replace(request.model_settings, tool_choice=None)
            return dataclasses.replace(request, tools=[], handoffs=[], model_settings=without)
        if choice in ("none", "required"):
            if choice == "required" and not quirks.required_tool_choice:
                raise self._unsupported("tool_choice", "no tool_choice: it cannot be made to call a tool")
            return request
        if quirks.named_tool_choice == "unsupported" or not isinstance(choice, str):
            raise self._unsupported("tool_choice", "no named tool_choice: it cannot be made to call this tool")
        if quirks.named_tool_choice == "native":
            return request
        return dataclasses.replace(
            request,
            tools=[tool for tool in request.tools if tool.name == choice],
            handoffs=[one for one in request.handoffs if one.tool_name == choice],
            model_settings=dataclasses.replace(request.model_settings, tool_choice="required"),
        )

    def _unsupported(self, feature: str, message: str) -> AgentsError:
        return AgentsError(
            "AGENTS-E-COMPAT-UNSUPPORTED",
            f"{self.config.provider} has {message}; leave it out, or use another provider",
            details={"provider": self.config.provider, "feature": feature},
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        failure: AgentsError
        try:
            yield
            return
        except tuple(kind for kind, _, _, _ in FAILURES) as exc:
            failure = failure_from(exc, self.config, self._mask)
        # Raised outside `except`: the vendor's error may hold the key, and would be attached as context.
        raise failure


# ---------------------------------------------------------------------------------------------------------------------
# Providers


class CompatModelProvider:
    def create_model(self, model_name: str, config: CompatModelConfig) -> CompatModel:
        name: object = model_name
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_MODEL_NAME:
            raise config_error(f"A model's name has 1 to {LONGEST_MODEL_NAME} characters")
        return CompatModel(name, config)


class ProviderHandle:
    """A provider. Its settings are read from the environment once."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings

    @property
    def name(self) -> ProviderName:
        return self.settings.spec.name

    def get_model(self, model: str | None = None) -> CompatModel:
        return CompatModelProvider().create_model(self.settings.model_name(model), self.settings.config)

    async def list_models(self) -> ModelList:
        """The provider's list, else the configured model, else the default."""
        try:
            return ModelList(await live_models(self.settings))
        except ListUnavailable as exc:
            model, spec = self.settings.model, self.settings.spec
            if model is None:
                return ModelList([], "none", exc.reason, exc.detail)
            source: ListSource = "default" if model == spec.default_model else "configured"
            return ModelList([model], source, exc.reason, exc.detail)

    def __repr__(self) -> str:
        return f"<provider {self.name} at {self.settings.config.base_url}>"


# ---------------------------------------------------------------------------------------------------------------------
# Lists of models. They are read without the SDK, because the exact reason for a failure is reported.


class ListUnavailable(Exception):
    def __init__(self, reason: ListFailure, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


async def live_models(settings: ProviderSettings) -> list[str]:
    spec, config = settings.spec, settings.config
    key = config.api_key if spec.key_header != "Authorization" else f"Bearer {config.api_key}"
    headers = {spec.key_header: key, **spec.list_headers, **config.headers}
    try:
        async with asyncio.timeout(config.timeout_seconds), httpx2.AsyncClient(follow_redirects=False) as client:
            status, body = await _fetch(client, f"{config.base_url}/models", headers)
    except (TimeoutError, httpx2.TimeoutException):
        raise ListUnavailable("timeout", f"no answer within {config.timeout_seconds:g} s") from None
    except (httpx2.HTTPError, OSError):
        raise ListUnavailable("network_error", "no connection") from None
    if status != 200:
        raise ListUnavailable("http_error", f"status {status}")
    return _models_in(body, spec.model_prefix)


async def _fetch(client: httpx2.AsyncClient, url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    body = bytearray()
    async with client.stream("GET", url, headers=dict(headers)) as response:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > LONGEST_LIST_BYTES:
                raise ListUnavailable("invalid_payload", "the list is too long")
    return response.status_code, bytes(body)


def _models_in(body: bytes, prefix: str) -> list[str]:
    try:
        data = json.loads(body)["data"]
        names = [entry["id"].removeprefix(prefix) for entry in data]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ListUnavailable("invalid_payload", "the list cannot be read") from None
    if not names:
        raise ListUnavailable("empty_response", "the list is empty")
    return names
