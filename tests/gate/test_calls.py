"""What the gate looks at and what it decides, as values."""

from typing import Any

import pytest

from openai_responses_mcp.gate.calls import GateDecision, ToolCallRequest
from openai_responses_mcp.gate.errors import AgentsError


@pytest.mark.parametrize(
    "fields",
    [("maybe", 1, ""), (None, 1, ""), ("allow", 0, ""), ("allow", 6, ""), ("allow", True, ""), ("allow", 1, None)],
)
def test_a_verdict_that_is_none_cannot_be_made(fields: Any) -> None:
    with pytest.raises(AgentsError) as caught:
        GateDecision(*fields)
    assert caught.value.code == "AGENTS-E-GATE-EVAL"


def test_a_request_says_no_more_than_it_was_given() -> None:
    request = ToolCallRequest("look", "function", {})
    assert (request.user_intent, request.run_id, request.tool_call_id) == ("", "", "")
    assert (request.capability_snapshot, request.tool_catalog, request.target_tool) == (None, (), None)
