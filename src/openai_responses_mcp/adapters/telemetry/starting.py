"""Whether OpenTelemetry is on, and where traces and metrics go. Only the OTEL_* variables decide.

A signal is on if `OTEL_TRACES_EXPORTER` or `OTEL_METRICS_EXPORTER` names an exporter, or if neither is set and there is
an address for OTLP. The OpenTelemetry SDK reads everything else (addresses, headers, sampling, names) by itself. If no
signal is on, OpenTelemetry is not imported.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from openai_responses_mcp.domain.extras import install_line
from openai_responses_mcp.domain.ports import LLMGateway, Logger

if TYPE_CHECKING:
    from openai_responses_mcp.adapters.telemetry.otel import Network, OtelTelemetry


EXPORTERS = ("otlp", "console")
_OFF = "none"
_PROTOCOL = "http/protobuf"


class TelemetryChoice(NamedTuple):
    """The exporters for each signal, and warnings."""

    traces: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def telemetry_chosen(environ: Mapping[str, str]) -> TelemetryChoice:
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return TelemetryChoice()
    named = {signal: tuple(_named(signal, environ)) for signal in ("TRACES", "METRICS")}
    known = {signal: tuple(name for name in names if name in EXPORTERS) for signal, names in named.items()}
    unknown = [
        f"OTEL_{signal}_EXPORTER: {name} is not known here; use {', '.join(EXPORTERS)} or {_OFF}"
        for signal, names in named.items()
        for name in names
        if name not in EXPORTERS
    ]
    protocols = [line for signal in named if "otlp" in known[signal] for line in _other_protocols(signal, environ)]
    return TelemetryChoice(known["TRACES"], known["METRICS"], (*unknown, *dict.fromkeys(protocols)))


def _named(signal: str, environ: Mapping[str, str]) -> Iterator[str]:
    names = environ.get(f"OTEL_{signal}_EXPORTER", "").strip()
    if names:
        yield from (name.strip() for name in names.lower().split(",") if name.strip() not in ("", _OFF))
    elif any(environ.get(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT", "").strip() for part in ("", f"{signal}_")):
        yield "otlp"


def _other_protocols(signal: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Warnings about other protocols. OTLP always uses HTTP here: gRPC would need one more large package."""
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environ.get(name, "").strip()
        if protocol and protocol != _PROTOCOL:
            yield f"{name}: {protocol} is not supported, only {_PROTOCOL}; give an address that accepts it"


def maybe_telemetry(
    traces: Sequence[str], metrics: Sequence[str], base_url: str, logger: Logger, network: "Network" = "pipe"
) -> "OtelTelemetry | None":
    """None if no exporter is named, or if telemetry cannot be started; then a warning says why."""
    if not traces and not metrics:
        return None
    try:
        from openai_responses_mcp.adapters.telemetry.otel import OtelTelemetry, meter_provider, tracer_provider

        return OtelTelemetry(tracer_provider(traces), meter_provider(metrics), base_url, network)
    except ImportError:
        logger.warning(f"OTEL_* variables ask for telemetry: install it with {install_line('otel')}")
    except Exception as exc:
        # An error in the SDK must not stop the server.
        logger.warning("telemetry could not be started", name=type(exc).__name__, msg=str(exc))
    return None


def maybe_traced(gateway: LLMGateway, telemetry: "OtelTelemetry | None") -> LLMGateway:
    """The gateway; with telemetry, each question has a span."""
    if telemetry is None:
        return gateway
    from openai_responses_mcp.adapters.telemetry.otel import TracedGateway

    return TracedGateway(gateway, telemetry)
