"""Judges and rules are the user's own code. Whatever they raise counts as their failure, and refuses the call."""

import asyncio
from typing import Final

FAILURES: Final = (Exception, SystemExit, asyncio.CancelledError)


def is_cancellation(failure: BaseException) -> bool:
    """Whether our own task is being cancelled. Code that raises `CancelledError` by itself has only failed."""
    task = asyncio.current_task()
    return isinstance(failure, asyncio.CancelledError) and task is not None and task.cancelling() > 0
