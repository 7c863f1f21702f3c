"""Telemetry, if it is wanted and can be had. Without it nothing of OpenTelemetry is imported."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from openai_responses_mcp.domain.extras import install_line
from openai_responses_mcp.domain.ports import LLMGateway, Logger

if TYPE_CHECKING:
    from openai_responses_mcp.adapters.telemetry.otel import Network, OtelTelemetry


def maybe_telemetry(
    traces: Sequence[str], metrics: Sequence[str], base_url: str, logger: Logger, network: "Network" = "pipe"
) -> "OtelTelemetry | None":
    """None when no exporter is named, or when it cannot be started; then a warning says why."""
    if not traces and not metrics:
        return None
    try:
        from openai_responses_mcp.adapters.telemetry.otel import OtelTelemetry, meter_provider, tracer_provider

        return OtelTelemetry(tracer_provider(traces), meter_provider(metrics), base_url, network)
    except ImportError:
        logger.warning(f"OTEL_* variables ask for telemetry: install it with {install_line('otel')}")
    except Exception as exc:
        # Whatever the variables make of the SDK: questions are answered all the same.
        logger.warning("telemetry could not be started", name=type(exc).__name__, msg=str(exc))
    return None


def maybe_traced(gateway: LLMGateway, telemetry: "OtelTelemetry | None") -> LLMGateway:
    """The gateway, with a span around each question where there is telemetry."""
    if telemetry is None:
        return gateway
    from openai_responses_mcp.adapters.telemetry.otel import TracedGateway

    return TracedGateway(gateway, telemetry)
