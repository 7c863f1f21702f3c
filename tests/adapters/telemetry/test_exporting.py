"""Exporters: which are started, the service they name, and that none can fail a call or delay shutdown."""

import asyncio
import sys
import threading
from collections.abc import Iterator, Sequence

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from openai_responses_mcp import __version__
from openai_responses_mcp.adapters.telemetry.otel import OtelTelemetry, TracedGateway, resource
from openai_responses_mcp.adapters.telemetry.starting import maybe_telemetry, maybe_traced
from openai_responses_mcp.domain.models import ObservedCall
from tests.fakes import WAIT_SECONDS, FakeGateway, FakeLogger

CALL = ObservedCall("answer", 1, "2025-06-18", {})
BASE_URL = "http://127.0.0.1:1/v1"


class HangingExporter(SpanExporter):
    def __init__(self) -> None:
        self.may_go_on = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.may_go_on.wait(WAIT_SECONDS)
        return SpanExportResult.SUCCESS


def telemetry_with(exporter: SpanExporter) -> OtelTelemetry:
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(exporter))
    return OtelTelemetry(tracers, MeterProvider(shutdown_on_exit=False), BASE_URL)


@pytest.fixture
def hanging() -> Iterator[HangingExporter]:
    exporter = HangingExporter()
    yield exporter
    exporter.may_go_on.set()


async def test_a_hanging_collector_delays_neither_calls_nor_shutdown(hanging: HangingExporter) -> None:
    telemetry = telemetry_with(hanging)
    async with asyncio.timeout(WAIT_SECONDS / 2):
        for _ in range(100):
            with telemetry.observed(CALL):
                pass
        await telemetry.flush()


# Which exporters are started


def test_without_exporters_there_is_no_telemetry_and_the_gateway_is_not_wrapped() -> None:
    logger, gateway = FakeLogger(), FakeGateway()
    assert maybe_telemetry((), (), BASE_URL, logger) is None
    assert maybe_traced(gateway, None) is gateway
    assert logger.lines == []


@pytest.mark.parametrize(("traces", "metrics"), [(("console",), ()), (("otlp",), ("otlp",))])
async def test_the_named_exporters_are_started(traces: tuple[str, ...], metrics: tuple[str, ...]) -> None:
    logger = FakeLogger()
    telemetry = maybe_telemetry(traces, metrics, BASE_URL, logger)
    assert telemetry is not None
    assert isinstance(maybe_traced(FakeGateway(), telemetry), TracedGateway)
    assert logger.lines == []


async def test_the_console_exporter_writes_to_stderr_because_stdout_is_the_wire(
    capsys: pytest.CaptureFixture[str],
) -> None:
    telemetry = maybe_telemetry(("console",), ("console",), BASE_URL, FakeLogger())
    assert telemetry is not None
    with telemetry.observed(CALL):
        pass
    async with asyncio.timeout(WAIT_SECONDS):
        await telemetry.flush()
    written = capsys.readouterr()
    assert written.out == ""
    assert '"name": "tools/call answer"' in written.err
    assert "mcp.server.operation.duration" in written.err


def test_without_the_extra_a_warning_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    monkeypatch.delitem(sys.modules, "openai_responses_mcp.adapters.telemetry.otel")
    logger = FakeLogger()
    assert maybe_telemetry(("otlp",), (), BASE_URL, logger) is None
    ((level, event, _),) = logger.lines
    assert level == "warning"
    assert 'pip install "openai-responses-mcp[otel] @ git+' in event


def test_a_variable_that_the_sdk_rejects_is_only_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "512")
    logger = FakeLogger()
    assert maybe_telemetry(("console",), (), BASE_URL, logger) is None
    ((level, event, facts),) = logger.lines
    assert (level, event) == ("warning", "telemetry could not be started")
    assert facts["name"] == "ValueError"


# The name of the service


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "openai-responses-mcp"),
        ({"OTEL_SERVICE_NAME": "mine"}, "mine"),
    ],
)
def test_the_service_name_is_the_package_unless_the_environment_sets_another(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], name: str
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    attributes = resource(variables).attributes
    assert (attributes["service.name"], attributes["service.version"]) == (name, __version__)
