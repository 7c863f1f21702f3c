import pytest

from openai_responses_mcp.adapters.telemetry.starting import TelemetryChoice, telemetry_chosen

ADDRESS = "http://127.0.0.1:4318"


def test_only_variables_about_exporters_turn_telemetry_on() -> None:
    cases: list[tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]] = [
        ({"OTEL_SERVICE_NAME": "mine", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"}, (), ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ADDRESS}, ("otlp",), ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ADDRESS}, ("otlp",), ()),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": " "}, (), ()),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}, (), ()),
        ({"OTEL_METRICS_EXPORTER": "console"}, (), ("console",)),
    ]
    for environ, traces, metrics in cases:
        choice = telemetry_chosen(environ)
        assert choice == TelemetryChoice(traces, metrics)


def test_an_unknown_exporter_is_a_warning_and_is_left_out() -> None:
    choice = telemetry_chosen({"OTEL_TRACES_EXPORTER": "zipkin,console"})
    assert choice.traces == ("console",)
    assert choice.warnings == ("OTEL_TRACES_EXPORTER: zipkin is not known here; use otlp, console or none",)


def test_an_unsupported_protocol_is_one_warning() -> None:
    choice = telemetry_chosen({"OTEL_EXPORTER_OTLP_ENDPOINT": ADDRESS, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert choice.traces == choice.metrics == ("otlp",)
    (warning,) = choice.warnings
    assert warning.startswith("OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not supported, only http/protobuf")


@pytest.mark.parametrize(
    "environ",
    [
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ADDRESS, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
        {"OTEL_TRACES_EXPORTER": "console", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_a_supported_or_unused_protocol_is_no_warning(environ: dict[str, str]) -> None:
    assert telemetry_chosen(environ).warnings == ()
