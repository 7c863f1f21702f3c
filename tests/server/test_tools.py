import pytest

from openai_responses_mcp.server.tools import TOOLS, Tool

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


def test_there_are_five_tools() -> None:
    assert list(TOOLS) == ["answer", "answer_detailed", "answer_quick", "iris", "answer_result"]


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
