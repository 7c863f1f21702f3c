"""Telemetry whose spans and metrics stay in memory."""

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from openai_responses_mcp.adapters.telemetry.otel import OtelTelemetry


class InMemoryTelemetry:
    def __init__(self, base_url: str = "https://api.openai.com/v1") -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.telemetry = OtelTelemetry(tracers, meters, base_url)

    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in the order of their ends."""
        return list(self._exporter.get_finished_spans())

    def points(self) -> list[tuple[str, Any]]:
        """Each data point with the name of its metric."""
        data = self._reader.get_metrics_data()
        resources = data.resource_metrics if data else []
        metrics = [metric for one in resources for scope in one.scope_metrics for metric in scope.metrics]
        return [(metric.name, point) for metric in metrics for point in metric.data.data_points]
