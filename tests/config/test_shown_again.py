"""What `--show-config` prints can be given to `--config`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.cli import main
from openai_responses_mcp.config.loading import Configuration, Flags, load, show

Load = Callable[..., Configuration]
Problems = Callable[..., list[str]]

FULL = """
openai: {base_url: "http://localhost:1/v1"}
request: {store: true, omit: [truncation], extra: {service_tier: flex}, max_output_tokens: 9}
model_profiles: {answer: {model: a}, answer_quick: {model: q, background: true}}
search: {timezone: Europe/Berlin, user_location: {country: DE}, defaults: {domains: [a.org]}}
server: {hand_over_after_s: null, tools: [iris]}
"""


@pytest.mark.parametrize("text", ["", FULL, "model_profiles: {answer: null}", "request: {store: false}"])
def test_a_shown_configuration_can_be_loaded_and_shown_again(configured: Load, text: str) -> None:
    shown = show(configured(text), {})
    for given in (shown, shown["effective"]):
        again = configured(json.dumps(given))
        assert show(again, {})["effective"] == shown["effective"]
        assert again.warnings == ()


def test_profiles_are_shown_as_they_are_used(configured: Load) -> None:
    def profiles(text: str) -> Any:
        return show(configured(text), {})["effective"]["model_profiles"]

    usual = {"model": "gpt-5.2", "reasoning_effort": "medium", "verbosity": "medium"}
    assert profiles("") == {
        "answer": {**usual, "background": False},
        "answer_detailed": {**usual, "background": True},
        "answer_quick": {**usual, "background": False},
    }
    assert profiles("request: {store: false}")["answer_detailed"]["background"] is False
    assert profiles("model_profiles: {answer: null}") == dict.fromkeys(("answer", "answer_detailed", "answer_quick"))


def test_the_printed_text_itself_can_be_given_warnings_and_all(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    environ = {"HOME": str(tmp_path), "MODEL_ANSWER": "o3"}
    assert main(["--show-config", "--config", "/no/such/file"], environ) == 0
    file = tmp_path / "shown.json"
    file.write_text(capfd.readouterr().err, "utf-8")
    assert file.read_text("utf-8").startswith("openai-responses-mcp: WARNING: ")
    settings = load(Flags(config=str(file)), {"HOME": str(tmp_path)}).settings
    assert settings.model_profiles.answer is not None
    assert settings.model_profiles.answer.model == "o3"


def test_a_problem_in_it_is_reported_with_its_line(problems: Problems) -> None:
    text = '{"version": "0.9.0",\n"sources": {},\n"effective": {\n"policy": {"max_citations": 99}}}'
    assert problems(text) == [
        "config.yaml:4: policy.max_citations must be a whole number between 1 and 10 (found 99)",
    ]


def test_a_masked_value_in_a_configuration_is_a_problem(problems: Problems, configured: Load) -> None:
    configuration = configured("openai: {base_url: 'https://u:secret-word@gateway.example/v1'}")
    text = json.dumps(show(configuration, {}), indent=1)
    [problem] = problems(text)
    assert problem.startswith("config.yaml:")
    assert problem.endswith("openai.base_url was masked when it was shown: write it out again")
