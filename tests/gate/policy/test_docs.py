"""The page about the policy file: its examples are policies, and every key is on it."""

import re
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.policy_file import LinearPatterns, parse_policy
from openai_responses_mcp.gate.policy.fitting import Fit, RuledCall, fit_of
from openai_responses_mcp.gate.policy.reading import BUDGET_KEYS, CONDITION_KEYS, RULE_KEYS, TOP_KEYS
from tests.agents.fake_policy import FakePaths
from tests.gate.policy.reading import a_rule

PAGE = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_page_are_policies(text: str) -> None:
    assert parse_policy("docs/policy.md", text, LinearPatterns()).problems == ()


def test_every_key_is_explained() -> None:
    assert [key for key in TOP_KEYS if not re.search(rf"^\| [^|]*`{key}`", PAGE, re.MULTILINE)] == []
    assert [key for key in RULE_KEYS if not re.search(rf"^- .*`{key}`:", PAGE, re.MULTILINE)] == []
    assert [key for key in (*CONDITION_KEYS, *BUDGET_KEYS) if f"{key}: " not in PAGE] == []


def test_the_table_of_paths_is_true() -> None:
    cases = [
        (glob, path, is_fit)
        for glob, *cells in re.findall(r"^\| `(~/notes/[^`]*)` \| ([^|]*) \| ([^|]*) \|$", PAGE, re.MULTILINE)
        for cell, is_fit in zip(cells, (True, False), strict=True)
        for path in re.findall(r"`([^`]*)`", cell)
    ]
    assert cases
    paths = FakePaths({"/path/to/notes/link": "/etc"})
    for glob, path, is_fit in cases:
        assert (fit_of(a_rule(when={"path": glob}), RuledCall(("a/b",), {"path": path}), paths) is Fit.YES) is is_fit
