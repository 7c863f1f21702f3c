"""How long to wait before the API is asked something again: growing exponentially, with full jitter."""

from collections.abc import Iterator

import backoff

# What the API may demand. More is not waited for.
LONGEST_RETRY_AFTER_SECONDS = 60.0

_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 8.0


def growing_waits() -> Iterator[float]:
    """Seconds, without end."""
    growing = backoff.expo(factor=_FIRST_WAIT_SECONDS, max_value=_LONGEST_WAIT_SECONDS)
    next(growing)  # Starts the generator; its first value stands for no wait.
    return map(backoff.full_jitter, growing)
