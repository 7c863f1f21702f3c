"""Values out of range are refused where a model is made."""

from collections.abc import Callable
from typing import Any

import pytest

from openai_responses_mcp.agents.runs.models import Extensions, RequestedToolCall, ResumeOptions, RunOptions
from openai_responses_mcp.gate.approvals.models import ResumeToken
from openai_responses_mcp.gate.errors import CODES, AgentsError


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Extensions(policy_profile="lenient"), "AGENTS-E-POLICY-INVALID"),  # type: ignore[arg-type]
        (lambda: Extensions(max_turns=0), "AGENTS-E-RUNNER-CONFIG"),
        (lambda: Extensions(max_tool_calls=1.5), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: Extensions(max_tokens=True), "AGENTS-E-RUNNER-CONFIG"),
        (lambda: Extensions(require_human_approval=1), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: Extensions(tool_calls=({"tool_name": "a"},)), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: RequestedToolCall(""), "AGENTS-E-RUNNER-CONFIG"),
        (lambda: RequestedToolCall("a", [1]), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: RunOptions(extensions={}), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: RunOptions(stream="yes"), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: RunOptions(sdk=[("context", 1)]), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: ResumeOptions(""), "AGENTS-E-RESUME-TOKEN"),
        (lambda: ResumeOptions("t", "x" * 2001), "AGENTS-E-APPROVAL-INVALID"),
    ],
)
def test_a_value_out_of_range_is_refused(make: Callable[[], Any], code: str) -> None:
    with pytest.raises(AgentsError) as caught:
        make()
    assert (caught.value.code, caught.value.category) == (code, CODES[code][0])


def test_a_token_is_not_in_its_repr() -> None:
    assert "hush" not in repr(ResumeToken("hush", "run_1", "2026"))
    assert "hush" not in repr(ResumeOptions("hush"))


def test_an_error_shows_its_code() -> None:
    error = AgentsError("AGENTS-E-STREAM", "cut", details={"run_id": "r"})
    assert str(error) == "AGENTS-E-STREAM: cut"
    assert (error.category, error.details) == ("orchestration", {"run_id": "r"})
