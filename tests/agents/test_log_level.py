"""How much the library says, and that it does not get in the way of a program's own logging."""

import logging
from collections.abc import Iterator

import pytest

from openai_responses_mcp.agents.log_level import apply_log_level
from openai_responses_mcp.gate.errors import AgentsError


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
