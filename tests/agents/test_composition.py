"""How runners are made: what is refused, where the head of the log is kept, and how much they write to `logging`."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents import create_runner
from openai_responses_mcp.agents.composition import apply_log_level
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import FakeJudge
from tests.agents.scenes import LOOK, Scene


def test_a_runner_that_cannot_be_made_says_why() -> None:
    given: list[dict[str, Any]] = [
        {"safety_agent": "me"},
        {"store": "nonsense"},
        {"resume_token_ttl_sec": 0},
        {"audit": "sometimes"},
        {"ask": "politely"},
        {"on_approval_requested": "me"},
    ]
    for options in given:
        with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
            create_runner(**{"safety_agent": FakeJudge(), **options})


async def test_a_head_may_be_kept_anywhere(tmp_path: Path) -> None:
    scene = Scene(LOOK, "all good", audit_head=tmp_path / "head")
    await scene.go()
    verification = await scene.runner.verify_execution_logs()
    assert (verification.is_intact, verification.uncovered) == (True, "")
    assert (tmp_path / "head").exists()


async def test_a_sqlite_file_has_its_head_beside_it(tmp_path: Path, sqlite_url: str) -> None:
    scene = Scene(LOOK, "all good", store=sqlite_url)
    await scene.go()
    assert (tmp_path / "agents.db.head").exists()
    assert (await scene.runner.verify_execution_logs()).uncovered == ""


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("openai_responses_mcp.agents")
    before = logger.level, list(logger.handlers), logger.propagate
    yield logger
    logger.level, logger.handlers, logger.propagate = before


def test_without_the_variable_nothing_is_touched(logger: logging.Logger) -> None:
    before = logger.level, list(logger.handlers)
    apply_log_level({"AGENTS_LOG_LEVEL": " "})
    assert (logger.level, logger.handlers) == before


def test_a_program_that_has_set_up_logging_keeps_its_handlers(logger: logging.Logger) -> None:
    handlers = [logging.NullHandler()]
    logger.handlers = list(handlers)
    apply_log_level({"AGENTS_LOG_LEVEL": "DEBUG"})
    assert (logger.level, logger.handlers) == (logging.DEBUG, handlers)


def test_else_lines_go_to_stderr_once(logger: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    logger.propagate = False
    logger.handlers = []
    for _ in range(2):
        apply_log_level({"AGENTS_LOG_LEVEL": "info"})
    logger.info("something happened")
    logger.debug("in detail")
    assert capsys.readouterr().err == "something happened\n"


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(AgentsError) as caught:
        apply_log_level({"AGENTS_LOG_LEVEL": "loud"})
    assert caught.value.code == "AGENTS-E-RUNNER-CONFIG"
    assert "AGENTS_LOG_LEVEL" in caught.value.message
