from typing import Any

import pytest

from openai_responses_mcp.domain.errors import InvalidArguments
from openai_responses_mcp.domain.models import Question
from openai_responses_mcp.server.tools import TOOLS, Tool, read_question, unknown_arguments

ANSWER, IRIS = TOOLS["answer"], TOOLS["iris"]
FULL_ARGUMENTS = ["query", "recency_days", "max_results", "domains", "style", "previous_response_id"]
IRIS_ARGUMENTS = [
    "input",
    "searchContextSize",
    "reasoningEffort",
    "model",
    "useCodeInterpreter",
    "previous_response_id",
]


@pytest.mark.parametrize(
    ("name", "description", "arguments", "required"),
    [
        (
            "answer",
            "Search the web when needed and provide balanced, well-sourced answers."
            " This is the standard general-purpose tool.",
            FULL_ARGUMENTS,
            ["query"],
        ),
        (
            "answer_detailed",
            "Perform comprehensive analysis with thorough research and detailed explanations."
            " Best for complex questions requiring deep investigation.",
            FULL_ARGUMENTS,
            ["query"],
        ),
        (
            "answer_quick",
            "Provide fast, concise answers optimized for speed. Best for simple lookups or urgent questions.",
            ["query", "previous_response_id"],
            ["query"],
        ),
        (
            "iris",
            "Ask a model that can search the web, with the arguments of the iris tool.",
            IRIS_ARGUMENTS,
            ["input"],
        ),
        (
            "answer_result",
            'Get the answer of a question that was answered with "Still working". Waits for it for a while;'
            " call it again if the answer is still not there.",
            ["response_id"],
            ["response_id"],
        ),
    ],
)
def test_a_tool_is_described_word_for_word(
    name: str, description: str, arguments: list[str], required: list[str]
) -> None:
    described = TOOLS[name].described()
    assert described["name"] == name
    assert described["description"] == description
    assert described["title"]
    assert described["inputSchema"]["type"] == "object"
    assert list(described["inputSchema"]["properties"]) == arguments
    assert described["inputSchema"]["required"] == required


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_tool_only_reads_and_looks_at_the_open_world(tool: Tool) -> None:
    assert tool.described()["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    }


def test_the_input_schema_says_what_each_argument_takes() -> None:
    schemas = {**ANSWER.described()["inputSchema"]["properties"], **IRIS.described()["inputSchema"]["properties"]}
    facts = {name: {k: v for k, v in schema.items() if k != "description"} for name, schema in schemas.items()}
    assert facts == {
        "query": {"type": "string"},
        "recency_days": {"type": "number", "minimum": 0},
        "max_results": {"type": "number", "minimum": 1, "maximum": 10},
        "domains": {"type": "array", "items": {"type": "string"}},
        "style": {"type": "string", "enum": ["summary", "bullets", "citations-only"]},
        "previous_response_id": {"type": "string"},
        "input": {"type": "string"},
        "searchContextSize": {"type": "string", "enum": ["low", "medium", "high"]},
        "reasoningEffort": {"type": "string", "enum": ["low", "medium", "high"]},
        "model": {"type": "string"},
        "useCodeInterpreter": {"type": "boolean"},
    }
    assert all(schema["description"] for schema in schemas.values())


def test_the_output_schema_is_that_of_the_answer() -> None:
    schema = ANSWER.described()["outputSchema"]
    assert schema["required"] == ["answer", "used_search", "citations"]
    assert list(schema["properties"]) == ["answer", "used_search", "citations", "model", "response_id", "status"]
    assert list(schema["properties"]["citations"]["items"]["properties"]) == [
        "url",
        "title",
        "published_at",
        "date_kind",
    ]
    assert list(IRIS.described()["outputSchema"]["properties"]) == ["answer", "response_id", "status"]


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("answer", "answer"),
        ("answer_detailed", "answer_detailed"),
        ("answer_quick", "answer_quick"),
        ("iris", "answer"),
    ],
)
def test_a_tool_asks_with_its_profile_and_leaves_the_rest_open(name: str, profile: str) -> None:
    assert read_question(TOOLS[name], {"query": "Q", "input": "Q"}) == Question("Q", profile=profile)


