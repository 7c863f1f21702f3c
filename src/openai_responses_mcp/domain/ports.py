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
        """One reply of the model. With a listener, reports what is happening while it waits.

        `on_started` hears, once, the id of a response that runs in the background, as soon as the API has said it. It
        hears nothing when the question does not run there. A background response that takes too long raises
        `StillRunning`: it goes on at the API.

        Cancelling the call closes the connection and cancels a background response at the API, also when its id is not
        known yet, but not one that was let go.
        """
        ...

    async def follow(self, response_id: str, on_progress: ProgressListener | None = None) -> ModelReply:
        """The reply of a response that runs, or ran, in the background; waits for it as long as one attempt may last.

        Cancelling this call only stops the wait; the response goes on. Raises `StillRunning` when the time is over,
        `ResponseLost` and `ResponseCancelled` as `look_up`.
        """
        ...

    async def look_up(self, response_id: str) -> ModelReply | Progress:
        """The reply if the response is done, else what is happening: one request, not repeated.

        Raises `ResponseLost` when the API does not have it (any more), `ResponseCancelled` when it was cancelled there,
        `AnswerWithheld` when it failed there, `GatewayOverloaded` while the API is in trouble.
        """
        ...

    async def cancel(self, response_id: str) -> None:
        """Stop a background response at the API. One that is finished or cancelled stays what it is.

        Raises `ResponseLost` when the API does not have it.
        """
        ...

    def let_go(self, response_id: str) -> None:
        """From now on the response goes on whatever happens to the call that asked for it.

        For a call that is answered otherwise: cancel it afterwards, and the response is not cancelled with it.
        """
        ...


class WallClock(Protocol):
    def now(self) -> datetime:
        """This moment, where the user lives; in Asia/Tokyo unless they say otherwise."""
        ...

    def today(self) -> date:
        """The day it is there."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for measuring."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; zero or less gives way to other tasks once."""
        ...


class Logger(Protocol):
    """Writes a line and comes back at once, whatever happens to the place it is written to."""

    @property
    def is_debugging(self) -> bool:
        """Whether debug lines are written at all."""
        ...

    def debug(self, event: str, **facts: object) -> None: ...

    def warning(self, event: str, **facts: object) -> None: ...

    def error(self, event: str, **facts: object) -> None: ...


class CallObserver(Protocol):
    """Hears how calls go. A fault in it never stops a call."""

    def observed(self, call: ObservedCall) -> AbstractContextManager[Callable[[CallFailure], None]]:
        """Around one call. Call what it yields if the call is answered with a failure. Exceptions pass through."""
        ...


class FramingFault(NamedTuple):
    """Bytes that were no message; `reason` says what was wrong with them."""

    reason: str


class Channel(Protocol):
    """Where replies to one message go. Over stdio all messages share one channel, over HTTP each request has its own.

    Nothing here waits or raises. Messages go out whole and in order; a closed channel drops them.
    """

    def send(self, body: bytes) -> None:
        """A message that is not the reply: progress, or a request of the server."""
        ...

    def reply(self, body: bytes, error_code: int | None = None) -> None:
        """The one reply. `error_code` is the code of the JSON-RPC error in it, if it is one."""
        ...

    def withdraw(self) -> None:
        """The request was cancelled, and no reply follows."""
        ...


class Received(NamedTuple):
    """`caller` is who asked, where that is known."""

    body: bytes | FramingFault
    channel: Channel
    caller: str = ""


class Transport(Protocol):
    async def receive(self) -> Received | None:
        """The next message, or a fault where bytes were no message, with its channel. None at the end of input.

        Holds back while the client does not read what was sent to it. Raises `TransportClosed`.
        """
        ...

    def send(self, body: bytes) -> None:
        """A message that belongs to no request. It goes out as on a channel."""
        ...

    async def flush(self) -> None:
        """Wait until everything sent so far is written. Raises `TransportClosed`."""
        ...
