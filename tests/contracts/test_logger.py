"""What may be relied on from a `Logger`."""

import os
from abc import abstractmethod
from pathlib import Path
from typing import Protocol

import pytest

from openai_responses_mcp.adapters.log.structlog_logger import StructlogLogger
from openai_responses_mcp.domain.ports import Logger
from tests.fakes import WAIT_SECONDS, FakeClock, FakeLogger

Written = list[tuple[str, str]]


class Log(Protocol):
    """A logger, and the level and event of each line that it has written."""

    logger: Logger

    @abstractmethod
    def written(self) -> Written: ...


class FakeLog(Log):
    def __init__(self, folder: Path, *, is_debugging: bool) -> None:
        self._fake = FakeLogger(is_debugging=is_debugging)
        self.logger = self._fake

    def written(self) -> Written:
        return [(level, event) for level, event, _ in self._fake.lines]


class StructlogLog(Log):
    """Its stderr is a file, so that it need not be read meanwhile."""

    def __init__(self, folder: Path, *, is_debugging: bool) -> None:
        self._stderr = folder / "stderr"
        self._descriptor = os.open(self._stderr, os.O_WRONLY | os.O_CREAT)
        self._structlog = StructlogLogger(
            now=FakeClock().now, mask=str, is_debugging=is_debugging, stderr=self._descriptor
        )
        self.logger = self._structlog

    def written(self) -> Written:
        self._structlog.close(WAIT_SECONDS)
        os.close(self._descriptor)
        parts = [line.split(" ") for line in self._stderr.read_text("utf-8").splitlines()]
        return [(level, event) for _, level, event, *_ in parts]


@pytest.fixture(params=[pytest.param(FakeLog, id="fake"), pytest.param(StructlogLog, id="structlog")])
def kind(request: pytest.FixtureRequest) -> type[FakeLog | StructlogLog]:
    kind: type[FakeLog | StructlogLog] = request.param
    return kind


@pytest.fixture
def log(kind: type[FakeLog | StructlogLog], tmp_path: Path) -> Log:
    return kind(tmp_path, is_debugging=True)


def test_every_level_is_written_in_order_while_debugging(log: Log) -> None:
    assert log.logger.is_debugging
    log.logger.debug("one")
    log.logger.warning("two")
    log.logger.error("three")
    log.logger.debug("four")
    assert log.written() == [("debug", "one"), ("warning", "two"), ("error", "three"), ("debug", "four")]


def test_debug_lines_are_not_written_otherwise(kind: type[FakeLog | StructlogLog], tmp_path: Path) -> None:
    quiet_log = kind(tmp_path, is_debugging=False)
    assert not quiet_log.logger.is_debugging
    quiet_log.logger.debug("one")
    quiet_log.logger.warning("two")
    quiet_log.logger.error("three")
    assert quiet_log.written() == [("warning", "two"), ("error", "three")]


FACTS: dict[str, object] = {
    "none": None,
    "text": "with spaces, \"quotes\" and \\",
    "lines": "a\nb\r\nc\u2028d\x85e",
    "surrogate": "\ud800",
    "controls": "\x00\x1b[31m",
    "number": 1.5,
    "flag": True,
    "list": ["a", None, {"b": 1}],
    "error": ValueError("oh"),
    "bytes": b"\xff",
    "level": "a fact may be called like a part of the line",
    "time": "or like this",
    "logger": "or this",
}  # fmt: skip


def test_one_event_is_one_line_whatever_its_facts_are(log: Log) -> None:
    for name, fact in FACTS.items():
        log.logger.debug("fact", **{name: fact})
    log.logger.warning("all", **FACTS)
    assert log.written() == [("debug", "fact")] * len(FACTS) + [("warning", "all")]
