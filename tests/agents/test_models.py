"""Values out of range are refused where a model is made."""

from collections.abc import Callable
from typing import Any

import pytest

from openai_responses_mcp.agents.runs.models import Extensions, RequestedToolCall, ResumeOptions
from openai_responses_mcp.gate.approvals.models import ResumeToken
from openai_responses_mcp.gate.calls import GateDecision, ToolDescription
from openai_responses_mcp.gate.errors import CODES, AgentsError


def test_a_value_out_of_range_is_refused() -> None:
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: Extensions(policy_profile="lenient"), "AGENTS-E-POLICY-INVALID"),  # type: ignore[arg-type]
        (lambda: Extensions(max_turns=0), "AGENTS-E-RUNNER-CONFIG"),
        (lambda: Extensions(max_turns=True), "AGENTS-E-RUNNER-CONFIG"),
        (lambda: Extensions(require_human_approval=1), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: Extensions(tool_calls=({"tool_name": "a"},)), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: RequestedToolCall(""), "AGENTS-E-RUNNER-CONFIG"),
        (lambda: RequestedToolCall("a", [1]), "AGENTS-E-RUNNER-CONFIG"),  # type: ignore[arg-type]
        (lambda: ResumeOptions(""), "AGENTS-E-RESUME-TOKEN"),
        (lambda: ResumeOptions("t", "x" * 2001), "AGENTS-E-APPROVAL-INVALID"),
        (lambda: ResumeOptions("t", 5), "AGENTS-E-APPROVAL-INVALID"),  # type: ignore[arg-type]
        (lambda: GateDecision("allow", 0, ""), "AGENTS-E-GATE-EVAL"),
        (lambda: GateDecision("allow", 6, ""), "AGENTS-E-GATE-EVAL"),
        (lambda: GateDecision("perhaps", 1, ""), "AGENTS-E-GATE-EVAL"),  # type: ignore[arg-type]
    ]
    for make, code in cases:
        with pytest.raises(AgentsError) as caught:
            make()
        assert caught.value.code == code
        assert caught.value.category == CODES[code][0]


def test_a_token_is_not_in_its_repr() -> None:
    assert "hush" not in repr(ResumeToken("hush", "run_1", "2026"))
    assert "hush" not in repr(ResumeOptions("hush"))


def test_lists_are_taken_for_tuples() -> None:
    assert Extensions(tool_calls=[RequestedToolCall("a")]).tool_calls == (RequestedToolCall("a"),)  # type: ignore[arg-type]


def test_a_declared_risk_wins_over_that_of_the_kind() -> None:
    assert ToolDescription("a", "mcp", risk_level=1).own_risk == 1


def test_an_error_shows_its_code() -> None:
    error = AgentsError("AGENTS-E-STREAM", "cut", details={"run_id": "r"})
    assert str(error) == "AGENTS-E-STREAM: cut"
    assert (error.category, error.details) == ("orchestration", {"run_id": "r"})
