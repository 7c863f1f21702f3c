"""Where spans and metrics go. Both are collected and sent by threads of the SDK, so that no call waits for them.

Nothing here is global: other libraries in the process that know OpenTelemetry stay silent. What writes to a console
writes to stderr, because stdout is the wire.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

from openai_responses_mcp import __version__

SERVICE = "openai-responses-mcp"

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
    """Who is telling this. A name that the environment gives is kept."""
    is_named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create({"service.version": __version__} | ({} if is_named else {"service.name": SERVICE}))
