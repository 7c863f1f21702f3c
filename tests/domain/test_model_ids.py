from typing import get_args

import pytest
from openai.types.shared.chat_model import ChatModel

from openai_responses_mcp.domain.answering import takes_effort, takes_verbosity

# Families from before verbosity; what the SDK learns from now on is not among them.
OLDER = ("gpt-3.5", "gpt-4", "gpt-audio", "chatgpt-4o", "codex-mini", "o1", "o3", "o4")


@pytest.mark.parametrize(
    ("model", "effort", "verbosity"),
    [
        ("gpt-5", True, True),
        ("gpt-5.4-mini-2026-03-17", True, True),
        ("gpt-10.5-mini", True, True),
        ("gpt-4.1", False, False),
        ("gpt-oss-120b", False, False),
        ("o3", True, False),
        ("o1-preview-2024-09-12", False, False),
        ("openai/gpt-6-sol", True, True),
        ("openai/o4-mini", True, False),
        ("my-gpt-5", False, False),
        ("gpt-", False, False),
        ("", False, False),
    ],
)
def test_the_number_in_the_id_says_what_a_model_takes(model: str, effort: bool, verbosity: bool) -> None:
    assert (takes_effort(model), takes_verbosity(model)) == (effort, verbosity)


def test_every_model_that_the_sdk_knows_is_judged_by_its_family() -> None:
    models: tuple[str, ...] = get_args(ChatModel)
    newer = {model for model in models if not model.startswith(OLDER)}
    assert {model for model in models if takes_verbosity(model)} == newer
    assert {model for model in models if takes_effort(model)} == newer | {
        model for model in models if model.startswith(("o3", "o4"))
    }
