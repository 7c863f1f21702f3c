"""The SDK's sessions over one websocket: the connection is theirs, the runs go through the configured runner."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import agents as sdk

from openai_responses_mcp.agents.adapters.sdk.facade import Runner, StreamedRun


@dataclass(frozen=True)
class ResponsesWebSocketSession(sdk.ResponsesWebSocketSession):
    async def run(self, starting_agent: sdk.Agent[Any], input: object, **options: Any) -> Any:
        return await Runner.run(starting_agent, input, **self._with_config(options))

    def run_streamed(self, starting_agent: sdk.Agent[Any], input: object, **options: Any) -> StreamedRun:  # type: ignore[override]
        return Runner.run_streamed(starting_agent, input, **self._with_config(options))

    def _with_config(self, options: dict[str, Any]) -> dict[str, Any]:
        if "run_config" in options:
            raise ValueError("The session has its own run_config; do not give another")
        return {**options, "run_config": self.run_config}


@asynccontextmanager
async def responses_websocket_session(**options: Any) -> AsyncIterator[ResponsesWebSocketSession]:
    """The SDK's, with the same options."""
    async with sdk.responses_websocket_session(**options) as session:
        # Traces are off unless somebody asks for them, here as everywhere.
        yield ResponsesWebSocketSession(session.provider, replace(session.run_config, tracing_disabled=True))
