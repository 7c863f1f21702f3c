"""What the guard needs from outside besides the two wires: the process of the guarded server, and a log for people."""

from typing import Protocol


class ServerProcess(Protocol):
    async def ended(self) -> int:
        """Wait until it has ended by itself: its exit code, or 128 plus the number of the signal that ended it."""
        ...

    def close_input(self) -> None:
        """It can still read what was sent, and then reaches the end."""
        ...

    async def end(self) -> int:
        """End it and everything it has started, within two seconds in all; as `ended` after that."""
        ...


class Notices(Protocol):
    """One line each on stderr. Returns at once, whatever happens to stderr."""

    def tell(self, line: str) -> None: ...
