"""An answer in a terminal: a live view while it is made, then the text on stdout; failures on stderr.

It is written once, when it is complete: rendered on a terminal, unchanged into a pipe or a file, or as JSON. Control
characters are made visible on a terminal and left out elsewhere.
"""

import asyncio
import json
import re
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from openai_responses_mcp.adapters.process import EXIT_CODES, WarmUp, listen
from openai_responses_mcp.commands.live import LiveView, fitted, is_lively
from openai_responses_mcp.commands.usage import WITHOUT_A_KEY
from openai_responses_mcp.commands.words import Say, speaking
from openai_responses_mcp.domain.citations import split_sources
from openai_responses_mcp.domain.errors import AnsweringError, KeyMissing, PreviousResponseLost
from openai_responses_mcp.domain.models import Answer, Progress, ProgressListener
from openai_responses_mcp.domain.texts import Sentence, harmless, harmless_json, one_line, visible
from openai_responses_mcp.server.tool_results import tool_result
from openai_responses_mcp.server.tools import Tool
from openai_responses_mcp.start import Basis

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container


INCOMPLETE = 3
# Rendering more than this takes too long.
MOST_RENDERED = 100_000
_DIM, _NOT_DIM = "\x1b[2m", "\x1b[0m"
_ADDRESS = re.compile(r"(?<!\]\()(?:<(?P<bracketed>https?://[^\s<>]+)>|(?P<plain>https?://\S+))", re.IGNORECASE)
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


class Showing:
    """`remember` stores the id of the answer for `--continue`, and returns False if it could not."""

    def __init__(
        self, tool: Tool, environ: Mapping[str, str], *, is_json: bool, remember: Callable[[str], bool]
    ) -> None:
        self.environ = environ
        self.say = speaking(environ)
        self._tool = tool
        self._is_json = is_json
        self._remember = remember

    @property
    def is_rendered(self) -> bool:
        return not self._is_json and is_lively(sys.stdout, self.environ)

    def show(self, answer: Answer) -> int:
        """The exit code: 0, 1 when nothing can be written, 3 for an answer that is incomplete."""
        is_remembered = answer.response_id is not None and self._remember(answer.response_id)
        try:
            _write(self._text(answer))
        except BrokenPipeError:  # The reader has closed the pipe.
            return 0
        except OSError as exc:
            self.tell(Sentence("cannot write the answer ({why})", why=exc.strerror))
            return 1
        if sys.stderr.isatty() and not self._is_json:
            text = one_line(footer(answer, self.say, is_remembered=is_remembered))
            is_dim = is_lively(sys.stderr, self.environ)
            sys.stderr.write(f"\n{_DIM}{text}{_NOT_DIM}\n" if is_dim else f"\n{text}\n")
        if answer.incomplete_reason is None:
            return 0
        reason = one_line(self.say(answer.incomplete_reason))
        self.tell(Sentence("the answer is incomplete ({reason})", reason=reason))
        return INCOMPLETE

    def tell(self, sentence: str) -> None:
        sys.stderr.write(fitted(self.say(sentence), sys.stderr))

    def render(self, text: str, width: int) -> str:
        """Markdown as a terminal shows it."""
        # Imported here: slow, and only a terminal needs it.
        from openai_responses_mcp.adapters.rich_markdown import rendered

        return rendered(text, width)

    def _text(self, answer: Answer) -> str:
        if self._is_json:
            return _json_of(tool_result(self._tool, answer)["structuredContent"])
        if not sys.stdout.isatty():
            return harmless(answer.text) + "\n"
        text = visible(answer.text)
        is_rendered = self.is_rendered and len(text) <= MOST_RENDERED
        text = for_a_terminal(text, answer, self.say, has_links=is_rendered)
        return self.render(text, shutil.get_terminal_size().columns) if is_rendered else text + "\n"


def footer(answer: Answer, say: Say = str, *, is_remembered: bool) -> str:
    searches = answer.search_count
    facts = [Sentence("1 search") if searches == 1 else Sentence("{count} searches", count=f"{searches:,}")]
    if answer.usage:
        tokens = answer.usage.total_tokens
        facts.append(Sentence("1 token") if tokens == 1 else Sentence("{count} tokens", count=f"{tokens:,}"))
    if answer.response_id:
        option = "--continue" if is_remembered else f"--continue {answer.response_id}"
        facts.append(Sentence("continue with {option}", option=option))
    return " · ".join(map(say, facts))


def for_a_terminal(text: str, answer: Answer, say: Say, *, has_links: bool) -> str:
    """The text with our own labels translated, and in its last section sources as Markdown links with their titles.

    The date of a source says whether it was published or read on that day.
    """
    incomplete = Sentence("[Incomplete: {reason}] ", reason=answer.incomplete_reason)
    if answer.incomplete_reason is not None and text.startswith(incomplete):
        text = say(incomplete) + text.removeprefix(incomplete)
    body, section = split_sources(text)
    if not section:
        return text
    heading = Sentence("Sources:")
    if f"\n{body}".endswith(f"\n{heading}"):
        body = body.removesuffix(heading) + say(heading)
    titles = {citation.url: citation.title for citation in answer.citations if citation.title}
    lines = []
    for line in section:
        # The longest last: one address may be the beginning of another.
        cited = sorted((one for one in answer.citations if one.url in line), key=lambda one: len(one.url))
        if cited:
            day, is_published = cited[-1].published_at, cited[-1].date_kind == "published"
            said = Sentence("published {day}", day=day) if is_published else Sentence("read on {day}", day=day)
            line = line.replace(f"({day})", f"({say(said)})")
        lines.append(_with_title(line, titles) if has_links else line)
    return "\n".join([body, *lines])


