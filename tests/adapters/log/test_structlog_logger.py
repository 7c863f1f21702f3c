import os
import subprocess
import sys
import textwrap
import threading
import traceback
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.log.structlog_logger import StructlogLogger
from openai_responses_mcp.domain.masking import SecretMask

KEY = "sk-proj-ThisIsAMadeUpKey1234567890"
PASSWORD = 'pass"word\\with\neverything'
TOKYO = timezone(timedelta(hours=9))


def now() -> datetime:
    return datetime(2026, 11, 16, 10, 0, 0, 123456, tzinfo=TOKYO)


class Stderr:
    """A pipe in place of stderr, read by a thread until the logger's end of it is closed."""

    def __init__(self) -> None:
        self._reading, self.descriptor = os.pipe()
        self._received = b""
        self._thread = threading.Thread(target=self._read, daemon=True)

    def lines(self) -> list[str]:
        """Everything written; closes the logger's end."""
        if not self._thread.is_alive():
            self._thread.start()
        os.close(self.descriptor)
        self._thread.join(5)
        assert not self._thread.is_alive()
        os.close(self._reading)
        return self._received.decode().split("\n")[:-1]

    def start_reading(self) -> None:
        self._thread.start()

    def _read(self) -> None:
        while chunk := os.read(self._reading, 65536):
            self._received += chunk


@pytest.fixture
def stderr() -> Stderr:
    return Stderr()


@pytest.fixture
def debug_file(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "debug.log"


def logger_for(stderr: Stderr, *, is_debugging: bool = True, debug_file: Path | str | None = None) -> StructlogLogger:
    return StructlogLogger(
        now=now,
        mask=SecretMask([KEY, PASSWORD]),
        is_debugging=is_debugging,
        debug_file=str(debug_file) if debug_file else None,
        stderr=stderr.descriptor,
    )


def line_of(event: str, **facts: object) -> str:
    """The one line this event makes, without time and level."""
    stderr = Stderr()
    logger = logger_for(stderr)
    logger.debug(event, **facts)
    logger.close(5)
    (line,) = stderr.lines()
    assert line.startswith("2026-11-16T10:00:00.123+09:00 debug ")
    return line.removeprefix("2026-11-16T10:00:00.123+09:00 debug ")


def test_line_has_time_level_event_and_facts(stderr: Stderr) -> None:
    logger = logger_for(stderr)
    logger.debug("recv", method="tools/call", id=3)
    logger.warning("slow")
    logger.error("broken", status=500)
    logger.close(5)
    assert stderr.lines() == [
        "2026-11-16T10:00:00.123+09:00 debug recv method=tools/call id=3",
        "2026-11-16T10:00:00.123+09:00 warning slow",
        "2026-11-16T10:00:00.123+09:00 error broken status=500",
    ]


def test_facts_are_shown_in_the_given_order() -> None:
    cases: list[tuple[str, dict[str, object], str]] = [
        ("tools/call", {"name": "answer", "argsKeys": ["query", "domains"], "queryLen": 5}, "tools/call name=answer argsKeys=[query,domains] queryLen=5"),
        (
            "",
            {"profile": "answer", "model": "gpt-5.2", "supports": {"verbosity": True, "reasoning": False}},
            "profile=answer model=gpt-5.2 supports={verbosity:true, reasoning:false}",
        ),
        ("request summary", {"tools": "web_search(on)", "text.verbosity": "off"}, "request summary tools=web_search(on) text.verbosity=off"),
        ("error", {"attempt": 1, "code": None, "msg": "Timeout", "body": 'say "hi"'}, 'error attempt=1 msg="Timeout" body="say \\"hi\\""'),
        ("a", {"empty": "", "path": "C:\\x"}, 'a empty="" path="C:\\\\x"'),
        ("a", {"nested": [None, True, ("b", {"c d": 1.5})]}, 'a nested=[null,true,[b,{"c d":1.5}]]'),
        ("a", {"level": "x", "time": "y", "facts": "z", "method_name": "w"}, "a level=x time=y facts=z method_name=w"),
    ]  # fmt: skip
    for event, facts, line in cases:
        assert line_of(event, **facts) == line


def test_one_event_is_one_line_of_text_that_any_reader_takes() -> None:
    line = line_of("a\nb\r\tc\x1b[31m\x7f", fact="d\ne\u2028\u0085", json='{"x": "\u2029"}\n', items=["f\n", "\u202e"])
    assert line == (
        r'a\nb\r\tc\u001b[31m\u007f fact="d\ne\u2028\u0085" json={"x": "\u2029"}\n items=["f\n",\u202e]'
    )  # fmt: skip


def test_lone_surrogate_is_written_as_an_escape() -> None:
    assert line_of("\ud83d", query="\udc80 x") == r'\ud83d query="\udc80 x"'


def test_secrets_are_masked_wherever_they_are() -> None:
    cases: list[tuple[str, dict[str, object]]] = [
        (f"key {KEY}", {}),
        ("a", {"fact": KEY}),
        ("a", {KEY: 1}),
        ("a", {"fact": "before\nsk-another-key-nobody-told-us"}),
        ("a", {"api_key": "s3cr3t-by-its-name"}),
        (PASSWORD, {"items": [PASSWORD]}),
    ]
    for event, facts in cases:
        line = line_of(event, **facts)
        assert "***" in line
        assert not any(part in line for part in ("MadeUp", "nobody-told", "s3cr3t", "everything"))


def test_traceback_stays_on_its_line_without_the_key(stderr: Stderr, debug_file: Path) -> None:
    logger = logger_for(stderr, debug_file=debug_file)
    try:
        raise ValueError(f"bad key\n{KEY}")
    except ValueError as exc:
        logger.error("call failed unexpectedly", traceback="".join(traceback.format_exception(exc)))
    logger.close(5)
    (line,) = stderr.lines()
    assert 'traceback="Traceback (most recent call last):\\n  File ' in line
    assert line.endswith('ValueError: bad key\\n***\\n"')
    assert debug_file.read_text().splitlines() == [line]


def test_unread_stderr_blocks_neither_ten_thousand_lines_nor_closing(stderr: Stderr, debug_file: Path) -> None:
    logger = logger_for(stderr, debug_file=debug_file)
    for number in range(10_000):
        logger.debug("recv", id=number, text="x" * 1000)
    logger.close(0.2)

    # A late reader finds the beginning, and how much is missing.
    stderr.start_reading()
    logger.close(5)
    *lines, last = stderr.lines()
    assert lines[0].startswith("2026-11-16T10:00:00.123+09:00 debug recv id=0 ")
    assert last == f"2026-11-16T10:00:00.123+09:00 warning log lines lost count={10_000 - len(lines)}"


def test_file_that_cannot_be_opened_brings_one_warning(stderr: Stderr, tmp_path: Path) -> None:
    logger = logger_for(stderr, debug_file=tmp_path)
    for number in range(100):
        logger.debug("recv", id=number)
    logger.close(5)
    warnings = [line for line in stderr.lines() if " debug recv id=" not in line]
    assert len(warnings) == 1
    assert warnings[0].startswith("2026-11-16T10:00:00.123+09:00 warning cannot write debug file path=")


if sys.platform == "linux":

    def test_full_disk_brings_one_warning_and_lines_go_on(stderr: Stderr) -> None:
        logger = logger_for(stderr, debug_file="/dev/full")
        for number in range(100):
            logger.debug("recv", id=number)
        logger.close(5)
        lines = stderr.lines()
        warnings = [line.split(" ", 1)[1] for line in lines if " debug recv id=" not in line]
        assert len(lines) == 101
        assert warnings == ['warning cannot write debug file path=/dev/full msg="No space left on device"']


# What libraries write with `logging` belongs to the whole process, hence one of its own for each of these.

START = f"""
import logging, os, sys
from datetime import datetime, timedelta, timezone
from openai_responses_mcp.adapters.log.structlog_logger import StructlogLogger, capture_sdk_logging
from openai_responses_mcp.domain.masking import SecretMask

def logger_for(is_debugging):
    now = lambda: datetime.now(timezone(timedelta(hours=9)))
    return StructlogLogger(now=now, mask=SecretMask([{KEY!r}]), is_debugging=is_debugging)
"""


def run(program: str, **environ: str) -> list[str]:
    """What the program writes on stderr, without the time."""
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(program)],
        env={**os.environ, **environ},
        capture_output=True,
        timeout=30,
        encoding="utf-8",
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return [line.split(" ", 1)[1] for line in done.stderr.splitlines()]


