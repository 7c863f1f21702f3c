"""What the domain needs from outside. Adapters inherit these by name; `tests/contracts` says what each must do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import date, datetime

    from openai_responses_mcp.domain.models import (
        CallFailure,
        ModelReply,
        ModelRequest,
        ObservedCall,
        Progress,
        ProgressListener,
        StartListener,
    )


class LLMGateway(Protocol):
    """Every method raises `GatewayError` or `KeyUnusable`, nothing else."""

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        """One reply of the model. `on_progress` is called with the progress meanwhile.

        `on_started` is called once with the id of a background response, as soon as it is known, and never for another
        response. A background response that takes too long raises `StillRunning`: it continues at the API.

        Cancelling the call closes the connection and cancels a background response at the API, even if its id is not
        known yet, unless it was let go.
        """
        ...

    async def follow(self, response_id: str, on_progress: ProgressListener | None = None) -> ModelReply:
        """Wait for the reply of a background response, as long as one attempt may last.

        Cancelling this call only stops the wait. Raises `StillRunning` after that time, and otherwise as `look_up`.
        """
        ...

    async def look_up(self, response_id: str) -> ModelReply | Progress:
        """The reply if the response is finished, else its progress. One request, without retries.

        Raises `ResponseLost` if the API does not have it, `ResponseCancelled` if it was cancelled there,
        `AnswerWithheld` if it failed there, `GatewayOverloaded` while the API is in trouble.
        """
        ...

    async def cancel(self, response_id: str) -> None:
        """Cancel a background response at the API; no effect once finished. Raises `ResponseLost`."""
        ...

    def let_go(self, response_id: str) -> None:
        """From now on, cancelling the call that asked for this response does not cancel the response."""
        ...


class WallClock(Protocol):
    def now(self) -> datetime:
        """In the configured time zone, Asia/Tokyo by default."""
        ...

    def today(self) -> date:
        """In the same time zone."""
        ...

    def monotonic(self) -> float:
        """Seconds for measuring, which never go backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Zero or less lets other tasks run once."""
        ...


class Logger(Protocol):
    """Writes a line and returns at once, even if it cannot be written."""

    @property
    def is_debugging(self) -> bool:
        """True if debug lines are written."""
        ...

    def debug(self, event: str, **facts: object) -> None: ...

    def warning(self, event: str, **facts: object) -> None: ...

    def error(self, event: str, **facts: object) -> None: ...


class CallObserver(Protocol):
    """Observes calls. A fault in it never stops a call."""

    def observed(self, call: ObservedCall) -> AbstractContextManager[Callable[[CallFailure], None]]:
        """Around one call. Call what it yields if the call fails with a reply. Exceptions pass through."""
        ...


class FramingFault(NamedTuple):
    """Bytes that are not a message; `reason` says why."""

    reason: str


class Channel(Protocol):
    """Where replies to one message go. Over stdio all messages share one channel, over HTTP each request has its own.

    Nothing here waits or raises. Messages go out whole and in order; a closed channel drops them.
    """

    def send(self, body: bytes) -> None:
        """Send progress, or a request of the server."""
        ...

    def reply(self, body: bytes, error_code: int | None = None) -> None:
        """Send the reply. `error_code` is the code of its JSON-RPC error, if it has one."""
        ...

    def withdraw(self) -> None:
        """The request was cancelled: no reply follows."""
        ...


class Received(NamedTuple):
    """`caller` is who asked, where that is known."""

    body: bytes | FramingFault
    channel: Channel
    caller: str = ""


class Transport(Protocol):
    async def receive(self) -> Received | None:
        """The next message or framing fault, with its channel. None at the end of input.

        Waits while the client does not read its replies. Raises `TransportClosed`.
        """
        ...

    def send(self, body: bytes) -> None:
        """Send a message that belongs to no request."""
        ...

    async def flush(self) -> None:
        """Wait until everything sent so far is written. Raises `TransportClosed`."""
        ...
