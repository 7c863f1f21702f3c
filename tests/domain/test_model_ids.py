from typing import get_args

import pytest
from openai.types.shared.chat_model import ChatModel

from openai_responses_mcp.domain.answering import takes_effort, takes_verbosity

# Families from before verbosity; what the SDK learns from now on is not among them.
OLDER = ("gpt-3.5", "gpt-4", "gpt-audio", "chatgpt-4o", "codex-mini", "o1", "o3", "o4")


@pytest.mark.parametrize(
    ("model", "effort", "verbosity"),
    [
        ("gpt-6-astra", True, True),
        ("gpt-6.1-sol", True, True),
        ("gpt-5.6-luna", True, True),
        ("gpt-5.4-mini-2026-03-17", True, True),
        ("gpt-5.2", True, True),
        ("gpt-5", True, True),
        ("gpt-5-2025-08-07", True, True),
        ("gpt-7", True, True),
        ("gpt-10.5-mini", True, True),
        ("gpt-4.1", False, False),
        ("gpt-4o-mini", False, False),
        ("gpt-4-32k-0613", False, False),
        ("gpt-3.5-turbo-16k", False, False),
        ("gpt-audio-mini-2025-12-15", False, False),
        ("gpt-oss-120b", False, False),
        ("chatgpt-4o-latest", False, False),
        ("codex-mini-latest", False, False),
        ("o4-mini", True, False),
        ("o3", True, False),
        ("o3-mini-2025-01-31", True, False),
        ("o10", True, False),
        ("o1", False, False),
        ("o1-preview-2024-09-12", False, False),
        ("openai/gpt-6-sol", True, True),
        ("openai/o4-mini", True, False),
        ("openai/gpt-4.1", False, False),
        ("my-gpt-5", False, False),
        ("other/gpt-5", False, False),
        ("gpt-", False, False),
        ("gpt-05", False, False),
        ("", False, False),
    ],
)
def test_the_number_in_the_id_says_what_a_model_takes(model: str, effort: bool, verbosity: bool) -> None:
    assert (takes_effort(model), takes_verbosity(model)) == (effort, verbosity)


@pytest.mark.parametrize("model", get_args(ChatModel))
def test_every_model_that_the_sdk_knows_is_judged_by_its_family(model: str) -> None:
    assert takes_verbosity(model) is not model.startswith(OLDER)
    assert takes_effort(model) is (not model.startswith(OLDER) or model.startswith(("o3", "o4")))
