import json
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.domain.models import Answer, Citation, Usage
from openai_responses_mcp.server.tool_results import tool_result
from openai_responses_mcp.server.tools import TOOLS, Tool

ANSWER, IRIS = TOOLS["answer"], TOOLS["iris"]

FOUND = Answer(
    text="Because. 日本",
    used_search=True,
    citations=(
        Citation("https://a.example", "2026-01-02", "A", "published"),
        Citation("oai-weather", "2026-11-16", None, "accessed"),
    ),
    model="gpt-5.2",
    response_id="resp_1",
    usage=Usage(1, 2, 3),
    search_count=2,
)
BARE = Answer(text="Because.", used_search=False, citations=(), model="gpt-5.2")


def test_missing_parts_of_an_answer_are_left_out() -> None:
    result = tool_result(ANSWER, BARE)
    fields = {"answer": "Because.", "used_search": False, "citations": [], "model": "gpt-5.2"}
    assert [json.loads(block["text"]) for block in result["content"]] == [fields]
    assert result["structuredContent"] == fields
    assert result["_meta"] == {"openai-responses-mcp/searches": 0}


@pytest.mark.parametrize("tool", [ANSWER, IRIS], ids=["answer", "iris"])
def test_sources_that_were_left_out_are_named_beside_the_answer(tool: Tool) -> None:
    answer = replace(BARE, left_out=("https://x.example/1", "https://y.example"))
    assert tool_result(tool, answer)["_meta"] == {
        "openai-responses-mcp/searches": 0,
        "openai-responses-mcp/left_out": ["https://x.example/1", "https://y.example"],
    }


def test_the_response_id_can_be_kept_out_of_the_text_but_stays_in_the_structure() -> None:
    result = tool_result(ANSWER, FOUND, shows_response_id=False)
    assert len(result["content"]) == 1
    assert result["structuredContent"]["response_id"] == "resp_1"


@pytest.mark.parametrize(
    ("answer", "shows", "text", "structure"),
    [
        (
            FOUND,
            True,
            "Because. 日本\n\n[Response ID: resp_1]",
            {"answer": "Because. 日本", "response_id": "resp_1"},
        ),
        (FOUND, False, "Because. 日本", {"answer": "Because. 日本", "response_id": "resp_1"}),
        (BARE, True, "Because.", {"answer": "Because."}),
    ],
)
def test_iris_gives_plain_text_with_the_id_at_its_end(
    answer: Answer, shows: bool, text: str, structure: dict[str, Any]
) -> None:
    result = tool_result(IRIS, answer, shows_response_id=shows)
    assert result["content"] == [{"type": "text", "text": text}]
    assert result["structuredContent"] == structure
