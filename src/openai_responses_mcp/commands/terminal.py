"""An answer for somebody at a terminal: live progress where they are watching, the text on stdout, failures on stderr."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from openai_responses_mcp.domain.errors import AnsweringError
from openai_responses_mcp.domain.models import Answer, Progress, ProgressListener
from openai_responses_mcp.domain.texts import harmless, one_line, visible
from openai_responses_mcp.start import Basis

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container

_CLEAR_LINE = "\r\x1b[K"

GetAnswer = Callable[["Container", ProgressListener | None], Awaitable[Answer]]


def show_answer(get_answer: GetAnswer, basis: Basis, *, rehearses: bool, started: Sequence[str]) -> int:
    """The exit code. `started` has the id of the background response that an interrupt cancels, once there is one."""
    try:
        answer = asyncio.run(_wait_for(get_answer, basis, rehearses=rehearses, started=started))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except AnsweringError as exc:
        sys.stderr.write(f"answer failed: {one_line(basis.mask(str(exc)))}\n")
        return 1
    finally:
        basis.logger.close()
    try:
        _write_answer(answer.text)
    except OSError as exc:
        sys.stderr.write(f"cannot write the answer ({exc.strerror})\n")
        return 1
    if sys.stderr.isatty():
        sys.stderr.write(f"\n{one_line(_footnote(answer))}\n")
    return 0


async def _wait_for(get_answer: GetAnswer, basis: Basis, *, rehearses: bool, started: Sequence[str]) -> Answer:
    _listen_for_interrupts()
    if rehearses:
        basis = await basis.rehearsed()
    is_watched = sys.stderr.isatty()
    if is_watched:
        _show_progress(Progress("starting"))
    container = basis.load_container()
    farewell = ""
    try:
        return await get_answer(container, _show_progress if is_watched else None)
    except asyncio.CancelledError:
        is_settled = await container.openai_gateway().settle()
        farewell = _farewell(started, is_settled=is_settled)
        raise
    finally:
        await container.openai_gateway().close()
        sys.stderr.write(f"{_CLEAR_LINE if is_watched else ''}{farewell}")
        sys.stderr.flush()


def _farewell(started: Sequence[str], *, is_settled: bool | None) -> str:
    """Of a question in the background, which goes on at the API unless it is cancelled there."""
    if is_settled is None:
        return ""
    what = one_line(started[0]) if started else "the question"
    if is_settled:
        return f"interrupted; {what} was cancelled at the API\n"
    if started:
        return f"interrupted; the API has not confirmed that {what} is cancelled, so it may go on\n"
    return "interrupted before the API said the id of the response, so it may go on there, and be billed\n"


def _listen_for_interrupts() -> None:
    """On POSIX, asyncio.run alone sleeps on when an interrupt comes in the moment before it waits for the network."""
    task = asyncio.current_task()
    if sys.platform != "win32" and task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)


def _write_answer(text: str) -> None:
    # What a model says must not steer the terminal.
    text = visible(text) if sys.stdout.isatty() else harmless(text)
    # Not every output can spell every letter: a pipe on Windows has the code page of the system.
    encoding = sys.stdout.encoding
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def _show_progress(progress: Progress) -> None:
    sys.stderr.write(f"{_CLEAR_LINE}… {one_line(progress.message)}")
    sys.stderr.flush()


def _footnote(answer: Answer) -> str:
    facts = [answer.model, f"{answer.search_count} searches"]
    if answer.usage:
        facts.append(f"{answer.usage.total_tokens} tokens")
    if answer.response_id:
        facts.append(answer.response_id)
    return f"[{' · '.join(facts)}]"
