"""What the terminal's commands share, and how they write: sentences for people, JSON for programs.

Texts of servers, models and files are shown without invisible characters. They never start a line: our own words or a
bar come first. Lines fit the width of a terminal; in a pipe they are complete and without colours.
"""

import json
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TextIO

from rich.cells import cell_len, chop_cells, set_cell_size

from openai_responses_mcp.desk.page.desk import DeskParts
from openai_responses_mcp.desk.words import Words
from openai_responses_mcp.domain.texts import language_of, revealed, revealed_json, visible
from openai_responses_mcp.gate.approvals.models import ApprovalRecord
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, shown_json
from openai_responses_mcp.gate.reasons import shown

BAR = "│ "
GAP = "  "
_LONG_TEXT = 200
_NARROWEST = 24
_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


class Paper:
    """`width` is None if nothing is cut or wrapped, as in a pipe."""

    def __init__(self, width: int | None = None, *, has_colours: bool = False) -> None:
        self.width = None if width is None else max(width, _NARROWEST)
        self._has_colours = has_colours

    def narrower(self, columns: int) -> "Paper":
        """With fewer columns."""
        return Paper(None if self.width is None else self.width - columns, has_colours=self._has_colours)

    def painted(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._has_colours and text else text

    def cut(self, text: str, used: int = 0) -> str:
        """What fits beside `used` columns."""
        if self.width is None or cell_len(text) <= self.width - used:
            return text
        return f"{set_cell_size(text, max(self.width - used - 1, 1)).rstrip()}…"

    def fits(self, lines: Sequence[str]) -> bool:
        return self.width is None or all(cell_len(line) <= self.width for line in lines)

    def wrapped(self, line: str, before: str = "") -> Iterator[str]:
        """The line after `before`, which is repeated on each further line; without `before` those are indented."""
        if self.width is None or cell_len(before) + cell_len(line) <= self.width:
            yield before + line
            return
        begin = before or GAP
        pieces = _pieces(line, max(self.width - cell_len(begin), _NARROWEST // 2))
        yield before + next(pieces)
        for piece in pieces:
            yield begin + piece

    def boxed(self, text: str) -> list[str]:
        """A text with its line breaks, behind a bar on every line."""
        return [piece for line in revealed(text).split("\n") for piece in self.wrapped(line, BAR)]

    def arguments(self, arguments: JsonObject, words: Words) -> list[str]:
        """Every argument behind a bar: as JSON, or as text with its line breaks where it is long."""
        lines = []
        for key, value in arguments.items():
            name = shown_json(str(key))
            if isinstance(value, str) and ("\n" in value or len(value) > _LONG_TEXT):
                count = lines_in(value)
                says = "1 line, {characters} characters" if count == 1 else "{lines} lines, {characters} characters"
                size = words(says, lines=count, characters=len(value))
                lines += [f"{BAR}{name}: {size}", *(BAR + line for line in self.narrower(len(BAR)).boxed(value))]
            else:
                written = shown_json(value, indent=2).split("\n")
                for line in (f"{name}: {written[0]}", *written[1:]):
                    lines += self.wrapped(line, BAR)
        return lines

    def columns(self, rows: Sequence[Sequence[str]]) -> list[str]:
        """Each column is as wide as its widest cell; the last is cut to fit. Empty columns are dropped."""
        if not rows:
            return []
        used = [at for at, cells in enumerate(zip(*rows, strict=True)) if any(cells)]
        rows = [[row[at] for at in used] or [""] for row in rows]
        widths = [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]
        lines = []
        for *before, last in rows:
            padded = (set_cell_size(cell, wide) for cell, wide in zip(before, widths, strict=False))
            lines.append(self.cut(GAP.join([*padded, last])).rstrip())
        return lines


def _pieces(line: str, room: int) -> Iterator[str]:
    """Pieces that fit, cut after a space unless that leaves a line half empty. Nothing is dropped."""
    while cell_len(line) > room:
        piece = chop_cells(line, room)[0]
        at = piece.rfind(" ") + 1
        if cell_len(piece[:at]) * 2 > room:
            piece = piece[:at]
        yield piece
        line = line[len(piece) :]
    yield line


def lines_in(text: str) -> int:
    """As an editor counts: a line break at the end starts no new line."""
    return text.count("\n") + (not text.endswith("\n"))


def name_shown(name: str) -> str:
    """A name, quoted if it could be mistaken for something else."""
    return name if name.isprintable() and revealed(name) == name and " " not in name else shown_json(name)


def beginning(arguments: JsonObject) -> str:
    """The arguments on one line, for a list; the caller cuts it."""
    return shown_json(arguments) if arguments else ""


_TARGETS = ("path", "file_path", "filename", "file", "destination", "uri", "url")
_TO = ("write", "create", "move", "save", "edit", "append", "send", "post", "put", "copy")


def call_shown(words: Words, tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """A call in a sentence: the tool, and its target if an argument names one."""
    shown = name_shown(tool)
    for name in _TARGETS:
        target = arguments.get(name)
        if isinstance(target, str) and 0 < len(target) <= _LONG_TEXT:
            says = "{tool} to {target}" if tool.rpartition("/")[2].startswith(_TO) else "{tool} of {target}"
            return words(says, tool=shown, target=name_shown(target))
    return shown


# ---------------------------------------------------------------------------------------------------------------------
# Time


def local(moment: str, now: datetime) -> str:
    """Local time, with the date if it is not today."""
    try:
        here = datetime.fromisoformat(moment).astimezone()
    except ValueError:
        return name_shown(moment)
    return f"{here:%H:%M:%S}" if here.date() == now.astimezone().date() else f"{here:%Y-%m-%d %H:%M}"


def seconds_between(earlier: str, later: datetime) -> float:
    try:
        return (later - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


UNITS = ((86_400, "{count} d"), (3_600, "{count} h"), (60, "{count} min"), (1, "{count} s"))


def span(words: Words, seconds: float) -> str:
    """In the largest unit that fits: 12 s, 4 min, 3 h, 2 d."""
    size, unit = next((one for one in UNITS if seconds >= one[0]), UNITS[-1])
    return words(unit, count=max(int(seconds // size), 0))


# ---------------------------------------------------------------------------------------------------------------------
# Writing

PROGRAM = "openai-responses-mcp"


def words_here() -> Words:
    return Words(language_of(os.environ))


class Writer:
    """Writes to stdout: lines for people, or JSON for programs."""

    def __init__(self, *, is_json: bool) -> None:
        width = width_of(sys.stdout)
        has_colours = width is not None and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.paper = Paper(width, has_colours=has_colours)
        self.words = words_here()
        self.is_json = is_json

    def now(self) -> datetime:
        return datetime.now(UTC)

    def say(self, *lines: str) -> None:
        sys.stdout.write(writable("".join(f"{line}\n" for line in lines), encoding()))
        sys.stdout.flush()

    def show(self, facts: JsonValue, *lines: str) -> None:
        """Lines for a person, or the facts as JSON for a program."""
        if self.is_json:
            sys.stdout.write(f"{json_of(facts, encoding())}\n")
            sys.stdout.flush()
        else:
            self.say(*lines)


class Console(Writer):
    """What the commands on a store work with."""

    def __init__(self, parts: DeskParts, *, is_json: bool) -> None:
        super().__init__(is_json=is_json)
        self.parts = parts

    def reason_of(self, record: ApprovalRecord) -> str:
        request = record.request
        return shown(request.reasons, "needs_human", self.words.language, otherwise=request.reason)


def encoding() -> str:
    return sys.stdout.encoding or "utf-8"


def width_of(stream: TextIO) -> int | None:
    """The columns of a terminal; None for any other stream."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def complain(message: str, code: int = 2) -> int:
    """Write the message to stderr; returns the exit code."""
    text = f"{PROGRAM}: {visible(words_here().of(message))}"
    sys.stderr.write("".join(f"{line}\n" for line in Paper(width_of(sys.stderr)).wrapped(text)))
    return code


def json_of(value: JsonValue, encoding: str = "utf-8") -> str:
    """JSON without invisible characters."""
    plain = _plain(value)
    text = revealed_json(json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False))
    # If the encoding lacks a character, escape as JSON does: Python's escapes are not JSON.
    return text if writable(text, encoding) == text else json.dumps(plain, indent=2, allow_nan=False)


def writable(text: str, encoding: str) -> str:
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _plain(value: JsonValue) -> JsonValue:
    """NaN and infinity become texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
