"""The page about the policy file: its examples are policies."""

import re
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.policy_file import LinearPatterns, parse_policy

PAGE = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_page_are_policies(text: str) -> None:
    assert parse_policy("docs/policy.md", text, LinearPatterns()).problems == ()
