"""The log on stderr, and the same lines in the debug file: time, level, event, then the facts as `name=value`.

Each event is one line, whatever it contains, and its secrets are masked. Finished lines go to two `LineSink`s, one for
stderr and one for the file. A failure there never reaches the caller.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from openai_responses_mcp.adapters.log.line_sink import Descriptor, LineSink, RotatingFile
from openai_responses_mcp.domain.ports import Logger

if TYPE_CHECKING:
    import logging
    from datetime import datetime

    from structlog.typing import EventDict, FilteringBoundLogger

SDK_LOGGERS = ("openai", "httpx2", "httpcore2")

# Quoted even if it is a single word: users of the log expect quotes around error texts.
_ALWAYS_QUOTED = {"msg", "body"}

# Not compiled here: `re` compiles and caches them with the first line, and most runs never write one.
_NEEDS_QUOTES = r"[\s\x00-\x1f\x7f\"'\\]|^$"
# Characters that may end a line, move the cursor or change the direction of text, or that UTF-8 cannot encode.
_UNFIT_FOR_A_LINE = r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


# What a late import may raise when descriptors or memory run out, or when the installed files are gone or incomplete.
_LATE_IMPORT_FAILURES = (ImportError, OSError, MemoryError, AttributeError, KeyError)


@contextmanager
def _imports_blocked(package: str) -> Iterator[None]:
    """Make imports of the package fail, unless it is already loaded."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # None makes imports fail.
    try:
        yield
    finally:
        del sys.modules[package]


class StructlogLogger(Logger):
    """Always writes warnings and errors. Writes debug lines, and a debug file, only when debugging."""

    def __init__(
        self,
        *,
        now: "Callable[[], datetime]",
        mask: Callable[[str], str],
        is_debugging: bool,
        debug_file: str | None = None,
        stderr: int = 2,
    ) -> None:
        self._now = now
        self._mask = mask
        self._is_debugging = is_debugging
        self._sinks = [LineSink(Descriptor(stderr), describe_lost=self._lost_line)]
        if is_debugging and debug_file:
            file_sink = LineSink(
                RotatingFile(debug_file),
                describe_lost=self._lost_line,
                on_first_failure=lambda exc: self.warning("cannot write debug file", path=debug_file, msg=exc.strerror),
            )
            # First in the list, so closed first: closing it may cause a warning on stderr.
            self._sinks.insert(0, file_sink)

    @property
    def is_debugging(self) -> bool:
        return self._is_debugging

    def debug(self, event: str, **facts: object) -> None:
        if self._is_debugging:
            self._write("debug", event, facts)

    def warning(self, event: str, **facts: object) -> None:
        self._write("warning", event, facts)

    def error(self, event: str, **facts: object) -> None:
        self._write("error", event, facts)

    def prepare(self) -> None:
        """Import everything that the first line would import."""
        self._render(None, "debug", self._add_time(None, "debug", {"event": "", "level": "debug", "facts": {}}))
        with _imports_blocked("rich"):  # If it is installed, structlog loads it for coloured tracebacks.
            _ = self._structlog

    def close(self, timeout_seconds: float = 0.5) -> None:
        """Write waiting lines for at most `timeout_seconds`. Later lines are dropped."""
        deadline = time.monotonic() + timeout_seconds
        for sink in self._sinks:
            sink.close(max(0.0, deadline - time.monotonic()))

    def _write(self, level: str, event: str, facts: dict[str, object]) -> None:
        try:
            getattr(self._structlog, level)(event, facts=facts)
        except _LATE_IMPORT_FAILURES as exc:
            # The facts are left out: the import that failed may be one that masks them.
            line = f"{_plain_time()} {level} {event} (no details: {type(exc).__name__} in the log itself)"
            _Tee(self._sinks).error(line)

    @cached_property
    def _structlog(self) -> "FilteringBoundLogger":
        # Imported with the first line: the import takes longer than everything else before the first reply, and a
        # server without warnings never needs it.
        import structlog

        logger: FilteringBoundLogger = structlog.wrap_logger(
            _Tee(self._sinks),
            processors=[structlog.processors.add_log_level, self._add_time, self._render],
            wrapper_class=structlog.BoundLogger,
        ).bind()
        return logger

    def _add_time(self, _logger: object, _method: str, entry: "EventDict") -> "EventDict":
        entry["time"] = self._now().isoformat(timespec="milliseconds")
        return entry

    def _render(self, _logger: object, _method: str, entry: "EventDict") -> str:
        facts = [f"{name}={self._fact(name, fact)}" for name, fact in entry["facts"].items() if fact is not None]
        line = " ".join(part for part in (entry["time"], entry["level"], entry["event"], *facts) if part)
        # Masked before escaping: the "n" of an escaped newline would hide where a key begins.
        return re.sub(_UNFIT_FOR_A_LINE, _escaped, self._mask(line))

    def _fact(self, name: str, fact: object) -> str:
        if name == "json" and isinstance(fact, str):
            return fact
        if name in _ALWAYS_QUOTED:
            return self._quoted(str(fact))
        return self._text(fact)

    def _text(self, fact: object) -> str:
        if fact is None:
            return "null"
        if isinstance(fact, bool):
            return "true" if fact else "false"
        if isinstance(fact, Mapping):
            return "{" + ", ".join(f"{self._text(key)}:{self._text(value)}" for key, value in fact.items()) + "}"
        if isinstance(fact, list | tuple | set | frozenset):
            return "[" + ",".join(map(self._text, fact)) + "]"
        text = str(fact)
        return self._quoted(text) if re.search(_NEEDS_QUOTES, text) else text

    def _quoted(self, text: str) -> str:
        # Masked here too: once backslashes are doubled, a secret that contains one is no longer recognised.
        return '"' + self._mask(text).replace("\\", "\\\\").replace('"', '\\"') + '"'

    def _lost_line(self, count: int) -> bytes:
        entry: EventDict = {"event": "log lines lost", "level": "warning", "facts": {"count": count}}
        return _encoded(self._render(None, "warning", self._add_time(None, "warning", entry)))


