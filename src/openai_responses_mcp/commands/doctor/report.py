"""The report of a doctor: a line for each check, and at the end the number of problems and where to begin.

In a pipe or a file each check is one line. On a terminal long lines wrap at words, levels have colours, and a command to
paste has its own line.
"""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from openai_responses_mcp.commands.live import is_lively
from openai_responses_mcp.commands.words import speaking
from openai_responses_mcp.domain.texts import Sentence, one_line, wrapped

NOT_SET_UP = "--"
_INDENT = 6
_COLOURS = {"ok": "32", "warn": "33", "FAIL": "1;31", NOT_SET_UP: "2"}


class Line(NamedTuple):
    """`level` is ok, warn, FAIL or `NOT_SET_UP`. What was not checked is not ok."""

    level: str
    what: str
    detail: str
    paste: str = ""
    """A command or a snippet that ends the detail."""

    @property
    def text(self) -> str:
        return one_line(f"{self.what}: {self.detail}")


class CannotReport(Exception):
    """The report cannot be written: the disk is full, for example."""


class Report:
    """`mask` hides secrets. A command to paste is not masked: the placeholder for a key looks like a key."""

    def __init__(self, mask: Callable[[str], str], environ: Mapping[str, str]) -> None:
        self._mask = mask
        self._say = speaking(environ)
        self._width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        self._has_colours = is_lively(sys.stdout, environ)
        self._failed: list[Line] = []
        self._warnings = 0

    def add(self, line: Line) -> None:
        """Raises `CannotReport`."""
        line = line._replace(what=self._mask(self._say(line.what)), detail=self._mask(self._say(line.detail)))
        if line.level == "FAIL":
            self._failed.append(line)
        self._warnings += line.level == "warn"
        begin, paste = f"{line.level:<{_INDENT}}", one_line(line.paste)
        if self._width is None:
            self._write(f"{begin}{line.text} {paste}".rstrip())
            return
        if self._has_colours:
            begin = f"\x1b[{_COLOURS[line.level]}m{begin}\x1b[0m"
        indent = " " * _INDENT
        rows = [*wrapped(line.text, self._width - _INDENT - 1), *filter(None, [paste])]
        self._write(begin + f"\n{indent}".join(rows))

    def end(self) -> int:
        """Writes the last line. The exit code: 1 if something failed. Raises `CannotReport`."""
        text = self._say(_summary(self._failed, self._warnings))
        self._write(text if self._width is None else "\n".join(wrapped(text, self._width - 1)))
        return 1 if self._failed else 0

    def _write(self, text: str) -> None:
        encoding = sys.stdout.encoding or "utf-8"
        try:
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise CannotReport(exc.strerror) from exc


def _summary(failed: Sequence[Line], warnings: int) -> str:
    more = (
        ""
        if not warnings
        else Sentence(" 1 warning.")
        if warnings == 1
        else Sentence(" {count} warnings.", count=warnings)
    )
    if not failed:
        return Sentence("No problems found.{more}", more=more)
    found = Sentence("1 problem found.") if len(failed) == 1 else Sentence("{count} problems found.", count=len(failed))
    return Sentence("{found}{more} Begin with this: {first}", found=found, more=more, first=failed[0].text)
