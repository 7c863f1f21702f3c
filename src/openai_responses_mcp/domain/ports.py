"""What the domain needs from outside. Adapters inherit these by name; `tests/contracts` says what each must do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from datetime import date, datetime

    from openai_responses_mcp.domain.models import ModelReply, ModelRequest, ProgressListener


class LLMGateway(Protocol):
    async def respond(self, request: ModelRequest, on_progress: ProgressListener | None = None) -> ModelReply:
        """One reply of the model. With a listener, tells it what is happening while it waits.

        Raises `GatewayError` or `KeyUnusable`, nothing else. Cancelling the call closes the connection.
        """
        ...


class Clock(Protocol):
    def now(self) -> datetime:
        """This moment, in Asia/Tokyo."""
        ...

    def today(self) -> date:
        """The day it is in Asia/Tokyo."""
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


class FramingFault(NamedTuple):
    """Bytes that were no message; `reason` says what was wrong with them."""

    reason: str


class Transport(Protocol):
    async def receive(self) -> bytes | FramingFault | None:
        """The next message body, a fault where bytes were no message, None at the end of input.

        Holds back while the client does not read what was sent to it. Raises `TransportClosed`.
        """
        ...

    def send(self, body: bytes) -> None:
        """Queue one message; it goes out whole and in order. A closed transport takes it and drops it."""
        ...

    async def flush(self) -> None:
        """Wait until everything sent so far is written. Raises `TransportClosed`."""
        ...