class _Tee:
    """The logger that structlog calls with each finished line."""

    def __init__(self, sinks: list[LineSink]) -> None:
        self._sinks = sinks

    def _write(self, line: str) -> None:
        data = _encoded(line)
        for sink in self._sinks:
            sink.put(data)

    debug = warning = error = _write


def capture_sdk_logging(logger: Logger) -> None:
    """Send everything from the standard `logging` to this log, even if the SDK has configured `logging` itself.

    The SDK's lines (`OPENAI_LOG`) become debug lines. All others keep their level. Without this, such lines,
    mostly warnings of asyncio, would go to stderr unmasked and block the event loop.
    """
    import logging

    class Forwarding(logging.Handler):
        def __init__(self, highest_level: int) -> None:
            super().__init__()
            self._highest_level = highest_level

        def emit(self, record: logging.LogRecord) -> None:
            level = min(record.levelno, self._highest_level)
            if level >= logging.WARNING or logger.is_debugging:
                write = next(write for least, write in writers if level >= least)
                write("log", logger=record.name, msg=_message_of(record), traceback=_traceback_of(record))

    writers: list[tuple[int, Callable[..., None]]] = [
        (logging.ERROR, logger.error),
        (logging.WARNING, logger.warning),
        (logging.NOTSET, logger.debug),
    ]
    logging.basicConfig(handlers=[Forwarding(logging.CRITICAL)], force=True)
    for name in SDK_LOGGERS:
        sdk_logger = logging.getLogger(name)
        sdk_logger.handlers = [Forwarding(logging.DEBUG)]
        sdk_logger.propagate = False


def _message_of(record: "logging.LogRecord") -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # The text and its arguments do not match.
        return str(record.msg)


def _traceback_of(record: "logging.LogRecord") -> str | None:
    if not record.exc_info or record.exc_info[0] is None:
        return None
    import traceback

    return "".join(traceback.format_exception(record.exc_info[1]))


def _plain_time() -> str:
    """The time in Asia/Tokyo, made without any import."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+09:00", time.gmtime(time.time() + 9 * 3600))


def _encoded(line: str) -> bytes:
    return f"{line}\n".encode()


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"
