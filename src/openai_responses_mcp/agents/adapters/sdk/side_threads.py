"""Threads belong to the run that started them.

Python hands context variables on to tasks, but not to threads and executors. A tool that started a run in one of those
would have left its guarded run. So whatever is started or submitted from inside a guarded run gets the two context
variables of that run. Outside of guarded runs nothing changes.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import Any, TypeVar

from openai_responses_mcp.agents.adapters.sdk.takeover import current_takeover, running_calls

T = TypeVar("T")

_plain_start, _plain_submit = Thread.start, ThreadPoolExecutor.submit


def hand_on_to_threads() -> None:
    """For the whole process; once is enough."""
    if Thread.start is not _start:
        Thread.start = _start  # type: ignore[method-assign]
    if ThreadPoolExecutor.submit is not _submit:
        ThreadPoolExecutor.submit = _submit  # type: ignore[assignment, method-assign]


def _start(self: Thread) -> None:
    if current_takeover.get() is not None:
        self.run = _inside(self.run)  # type: ignore[method-assign]
    _plain_start(self)


def _submit(self: ThreadPoolExecutor, fn: Callable[..., T], /, *args: Any, **options: Any) -> Future[T]:
    if current_takeover.get() is None:
        return _plain_submit(self, fn, *args, **options)
    carried = _inside(fn)
    # A thread that the executor starts now will also work for others later: it must not belong to this run.
    outside = current_takeover.set(None)
    try:
        return _plain_submit(self, carried, *args, **options)
    finally:
        current_takeover.reset(outside)


def _inside(work: Callable[..., T]) -> Callable[..., T]:
    """The same work, inside the run that is going on right now."""
    takeover, calls = current_takeover.get(), running_calls.get()

    def carried(*args: Any, **options: Any) -> T:
        taken, running = current_takeover.set(takeover), running_calls.set(calls)
        try:
            return work(*args, **options)
        finally:
            running_calls.reset(running)
            current_takeover.reset(taken)

    return carried
