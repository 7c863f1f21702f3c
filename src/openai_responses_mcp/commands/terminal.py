"""An answer in a terminal: a live view while it is made, the text on stdout, failures on stderr."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from openai_responses_mcp.adapters.process import EXIT_CODES, WarmUp, listen
from openai_responses_mcp.commands.live import LiveView, is_lively
from openai_responses_mcp.commands.showing import Showing
from openai_responses_mcp.commands.usage import WITHOUT_A_KEY
from openai_responses_mcp.domain.errors import AnsweringError, KeyMissing
from openai_responses_mcp.domain.models import Answer, Progress, ProgressListener
from openai_responses_mcp.domain.texts import one_line
from openai_responses_mcp.start import Basis

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container

GetAnswer = Callable[["Container", ProgressListener | None], Awaitable[Answer]]


def show_answer(
    get_answer: GetAnswer,
    basis: Basis,
    showing: Showing,
    *,
    started: Sequence[str],
    rehearsed: Mapping[str, str] | None = None,
) -> int:
    """The exit code. `started` has the id of the background response that a signal cancels, once there is one.

    `rehearsed` has what a rehearsal knows of earlier questions; without it the API itself is asked.
    """
    codes: list[int] = []
    try:
        answer = asyncio.run(_wait_for(get_answer, basis, showing, codes.append, rehearsed=rehearsed, started=started))
    except asyncio.CancelledError:
        return codes[0]
    except AnsweringError as exc:
        sys.stderr.write(f"answer failed: {one_line(basis.mask(str(exc)))}\n")
        if isinstance(exc, KeyMissing):
            sys.stderr.write(f"{WITHOUT_A_KEY}\n")
        return 1
    finally:
        basis.logger.close()
    return showing.show(answer)


async def _wait_for(
    get_answer: GetAnswer,
    basis: Basis,
    showing: Showing,
    on_signal: Callable[[int], None],
    *,
    rehearsed: Mapping[str, str] | None,
    started: Sequence[str],
) -> Answer:
    _listen_for_signals(on_signal)
    farewell, is_interrupted = "", False
    try:
        # What is logged would stand in the middle of the view.
        async with _watched(showing, is_quiet=not basis.logger.is_debugging) as on_progress:
            if rehearsed is not None:
                basis = await basis.rehearsed(rehearsed)
            # In a thread, so that the view moves from the start.
            container = await WarmUp(lambda: _loaded(basis, showing)).result()
            if on_progress is not None:
                on_progress(Progress("asking the API"))
            try:
                return await get_answer(container, on_progress)
            except asyncio.CancelledError:
                is_interrupted = True
                raise
            finally:
                is_settled = await container.openai_gateway().close()
                if is_interrupted:
                    farewell = _farewell(started, is_settled=is_settled)
    finally:
        with suppress(OSError):  # The terminal may be gone.
            sys.stderr.write(farewell)
            sys.stderr.flush()


@asynccontextmanager
async def _watched(showing: Showing, *, is_quiet: bool) -> AsyncIterator[ProgressListener | None]:
    """Yields the listener of the live view, None without a terminal to show it. The view is wiped off at the end."""
    if not is_quiet or not is_lively(sys.stderr, showing.environ):
        yield None
        return
    view = LiveView(sys.stderr, time.monotonic, showing.render if showing.is_rendered else None)
    view.draw()
    moving = asyncio.ensure_future(view.run())
    try:
        yield view.hear
    finally:
        moving.cancel()
        view.wipe()


def _loaded(basis: Basis, showing: Showing) -> "Container":
    container = basis.load_container()
    if showing.is_rendered:
        showing.render("", 80)  # Loads what it needs.
    return container


def _farewell(started: Sequence[str], *, is_settled: bool | None) -> str:
    """What became of a question in the background. It goes on at the API unless it is cancelled there."""
    if is_settled is None:
        return ""
    what = one_line(started[0]) if started else "the question"
    if is_settled:
        return f"interrupted; {what} was cancelled at the API\n"
    if started:
        return f"interrupted; the API has not confirmed that {what} is cancelled, so it may go on\n"
    return "interrupted before the API said the id of the response, so it may go on there, and be billed\n"


def _listen_for_signals(react: Callable[[int], None]) -> None:
    """A signal that ends the command cancels its question first. On Windows asyncio.run does so for an interrupt.

    On POSIX, asyncio.run alone sleeps on when an interrupt comes in the moment before it waits for the network.
    """
    task = asyncio.current_task()
    if sys.platform == "win32" or task is None:
        return

    def stop(code: int) -> None:
        react(code)
        task.cancel()

    # A signal that is ignored stays ignored: `nohup` wants that.
    listen(stop, [name for name in EXIT_CODES if signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN])
