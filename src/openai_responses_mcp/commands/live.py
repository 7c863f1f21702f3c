"""What a terminal shows while it waits for an answer: a status line, and below it the answer so far.

The view is redrawn in place and erased at the end; the answer itself is written once, when it is complete. The view
always fits the terminal: lines that wrapped or scrolled could not be erased.

Not `rich.live`: of a text that is too high it shows the beginning, where the end is wanted, and it would have to be
loaded before the first frame.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TextIO

from openai_responses_mcp.domain.models import Progress
from openai_responses_mcp.domain.texts import Sentence, columns, cut, one_line, visible, wrapped

FRAME_SECONDS = 0.1
# The API names a search or a page and goes on at once. A person needs this long to read the name.
HOLD_SECONDS = 1.5
_HANGING = "  "
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_SPINNER = "|/-\\"
_TO_END_OF_LINE = "\x1b[K"
_TO_END_OF_SCREEN = "\x1b[J"
# Escape sequences in rendered lines: styles and link addresses.
_UNSEEN = re.compile(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\")

Render = Callable[[str, int], str]


def is_lively(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether the stream is a terminal that can show movement, colour and links."""
    is_able = environ.get("TERM") not in ("dumb", "unknown") and not environ.get("NO_COLOR")
    if os.name == "nt":
        is_able = is_able and bool(environ.get("WT_SESSION") or environ.get("TERM"))
    return stream.isatty() and is_able


def fitted(text: str, stream: TextIO, paste: str = "") -> str:
    """A message and a command to paste: one line in a pipe; on a terminal wrapped at words, the command on its own line."""
    if not stream.isatty():
        return f"{text} {paste}".rstrip() + "\n"
    room = shutil.get_terminal_size().columns - len(_HANGING) - 1
    return f"\n{_HANGING}".join([*wrapped(text, room), *filter(None, [paste])]) + "\n"


class LiveView:
    """`render` turns the answer so far into lines; without it only the status line is shown. `say` translates."""

    def __init__(
        self,
        stream: TextIO,
        monotonic: Callable[[], float],
        render: Render | None,
        size: Callable[[], os.terminal_size] | None = None,
        say: Callable[[str], str] = str,
    ) -> None:
        self._stream = stream
        self._monotonic = monotonic
        self._render = render
        self._size = size or (lambda: os.get_terminal_size(stream.fileno()))
        self._say = say
        self._started = monotonic()
        self._next: str = Sentence("starting")
        self._message: str = self._next
        self._held_until = 0.0
        self._words = ""
        self._pieces = 0
        self._begins_anew = True
        self._frames = 0
        self._lines: list[str] = []
        self._rendered_for = (0, 0)
        self._drawn: list[int] = []  # the columns of each line that is on the screen

    def hear(self, progress: Progress) -> None:
        """Progress without words comes before a text begins, so earlier words were not the answer."""
        self._next = progress.message
        if '"' in progress.message or "://" in progress.message:  # A query or an address.
            self._message, self._held_until = progress.message, self._monotonic() + HOLD_SECONDS
        if progress.words and self._begins_anew:
            self._words = ""
        self._words += progress.words
        self._pieces += bool(progress.words)
        self._begins_anew = not progress.words

    async def run(self) -> None:
        while True:
            self.draw()
            await asyncio.sleep(FRAME_SECONDS)

    def draw(self) -> None:
        width, height = self._room()
        lines = [self._line(width)]
        if self._render and self._words and height > 1:
            if (self._pieces, width) != self._rendered_for:
                end = _end_of(self._words, 2 * width * height)
                self._lines = self._render(visible(end), width).splitlines()
                self._rendered_for = (self._pieces, width)
            lines += self._lines[1 - height :]
        self._write(self._back(width) + f"{_TO_END_OF_LINE}\n".join(lines) + _TO_END_OF_SCREEN)
        self._drawn = [columns(_UNSEEN.sub("", line)) for line in lines]

    def wipe(self) -> None:
        if self._drawn:
            self._write(self._back(self._room()[0]) + _TO_END_OF_SCREEN)
            self._drawn = []

    def _line(self, width: int) -> str:
        spinner = _SPINNER if _spelled(self._stream, _SPINNER) == _SPINNER else _PLAIN_SPINNER
        self._frames += 1
        now = self._monotonic()
        if now >= self._held_until:
            self._message = self._next
        seconds = int(now - self._started)
        text = f"{spinner[self._frames % len(spinner)]} {seconds} s · {one_line(self._say(self._message))}"
        return _spelled(self._stream, cut(text, width))

    def _back(self, width: int) -> str:
        """Move to where the view begins. A terminal that was made narrower has wrapped its lines."""
        rows = sum(max(1, -(-used // width)) for used in self._drawn)
        return f"\r\x1b[{rows - 1}A" if rows > 1 else "\r"

    def _room(self) -> tuple[int, int]:
        """Columns and lines to use; the last column stays free, because some terminals wrap there."""
        try:
            size = self._size()
        except OSError:
            return 79, 23
        return max(size.columns - 1, 8) if size.columns else 79, max(size.lines - 1, 1) if size.lines else 23

    def _write(self, text: str) -> None:
        # The answer is not lost if the terminal is gone.
        with suppress(OSError):
            self._stream.write(_spelled(self._stream, text))
            self._stream.flush()


def _end_of(words: str, most_letters: int) -> str:
    """More than a screen, from the start of a line if there is one."""
    if len(words) <= most_letters:
        return words
    end = words[-most_letters:]
    return end.partition("\n")[2] or end


def _spelled(stream: TextIO, text: str) -> str:
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
