"""A gateway that tells of each question it passes on. Wraps the one that asks, so that every attempt is a span."""

from openai_responses_mcp.adapters.telemetry.otel import OtelTelemetry
from openai_responses_mcp.domain.models import (
    ModelReply,
    ModelRequest,
    ProgressListener,
    ResponseState,
    StartListener,
)
from openai_responses_mcp.domain.ports import LLMGateway


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

    async def look_up(self, response_id: str) -> ResponseState:
        return await self._gateway.look_up(response_id)

    async def cancel(self, response_id: str) -> None:
        await self._gateway.cancel(response_id)

    def let_go(self, response_id: str) -> None:
        self._gateway.let_go(response_id)