def test_structlog_is_not_imported_before_the_first_line() -> None:
    lines = run("""
        logger = logger_for(False)
        logger.debug("unheard")
        assert "structlog" not in sys.modules
        logger.warning("heard")
        assert "structlog" in sys.modules
        logger.close(5)
        os._exit(0)
    """)
    assert lines == ["warning heard"]


def test_getting_ready_loads_nothing_for_tracebacks_in_colour() -> None:
    lines = run("""
        logger = logger_for(False)
        logger.prepare()
        assert "structlog" in sys.modules
        assert "rich" not in sys.modules
        logger.warning("heard")
        logger.close(5)
        import rich
        os._exit(0)
    """)
    assert lines == ["warning heard"]


@pytest.mark.parametrize(
    "order", ["capture_sdk_logging(logger); import openai", "import openai; capture_sdk_logging(logger)"]
)
def test_sdk_lines_become_masked_debug_lines(order: str) -> None:
    lines = run(
        f"""
        logger = logger_for(True)
        {order}
        sdk = logging.getLogger("openai._base_client")
        sdk.debug("Request options: %s", {{"headers": {KEY!r}}})
        sdk.error("line\\nbreak")
        logging.getLogger("httpx2").warning("%d apples", "no number")
        try:
            raise ValueError({KEY!r})
        except ValueError:
            logging.getLogger("httpcore2.http11").exception("failed")
        logger.close(5)
        """,
        OPENAI_LOG="debug",
    )
    assert lines[:3] == [
        "debug log logger=openai._base_client msg=\"Request options: {'headers': '***'}\"",
        'debug log logger=openai._base_client msg="line\\nbreak"',
        'debug log logger=httpx2 msg="%d apples"',
    ]
    assert lines[3].startswith('debug log logger=httpcore2.http11 msg="failed" traceback="Traceback ')
    assert lines[3].endswith('ValueError: ***\\n"')
    assert len(lines) == 4


def test_sdk_lines_go_nowhere_when_not_debugging() -> None:
    lines = run(
        """
        logger = logger_for(False)
        capture_sdk_logging(logger)
        import openai
        for name in ("openai", "httpx2", "httpcore2"):
            logging.getLogger(name).debug("unheard")
            logging.getLogger(name).error("unheard")
        logger.close(5)
        """,
        OPENAI_LOG="debug",
    )
    assert lines == []


def test_lines_of_other_libraries_keep_their_level() -> None:
    lines = run("""
        logger = logger_for(False)
        capture_sdk_logging(logger)
        logging.getLogger("asyncio").critical("task failed", exc_info=True)
        logging.getLogger("asyncio").warning("slow")
        logging.getLogger("asyncio").info("unheard")
        logger.close(5)
    """)
    assert lines == ['error log logger=asyncio msg="task failed"', 'warning log logger=asyncio msg="slow"']
