"""The values of the gate: a call, a tool, a verdict, an error."""

import pickle
from typing import Any

import pytest

from openai_responses_mcp.gate.calls import (
    AgentCapabilitySnapshot,
    GateDecision,
    ToolCallRequest,
    ToolDescription,
    arguments_hash,
)
from openai_responses_mcp.gate.errors import AgentsError, DuplicateRecord, RecordRefused, StoreUnavailable


def test_an_incomplete_verdict_cannot_be_made() -> None:
    cases: list[Any] = [
        (None, 1, ""),
        ("allow", 0, ""),
        ("allow", 6, ""),
        ("allow", 1, None),
    ]
    for fields in cases:
        with pytest.raises(AgentsError) as caught:
            GateDecision(*fields)
        assert caught.value.code == "AGENTS-E-GATE-EVAL"


def test_a_call_request_has_empty_defaults() -> None:
    request = ToolCallRequest("look", "function", {})
    assert (request.user_intent, request.run_id, request.tool_call_id) == ("", "", "")
    assert (request.capability_snapshot, request.tool_catalog, request.target_tool) == (None, (), None)


def test_an_agent_without_a_name_has_a_snapshot_too() -> None:
    assert AgentCapabilitySnapshot.of(object(), ()) == AgentCapabilitySnapshot("")


def test_a_tool_description_has_empty_defaults() -> None:
    tool = ToolDescription("look", "function")
    assert {tool.description, tool.definition_hash, tool.definition_change, tool.directory, tool.origin} == {""}


def test_the_hash_of_arguments_is_the_one_in_stores_of_earlier_versions() -> None:
    assert arguments_hash({"a": 1}) == "1038387d10996d8c3235c93e5f9ed2ffc21e8bf9b60d7e346eb0becb0c0dfed0"


@pytest.mark.parametrize(
    ("error", "reason"),
    [(StoreUnavailable("full"), "unavailable"), (RecordRefused("full"), "unavailable"), (DuplicateRecord("full"), "duplicate")],
)  # fmt: skip
def test_an_error_of_a_store_says_which_one_it_is_also_once_pickled(error: AgentsError, reason: str) -> None:
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert (type(one), str(one), one.details) == (type(error), "AGENTS-E-LOG-STORE: full", {"reason": reason})
