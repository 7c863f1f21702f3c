"""The real process sends telemetry to a real collector over HTTP, and ends in time if it does not answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.e2e.client import KEY, WAIT_SECONDS, call
from tests.e2e.conftest import Start

pytestmark = pytest.mark.slow

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"


class Collector:
    """Keeps the bodies that are posted to it, by path."""

    def __init__(self) -> None:
        arrived = self.arrived = Queue[tuple[str, bytes]]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                arrived.put((self.path, body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def bodies(self) -> dict[str, bytes]:
        """What has come, by path, once there is something of both kinds."""
        found: dict[str, bytes] = {}
        while len(found) < 2:
            path, body = self.arrived.get(timeout=WAIT_SECONDS)
            found[path] = found.get(path, b"") + body
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with closing(Collector()) as collector:
        yield collector


def test_a_collector_gets_the_spans_and_the_metric_of_a_call(start: Start, collector: Collector) -> None:
    server = start(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, OTEL_EXPORTER_OTLP_COMPRESSION="none")
    message = call(1, "What is the planted weather?")
    message["params"]["_meta"] = {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01"}
    server.send(message)
    assert "result" in server.reply_to(1)
    assert server.finish() == 0
    bodies = collector.bodies()
    spans = {span.name: span for span in _spans(bodies["/v1/traces"])}
    assert spans.keys() == {"tools/call answer", "chat gpt-5.2"}
    assert spans["tools/call answer"].trace_id.hex() == spans["chat gpt-5.2"].trace_id.hex() == TRACE_ID
    assert spans["tools/call answer"].parent_span_id.hex() == PARENT_ID
    assert spans["chat gpt-5.2"].parent_span_id == spans["tools/call answer"].span_id
    assert "gen_ai.usage.input_tokens" in {attribute.key for attribute in spans["chat gpt-5.2"].attributes}
    metrics = ExportMetricsServiceRequest.FromString(bodies["/v1/metrics"])
    assert "mcp.server.operation.duration" in str(metrics)
    everything = b"".join(bodies.values())
    assert b"planted" not in everything
    assert KEY.encode() not in everything
    assert server.stderr == ""


def _spans(body: bytes) -> list[Any]:
    request = ExportTraceServiceRequest.FromString(body)
    return [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]


def test_a_collector_that_never_answers_holds_up_nothing(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = start(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert "result" in server.ask("Why?")
        server.end_input()
        # Half of what the exporter itself would wait for an answer.
        assert server.process.wait(5) == 0


def test_a_collector_that_is_not_there_hurts_no_call(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    server = start(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"http://127.0.0.1:{port}/v1/traces")
    assert "result" in server.ask("Why?")
    assert server.finish() == 0
    assert [one.get("id") for one in server.received] == [1]
