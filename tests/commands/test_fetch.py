"""`--fetch`: the answer on stdout, the reason of a failure on stderr. On a terminal: tests/e2e/test_terminal.py."""

from pathlib import Path

import pytest

from openai_responses_mcp.cli import main
from tests.commands.test_ask import logging_as_before
from tests.e2e.client import environment
from tests.e2e.test_terminal import begin
from tests.stand_in.server import StandInThread

__all__ = ["logging_as_before"]


@pytest.fixture
def environ(rehearsal: StandInThread, tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path, OPENAI_BASE_URL=rehearsal.base_url)


def test_the_answer_of_a_running_response_is_all_that_is_written(
    environ: dict[str, str], rehearsal: StandInThread, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--fetch", begin(rehearsal, "text=Because.; queue=0.2")], environ) == 0
    assert capfd.readouterr() == ("Because.\n", "")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("outcome=failed; message=No luck", "The API could not finish the response: ask again. The API says: No luck"),
        ("outcome=refusal", "The model refused to answer"),
        ("cancelled_after=3", "The response was cancelled at the API"),
        ("expires=0", "The API does not have the response resp_"),
    ],
)
def test_a_failure_is_told_on_stderr_with_exit_one(
    environ: dict[str, str], rehearsal: StandInThread, capfd: pytest.CaptureFixture[str], keys: str, reason: str
) -> None:
    assert main(["--fetch", begin(rehearsal, keys)], environ) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"answer failed: {reason}")


def test_a_response_that_takes_too_long_is_a_failure_that_says_how_to_go_on(
    environ: dict[str, str], rehearsal: StandInThread, capfd: pytest.CaptureFixture[str]
) -> None:
    response_id = begin(rehearsal, "hang_after=4")
    assert main(["--fetch", response_id], environ | {"OPENAI_API_TIMEOUT": "500"}) == 1
    assert f"--fetch {response_id}" in capfd.readouterr().err
    assert rehearsal.server.api.background.running == [response_id]


@pytest.mark.parametrize("response_id", ["resp_unknown", "../models", "no id"])
def test_an_id_that_leads_nowhere_is_a_failure(
    environ: dict[str, str], capfd: pytest.CaptureFixture[str], response_id: str
) -> None:
    assert main(["--fetch", response_id], environ) == 1
    assert capfd.readouterr().err.startswith("answer failed: ")
