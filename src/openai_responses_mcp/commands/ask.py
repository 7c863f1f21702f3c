"""`--ask`: one question, answered in the terminal, with live progress where somebody is watching."""

import asyncio
import signal
import sys
from collections.abc import Mapping

from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.domain.errors import AnsweringError
from openai_responses_mcp.domain.models import Answer, Progress, Question
from openai_responses_mcp.domain.texts import harmless, one_line, visible
from openai_responses_mcp.start import Basis, basis_of

_CLEAR_LINE = "\r\x1b[K"


def ask(question: str, configuration: Configuration, environ: Mapping[str, str], *, rehearses: bool) -> int:
    """The exit code: 0 with the answer on stdout, 1 with the reason on stderr."""
    basis = basis_of(configuration, environ)
    try:
        answer = asyncio.run(_answer(question, basis, rehearses=rehearses))
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


async def _answer(question: str, basis: Basis, *, rehearses: bool) -> Answer:
    _listen_for_interrupts()
    if rehearses:
        basis = await basis.rehearsed()
    is_watched = sys.stderr.isatty()
    if is_watched:
        _show_progress(Progress("starting"))
    container = basis.load_container()
    try:
        return await container.answer_question().answer(Question(text=question), _show_progress if is_watched else None)
    finally:
        await container.openai_gateway().close()
        if is_watched:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()


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
