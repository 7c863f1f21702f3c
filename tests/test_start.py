import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.log.structlog_logger import SDK_LOGGERS
from openai_responses_mcp.config.loading import Configuration, Flags, load
from openai_responses_mcp.start import basis_of
from tests.fakes import SLOW_SECONDS

KEY = "sk-proj-ThisIsAMadeUpKey1234567890"


@pytest.fixture(autouse=True)
def logging_put_back() -> Iterator[None]:
    """Loading the container takes over the logging of the whole process."""
    loggers = [logging.getLogger(), *map(logging.getLogger, SDK_LOGGERS)]
    before = [(logger.handlers[:], logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate


def configuration(tmp_path: Path, environ: dict[str, str] | None = None, **flags: object) -> Configuration:
    return load(Flags(**flags), {"HOME": str(tmp_path), **(environ or {})})  # type: ignore[arg-type]


def test_the_key_is_read_from_the_variable_that_is_configured(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("openai: {api_key_env: MY_KEY}")
    configured = configuration(tmp_path, config=str(file))
    assert basis_of(configured, {"MY_KEY": KEY, "OPENAI_API_KEY": "another"}).api_key == KEY
    assert basis_of(configured, {"OPENAI_API_KEY": "another"}).api_key == ""


def test_the_mask_knows_every_secret_of_the_environment(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "no-pattern-finds-this", "OTHER_TOKEN": "nor this one", "HOME": "/home/someone"}
    mask = basis_of(configuration(tmp_path), environ).mask
    assert mask("no-pattern-finds-this, nor this one, in /home/someone") == "***, ***, in /home/someone"


def test_the_logger_debugs_as_configured(tmp_path: Path) -> None:
    assert not basis_of(configuration(tmp_path), {}).logger.is_debugging
    file = tmp_path / "debug.log"
    basis = basis_of(configuration(tmp_path, {"DEBUG": str(file)}), {"OPENAI_API_KEY": KEY})
    assert basis.logger.is_debugging
    basis.logger.debug("start", key=KEY)
    basis.logger.close(SLOW_SECONDS)
    time, *rest = file.read_text().split()
    assert rest == ["debug", "start", "key=***"]
    assert time.endswith("+09:00")


def test_logs_of_the_sdk_go_through_our_logger(tmp_path: Path) -> None:
    file = tmp_path / "debug.log"
    basis = basis_of(configuration(tmp_path, {"DEBUG": str(file)}), {"OPENAI_API_KEY": KEY})
    basis.load_container()
    logging.getLogger("openai").warning("sent %s", KEY)
    basis.logger.close(SLOW_SECONDS)
    assert "sent ***" in file.read_text()


def test_loading_the_container_imports_no_web_framework_and_leaves_it_to_others(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from openai_responses_mcp.config.loading import Flags, load\n"
        "from openai_responses_mcp.start import basis_of\n"
        "basis_of(load(Flags(), {'HOME': sys.argv[1]}), {}).load_container()\n"
        "print([name for name in ('starlette', 'uvicorn', 'jwt') if name in sys.modules])\n"
        "import starlette\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SLOW_SECONDS, check=False)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
