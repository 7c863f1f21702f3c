"""Command-line parsing: commands, durations, dates, and tool arguments as JSON or from a file."""

import argparse
import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from openai_responses_mcp.commands.words import with_note
from openai_responses_mcp.desk.terminal.console import words_here
from openai_responses_mcp.domain.jsonrpc import UnreadableJson, read_json
from openai_responses_mcp.domain.texts import Sentence, visible
from openai_responses_mcp.gate.approvals.decisions import LONGEST_ARGUMENTS, LONGEST_LIFETIME_SECONDS
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue

_DURATION = re.compile(r"(?:[0-9]{1,9}[smhdw])+", re.ASCII)
_PART = re.compile(r"([0-9]+)([smhdw])", re.ASCII)
_SECONDS: Mapping[str, int] = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}


def nearest(word: str, known: Iterable[str]) -> str:
    """`: did you mean …?`, or an empty text if no known word is close."""
    near = get_close_matches(word.partition("=")[0], list(known), n=1, cutoff=0.6)
    return words_here()(": did you mean {near}?", near=near[0]) if near else ""


class CommandParser(argparse.ArgumentParser):
    """Suggests the nearest command or option for an unknown one."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flags = [flag for action in self._actions for flag in action.option_strings]
            if unknown[0].startswith("-"):
                near = nearest(unknown[0], flags)
                self.error(words_here()("unknown option {word}{near}", word=unknown[0], near=near))
            self.error(words_here()("unknown argument {word}", word=unknown[0]))
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action.choices, Mapping) and value not in action.choices:
            near = nearest(value, action.choices) or f" ({', '.join(action.choices)})"
            self.error(words_here()("unknown command {word}{near}", word=value, near=near))
        super()._check_value(action, value)

    def format_help(self) -> str:
        return with_note(super().format_help(), os.environ)

    def error(self, message: str) -> NoReturn:
        line = words_here()("{mistake} (see {program} --help)", mistake=message, program=self.prog)
        self.exit(2, f"{self.prog}: {visible(line)}\n")


def _wrong(problem: Sentence) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(words_here().of(problem))


def duration(text: str) -> int:
    """The seconds in a duration such as `8h`, `30m`, `1h30m` or `7d`."""
    seconds = 0
    if _DURATION.fullmatch(text):
        seconds = sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if not 1 <= seconds <= LONGEST_LIFETIME_SECONDS:
        raise _wrong(Sentence("{text} is not a duration such as 30m, 8h or 7d (at most ten years)", text=repr(text)))
    return seconds


def port_number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > 65535:
        raise _wrong(Sentence("a port is a number from 0 to 65535"))
    return int(text)


def moment(text: str) -> datetime:
    """A date or a time; local time unless it names a zone."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        raise _wrong(Sentence("{text} is not a date such as 2026-11-01", text=repr(text))) from None


def json_arguments(text: str) -> JsonObject:
    """The JSON object in the text, or in the file that is named after `@`."""
    try:
        read = _content(text.removeprefix("@")) if text.startswith("@") else text
        value: JsonValue = read_json(read)
    except OSError as exc:
        raise _wrong(Sentence("{file} cannot be read: {why}", file=text.removeprefix("@"), why=exc.strerror)) from None
    except (UnreadableJson, UnicodeError) as exc:
        raise _wrong(Sentence("that is not JSON: {problem}", problem=exc)) from None
    if not isinstance(value, dict):
        raise _wrong(Sentence('that is not a JSON object, such as {{"amount": 5}}'))
    return value


def _content(name: str) -> str:
    """Reads more than arguments may have, so that a later check finds what is too long."""
    with Path(name).open(encoding="utf-8-sig") as file:
        return file.read(LONGEST_ARGUMENTS * 2)