def test_all_arguments_of_answer_are_read() -> None:
    arguments = {
        "query": " Why? ",
        "recency_days": 0,
        "max_results": 10,
        "domains": [" a.example ", "b.example"],
        "style": "citations-only",
        "previous_response_id": "resp_1",
    }
    assert read_question(ANSWER, arguments) == Question(
        text=" Why? ",
        recency_days=0,
        max_results=10,
        domains=("a.example", "b.example"),
        style="citations-only",
        previous_response_id="resp_1",
    )


def test_all_arguments_of_iris_are_read() -> None:
    arguments = {
        "input": "Why?",
        "searchContextSize": "high",
        "reasoningEffort": "low",
        "model": "o3",
        "useCodeInterpreter": True,
        "previous_response_id": "resp_1",
    }
    assert read_question(IRIS, arguments) == Question(
        text="Why?",
        search_context_size="high",
        reasoning_effort="low",
        model="o3",
        use_code_interpreter=True,
        previous_response_id="resp_1",
    )


def test_null_for_an_optional_argument_is_absent() -> None:
    assert read_question(ANSWER, {"query": "Q", **dict.fromkeys(FULL_ARGUMENTS[1:])}) == Question("Q")


@pytest.mark.parametrize(("text", "number"), [("007", 7), ("1.5", 1.5), ("100000000000000000000", 1e20), ("0.00", 0)])
def test_ascii_digits_count_as_the_number(text: str, number: float) -> None:
    assert read_question(ANSWER, {"query": "Q", "recency_days": text}).recency_days == number


NOT_BLANK = "must be a string that is not blank"
NO_DAYS = "recency_days must be a number, 0 or more"
NO_RESULTS = "max_results must be a number from 1 to 10"
NO_DOMAINS = "domains must be a list of domain names"
NO_STYLE = "style must be one of summary, bullets, citations-only"
NO_PREVIOUS = "previous_response_id must be the response id of an earlier answer"


def test_a_bad_argument_of_answer_is_named_with_what_it_takes() -> None:
    cases: list[tuple[str, str, list[Any]]] = [
        ("query", "query is required", [None]),
        ("query", f"query {NOT_BLANK}", ["", " \n\t", "\u3000", 7]),
        ("recency_days", NO_DAYS, [-1, "-1", "", " 7", "7\n", "1e3", ".5", "1_0"]),
        ("recency_days", NO_DAYS, ["７", "9" * 400, True, [], float("inf")]),
        ("max_results", NO_RESULTS, [0.99, 10.01, "0", True]),
        ("domains", NO_DOMAINS, ["a.example", [1], [""]]),
        ("style", NO_STYLE, ["Bullets", "summary ", ["summary"]]),
        ("previous_response_id", NO_PREVIOUS, [" ", 1]),
    ]
    for name, reason, values in cases:
        for value in values:
            with pytest.raises(InvalidArguments) as refusal:
                read_question(ANSWER, {"query": "Q", name: value})
            assert str(refusal.value) == reason, value


def test_a_bad_argument_of_iris_is_named_with_what_it_takes() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"input": " "}, f"input {NOT_BLANK}"),
        ({"input": "Q", "searchContextSize": "huge"}, "searchContextSize must be one of low, medium, high"),
        ({"input": "Q", "model": ""}, "model must be a model id"),
        ({"input": "Q", "useCodeInterpreter": 1}, "useCodeInterpreter must be true or false"),
    ]
    for arguments, reason in cases:
        with pytest.raises(InvalidArguments) as refusal:
            read_question(IRIS, arguments)
        assert str(refusal.value) == reason


def test_arguments_of_another_tool_are_ignored_however_bad() -> None:
    arguments = {"query": "Q", "max_results": "many", "style": 7, "temperature": 2}
    quick = TOOLS["answer_quick"]
    assert read_question(quick, arguments) == Question("Q", profile="answer_quick")
    assert unknown_arguments(quick, arguments) == ["max_results", "style", "temperature"]
    assert unknown_arguments(ANSWER, arguments) == ["temperature"]


def test_a_conversation_cannot_go_on_when_the_api_keeps_no_responses() -> None:
    with pytest.raises(InvalidArguments, match=r"^previous_response_id cannot be used: request\.store is false"):
        read_question(ANSWER, {"query": "Q", "previous_response_id": "resp_1"}, keeps_responses=False)
    assert read_question(ANSWER, {"query": "Q"}, keeps_responses=False) == Question("Q")
