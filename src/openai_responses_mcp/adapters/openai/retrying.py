"""A gateway that retries: never after a timeout, and never if an answer may have been billed.

A question that runs in the background is not asked again: the inner gateway resumes reading its answer.
"""

import asyncio
from collections.abc import Iterator

import backoff

from openai_responses_mcp.domain.cancellation import has_happened_within
from openai_responses_mcp.domain.errors import GatewayError
from openai_responses_mcp.domain.models import (
    ModelReply,
    ModelRequest,
    Progress,
    ProgressListener,
    StartListener,
)
from openai_responses_mcp.domain.ports import LLMGateway, Logger, WallClock
from openai_responses_mcp.domain.texts import Sentence

_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 8.0


def growing_waits() -> Iterator[float]:
    """Endless waits in seconds: each is longer on average, up to a limit."""
    growing = backoff.expo(factor=_FIRST_WAIT_SECONDS, max_value=_LONGEST_WAIT_SECONDS)
    next(growing)  # Starts the generator. Its first value is not a wait.
    return map(backoff.full_jitter, growing)


class RetryingGateway(LLMGateway):
    """Wraps another gateway. Once `is_ending` is set, no retry starts, and a wait for one ends at once."""

    def __init__(
        self, gateway: LLMGateway, clock: WallClock, logger: Logger, *, max_retries: int, is_ending: asyncio.Event
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._logger = logger
        self._max_retries = max_retries
        self._is_ending = is_ending

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        waits, retries, started = growing_waits(), 0, list[str]()

        def note(response_id: str) -> None:
            started.append(response_id)
            if on_started is not None:
                on_started(response_id)

        while True:
            try:
                return await self._gateway.respond(request, on_progress, note)
            except GatewayError as exc:
                exc.retries = retries
                self._logger.debug("error", attempt=retries + 1, **exc.facts, msg=str(exc))
                if started or not self._may_retry(exc):
                    raise
                wait = next(waits) if exc.retry_after_seconds is None else exc.retry_after_seconds
                if on_progress is not None:
                    says, reason = (
                        "waiting {seconds} s to ask again ({reason})",
                        exc.status or Sentence("no connection"),
                    )
                    on_progress(Progress(Sentence(says, seconds=f"{wait:.1f}", reason=reason)))
                if await has_happened_within(self._is_ending, wait, self._clock):
                    raise
            retries += 1

    async def follow(self, response_id: str, on_progress: ProgressListener | None = None) -> ModelReply:
        return await self._gateway.follow(response_id, on_progress)

    async def look_up(self, response_id: str) -> ModelReply | Progress:
        return await self._gateway.look_up(response_id)

    async def cancel(self, response_id: str) -> None:
        await self._gateway.cancel(response_id)

    def let_go(self, response_id: str) -> None:
        self._gateway.let_go(response_id)

    def _may_retry(self, error: GatewayError) -> bool:
        is_allowed = error.retries < self._max_retries and not self._is_ending.is_set()
        return error.is_worth_repeating and not error.demands_long_wait and is_allowed
