"""Spans and a metric for calls and questions, named by the conventions for MCP and generative AI.

A tool call is a span of the kind SERVER. Its parent is the caller's span, if the request names one. A question to the
API is a child of the kind CLIENT, with its token counts. Neither contains any text of questions or answers.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Literal
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from openai_responses_mcp import __version__
from openai_responses_mcp.domain.errors import GatewayError
from openai_responses_mcp.domain.models import (
    CallFailure,
    ModelReply,
    ModelRequest,
    ObservedCall,
    Progress,
    ProgressListener,
    StartListener,
)
from openai_responses_mcp.domain.ports import CallObserver, LLMGateway

SCOPE = "openai_responses_mcp"
METHOD = "tools/call"
DURATION = "mcp.server.operation.duration"
# From the conventions: they cover a quick lookup and long research.
BOUNDS_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

# An ending process has about a second. If the collector does not answer by then, the last spans are lost.
LONGEST_FLUSH_SECONDS = 0.5

Attributes = dict[str, AttributeValue]
Network = Literal["pipe", "tcp"]


class OtelTelemetry(CallObserver):
    """`base_url` is that of the API; only its host and port are recorded. `network` is how clients reach the server."""

    def __init__(
        self, tracers: TracerProvider, meters: MeterProvider, base_url: str, network: Network = "pipe"
    ) -> None:
        self._network = network
        self._tracers = tracers
        self._meters = meters
        self._tracer = tracers.get_tracer(SCOPE, __version__)
        self._durations = meters.get_meter(SCOPE, __version__).create_histogram(
            DURATION,
            unit="s",
            description="How long calls took, from their arrival to their reply.",
            explicit_bucket_boundaries_advisory=BOUNDS_SECONDS,
        )
        self._propagator = TraceContextTextMapPropagator()
        self._api = _address(base_url)

    @contextmanager
    def observed(self, call: ObservedCall) -> Iterator[Callable[[CallFailure], None]]:
        shared: Attributes = {
            "mcp.method.name": METHOD,
            "mcp.protocol.version": call.protocol_version,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "network.transport": self._network,
        }
        parent = self._propagator.extract(call.trace, Context())
        attributes = {**shared, "jsonrpc.request.id": str(call.request_id)}
        if call.caller:
            attributes["enduser.id"] = call.caller
        started = perf_counter()
        with self._span(f"{METHOD} {call.tool}", SpanKind.SERVER, attributes, parent) as span:

            def failed(failure: CallFailure) -> None:
                shared["error.type"] = failure.kind
                if failure.code is not None:
                    shared["rpc.response.status_code"] = str(failure.code)
                    span.set_attribute("rpc.response.status_code", str(failure.code))
                _mark_failed(span, failure.kind, failure.message)

            try:
                yield failed
            except BaseException as exc:
                shared["error.type"] = _kind_of(exc)
                raise
            finally:
                self._durations.record(perf_counter() - started, shared)

    @contextmanager
    def asking(self, model: str | None = None) -> Iterator[Callable[[ModelReply], None]]:
        """Span around one request; call the result with the reply."""
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "openai.api.type": "responses",
            **self._api,
        }
        if model is not None:
            attributes["gen_ai.request.model"] = model
        name = "chat" if model is None else f"chat {model}"
        with self._span(name, SpanKind.CLIENT, attributes) as span:
            yield lambda reply: span.set_attributes(_reply_attributes(reply))

    async def flush(self) -> None:
        """Send waiting spans and metrics, if there is time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_FLUSH_SECONDS):
                await asyncio.gather(
                    asyncio.to_thread(self._tracers.force_flush), asyncio.to_thread(self._meters.force_flush)
                )

    @contextmanager
    def _span(self, name: str, kind: SpanKind, attributes: Attributes, parent: Context | None = None) -> Iterator[Span]:
        """Without the SDK's own recording of exceptions: their texts may contain the question."""
        with self._tracer.start_as_current_span(
            name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as exc:
                _mark_failed(span, _kind_of(exc))
                raise


def _mark_failed(span: Span, kind: str, message: str | None = None) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR, message)


def _kind_of(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    status = error.status if isinstance(error, GatewayError) else None
    return str(status) if status else type(error).__name__


def _reply_attributes(reply: ModelReply) -> Attributes:
    attributes: Attributes = {"gen_ai.response.finish_reasons": (reply.incomplete_reason or "stop",)}
    if reply.model:
        attributes["gen_ai.response.model"] = reply.model
    if reply.response_id:
        attributes["gen_ai.response.id"] = reply.response_id
    if reply.usage:
        attributes["gen_ai.usage.input_tokens"] = reply.usage.input_tokens
        attributes["gen_ai.usage.output_tokens"] = reply.usage.output_tokens
    return attributes


def _address(base_url: str) -> Attributes:
    parts = urlsplit(base_url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return {"server.address": parts.hostname or ""} | ({"server.port": port} if port else {})


SERVICE = "openai-responses-mcp"

# Threads of the SDK send spans and metrics, so that no call waits for them. Nothing is registered globally, so other
# libraries in the process send nothing. The console exporters write to stderr, because stdout is the wire.
_SPANS: Mapping[str, Callable[[], SpanExporter]] = {
    "otlp": OTLPSpanExporter,
    "console": lambda: ConsoleSpanExporter(out=sys.stderr),
}
_METRICS: Mapping[str, Callable[[], MetricExporter]] = {
    "otlp": OTLPMetricExporter,
    "console": lambda: ConsoleMetricExporter(out=sys.stderr),
}


def tracer_provider(exporters: Sequence[str]) -> TracerProvider:
    provider = TracerProvider(resource=resource(os.environ), shutdown_on_exit=False)
    for name in exporters:
        provider.add_span_processor(BatchSpanProcessor(_SPANS[name]()))
    return provider


def meter_provider(exporters: Sequence[str]) -> MeterProvider:
    readers = [PeriodicExportingMetricReader(_METRICS[name]()) for name in exporters]
    return MeterProvider(readers, resource=resource(os.environ), shutdown_on_exit=False)


def resource(environ: Mapping[str, str]) -> Resource:
    """The service name and version; a name set in the environment is kept."""
    is_named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create({"service.version": __version__} | ({} if is_named else {"service.name": SERVICE}))


class TracedGateway(LLMGateway):
    def __init__(self, gateway: LLMGateway, telemetry: OtelTelemetry) -> None:
        self._gateway = gateway
        self._telemetry = telemetry

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        with self._telemetry.asking(request.model) as replied:
            reply = await self._gateway.respond(request, on_progress, on_started)
            replied(reply)
            return reply

    async def follow(self, response_id: str, on_progress: ProgressListener | None = None) -> ModelReply:
        with self._telemetry.asking() as replied:
            reply = await self._gateway.follow(response_id, on_progress)
            replied(reply)
            return reply

    async def look_up(self, response_id: str) -> ModelReply | Progress:
        return await self._gateway.look_up(response_id)

    async def cancel(self, response_id: str) -> None:
        await self._gateway.cancel(response_id)

    def let_go(self, response_id: str) -> None:
        self._gateway.let_go(response_id)