def _with_title(line: str, titles: Mapping[str, str]) -> str:
    """Links that the model wrote and source ids stay unchanged."""
    address = _ADDRESS.search(line)
    url = (address["bracketed"] or address["plain"]) if address else ""
    if address is None or url not in titles:
        return line
    title = _PUNCTUATION.sub(r"\\\1", one_line(titles[url]))
    link = f"[{title}](<{url.replace('<', '%3C').replace('>', '%3E')}>)"
    return line[: address.start()] + link + line[address.end() :]


def _json_of(value: object) -> str:
    text = harmless_json(json.dumps(value, ensure_ascii=False, indent=2))
    encoding = sys.stdout.encoding
    is_spelled = text.encode(encoding, "replace").decode(encoding) == text
    return (text if is_spelled else json.dumps(value, indent=2)) + "\n"


def _write(text: str) -> None:
    # Not every output can encode every character: a pipe on Windows has the code page of the system.
    encoding = sys.stdout.encoding
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


GetAnswer = Callable[["Container", ProgressListener | None], Awaitable[Answer]]


def show_answer(
    get_answer: GetAnswer,
    basis: Basis,
    showing: Showing,
    *,
    started: Sequence[str],
    rehearsed: Mapping[str, str] | None = None,
) -> int:
    """The exit code. `started` gets the id of the background response, which a signal cancels.

    `rehearsed` has the earlier questions of a rehearsal; None asks the API itself.
    """
    codes: list[int] = []
    try:
        answer = asyncio.run(_wait_for(get_answer, basis, showing, codes.append, rehearsed=rehearsed, started=started))
    except asyncio.CancelledError:
        return codes[0]
    except AnsweringError as exc:
        why = one_line(basis.mask(showing.say(exc.sentence)))
        if isinstance(exc, PreviousResponseLost):
            # The user knows the option, not the argument.
            why = why.replace("previous_response_id", "--continue")
        showing.tell(Sentence("answer failed: {why}", why=why))
        if isinstance(exc, KeyMissing):
            showing.tell(WITHOUT_A_KEY)
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
    def load() -> "Container":
        if showing.is_rendered:
            showing.render("", 80)  # Loads what rendering needs.
        return basis.load_container()

    _listen_for_signals(on_signal)
    farewell, is_interrupted = "", False
    try:
        # Log lines would disturb the view.
        async with _watched(showing, is_quiet=not basis.logger.is_debugging) as on_progress:
            if rehearsed is not None:
                basis = await basis.rehearsed(rehearsed)
            # In a thread, so that the view keeps moving.
            container = await WarmUp(load).result()
            if on_progress is not None:
                on_progress(Progress(Sentence("asking the API")))
            try:
                return await get_answer(container, on_progress)
            except asyncio.CancelledError:
                is_interrupted = True
                raise
            finally:
                is_settled = await container.openai_gateway().close()
                if is_interrupted:
                    farewell = showing.say(_farewell(started, is_settled=is_settled))
    finally:
        with suppress(OSError):  # The terminal may be gone.
            sys.stderr.write(f"{farewell}\n" if farewell else "")
            sys.stderr.flush()


@asynccontextmanager
async def _watched(showing: Showing, *, is_quiet: bool) -> AsyncIterator[ProgressListener | None]:
    """Yields the listener of the live view, or None without a terminal. The view is erased at the end."""
    if not is_quiet or not is_lively(sys.stderr, showing.environ):
        yield None
        return
    render = showing.render if showing.is_rendered else None
    view = LiveView(sys.stderr, time.monotonic, render, say=showing.say)
    view.draw()
    moving = asyncio.ensure_future(view.run())
    try:
        yield view.hear
    finally:
        moving.cancel()
        view.wipe()


def _farewell(started: Sequence[str], *, is_settled: bool | None) -> str:
    """What happened to a background response, which runs on at the API unless it is cancelled there."""
    if is_settled is None:
        return ""
    what = one_line(started[0]) if started else Sentence("the question")
    if is_settled:
        return Sentence("interrupted; {what} was cancelled at the API", what=what)
    if started:
        return Sentence("interrupted; the API has not confirmed that {what} is cancelled, so it may go on", what=what)
    return Sentence("interrupted before the API said the id of the response, so it may go on there, and be billed")


def _listen_for_signals(react: Callable[[int], None]) -> None:
    """A signal cancels the question before the command ends. On Windows asyncio.run does so for an interrupt.

    On POSIX, asyncio.run alone misses an interrupt that comes just before it waits for the network.
    """
    task = asyncio.current_task()
    if sys.platform == "win32" or task is None:
        return

    def stop(code: int) -> None:
        react(code)
        task.cancel()

    # A signal that is ignored stays ignored: `nohup` wants that.
    listen(stop, [name for name in EXIT_CODES if signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN])
