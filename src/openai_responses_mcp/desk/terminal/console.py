"""What the terminal's commands share, and how they write: sentences for people, JSON for programs."""

import json
import math
import os
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO

from openai_responses_mcp.desk.page.desk import DeskParts
from openai_responses_mcp.desk.terminal.text import Paper
from openai_responses_mcp.desk.words import Words
from openai_responses_mcp.domain.texts import language_of, revealed_json, visible
from openai_responses_mcp.gate.approvals.models import ApprovalRecord
from openai_responses_mcp.gate.json_values import JsonValue
from openai_responses_mcp.gate.reasons import shown

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
