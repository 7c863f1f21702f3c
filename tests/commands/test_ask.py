"""`--ask` and `--fetch`: the answer on stdout, the reason of a failure on stderr. On a terminal: tests/e2e/test_terminal.py."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.log.structlog_logger import SDK_LOGGERS
from openai_responses_mcp.cli import main
from openai_responses_mcp.rehearsal.answers import DEMO_QUESTION
from tests.e2e.client import KEY, environment, run
from tests.e2e.test_terminal import begin
from tests.stand_in.server import StandInThread


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Asking in this process takes over what libraries log; the tests that follow get it back."""
    loggers = [logging.getLogger(name) for name in ("", *SDK_LOGGERS)]
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, handlers, level, propagates in before:
        logger.handlers, logger.propagate = handlers, propagates
        logger.setLevel(level)


@pytest.fixture
def environ(rehearsal: StandInThread, tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url, OPENAI_MAX_RETRIES="1")


def test_the_answer_is_all_that_is_written(environ: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--ask", "What is the weather today?"], environ) == 0
    output = capfd.readouterr()
    assert output.err == ""
    assert re.search(r"\n\nSources:\n(- \S+ \(\d{4}-\d{2}-\d{2}\)\n)+$", output.out)


def test_the_question_is_asked_like_that_of_a_client(environ: dict[str, str], rehearsal: StandInThread) -> None:
    assert main(["--ask=Why?", "--model", "o3"], environ) == 0
    [asked] = rehearsal.server.requests
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.json["model"] == "o3"
    assert asked.json["tools"] == [{"type": "web_search"}]
    assert asked.json["input"][0]["content"][0]["text"].startswith("Why?\n[Hints] ")
    assert asked.json["stream"] is True


@pytest.mark.parametrize(
    ("directive", "reason"),
    [
        (f"status=401; message=Incorrect API key provided: {KEY}", "The API key was refused (401)"),
        ("outcome=refusal", "The model refused to answer"),
    ],
)
def test_a_failure_is_written_to_stderr_with_exit_one(
    environ: dict[str, str], capfd: pytest.CaptureFixture[str], directive: str, reason: str
) -> None:
    assert main(["--ask", f"Why? [rehearse: {directive}]"], environ) == 1
    output = capfd.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"answer failed: {reason}")
    assert output.err.endswith("\n")
    assert KEY not in output.err


def test_a_missing_key_is_a_failure_that_says_where_keys_come_from_and_how_to_do_without(
    environ: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--ask", "Why?"], environ | {"OPENAI_API_KEY": ""}) == 1
    first, second = capfd.readouterr().err.splitlines()
    assert first == "answer failed: Missing API key: set OPENAI_API_KEY"
    assert "https://platform.openai.com/api-keys" in second
    assert second.endswith("openai-responses-mcp --rehearse")


def test_a_rehearsal_without_a_question_shows_what_answers_look_like(environ: dict[str, str]) -> None:
    done = run(environ | {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}, "--rehearse")
    assert done.returncode == 0
    assert done.stderr.decode() == f"openai-responses-mcp: asking the demo question: {DEMO_QUESTION}\n"
    answer, _, sources = done.stdout.decode().partition("\nSources:\n")
    assert "not made by a model" in answer
    assert sources.startswith("- https://www.rfc-editor.org/rfc/rfc9110.html (")


def test_an_answer_that_the_output_cannot_spell_is_written_as_far_as_it_goes(environ: dict[str, str]) -> None:
    done = run(environ | {"PYTHONIOENCODING": "ascii"}, "--ask", "HTTP 404 の意味は？")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"HTTP 404 ???" in done.stdout


def test_the_log_goes_to_stderr_and_the_answer_to_stdout(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "debug.log"
    done = run(environ, "--ask", "Why?", "--debug", str(path))
    assert done.returncode == 0
    assert b"You asked" in done.stdout
    assert path.read_bytes() == done.stderr
    assert b"request summary" in done.stderr
    assert KEY.encode() not in done.stderr


# --fetch


def test_the_answer_of_a_running_response_is_all_that_is_written(
    environ: dict[str, str], rehearsal: StandInThread, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--fetch", begin(rehearsal, "text=Because.; queue=0.2")], environ) == 0
    assert capfd.readouterr() == ("Because.\n", "")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("outcome=failed; message=No luck", "The API could not finish the response: ask again. The API says: No luck"),
        ("cancelled_after=3", "The response was cancelled at the API"),
        ("expires=0", "The API does not have the response resp_"),
    ],
)
def test_a_failed_response_is_written_to_stderr_with_exit_one(
    environ: dict[str, str], rehearsal: StandInThread, capfd: pytest.CaptureFixture[str], keys: str, reason: str
) -> None:
    assert main(["--fetch", begin(rehearsal, keys)], environ) == 1
    output = capfd.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"answer failed: {reason}")


def test_a_response_that_takes_too_long_is_a_failure_that_says_how_to_go_on(
    environ: dict[str, str], rehearsal: StandInThread, capfd: pytest.CaptureFixture[str]
) -> None:
    response_id = begin(rehearsal, "hang_after=4")
    assert main(["--fetch", response_id], environ | {"OPENAI_API_TIMEOUT": "500"}) == 1
    assert f"--fetch {response_id}" in capfd.readouterr().err
    assert rehearsal.server.api.background.running == [response_id]


@pytest.mark.parametrize("response_id", ["resp_unknown", "../models"])
def test_an_id_that_leads_nowhere_is_a_failure(
    environ: dict[str, str], capfd: pytest.CaptureFixture[str], response_id: str
) -> None:
    assert main(["--fetch", response_id], environ) == 1
    assert capfd.readouterr().err.startswith("answer failed: ")
