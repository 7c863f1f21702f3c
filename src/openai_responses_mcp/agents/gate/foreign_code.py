"""Judges and rules are code of the user's. Whatever they raise is a failure of theirs, and refuses the call."""

import asyncio
from typing import Final

FAILURES: Final = (Exception, SystemExit, asyncio.CancelledError)


def is_cancellation(failure: BaseException) -> bool:
    """Whether somebody cancels our own task. Code that raises `CancelledError` by itself has only failed."""
    task = asyncio.current_task()
    return isinstance(failure, asyncio.CancelledError) and task is not None and task.cancelling() > 0
