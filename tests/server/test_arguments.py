from typing import Any

import pytest

from openai_responses_mcp.domain.errors import InvalidArguments
from openai_responses_mcp.domain.models import Question
from openai_responses_mcp.server.tools import TOOLS, read_question, unknown_arguments

ANSWER, IRIS = TOOLS["answer"], TOOLS["iris"]


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


@pytest.mark.parametrize("name", ["recency_days", "max_results", "domains", "style", "previous_response_id"])
def test_null_for_an_optional_argument_is_absent(name: str) -> None:
    assert read_question(ANSWER, {"query": "Q", name: None}) == Question("Q")


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("007", 7), ("1.5", 1.5), ("0", 0), ("100000000000000000000", 1e20), ("0.00", 0)]
)
def test_ascii_digits_count_as_the_number(text: str, number: float) -> None:
    assert read_question(ANSWER, {"query": "Q", "recency_days": text}).recency_days == number


def test_an_empty_list_of_domains_is_a_list() -> None:
    assert read_question(ANSWER, {"query": "Q", "domains": []}).domains == ()


NOT_BLANK = "must be a string that is not blank"
NO_DAYS = "recency_days must be a number, 0 or more"
NO_RESULTS = "max_results must be a number from 1 to 10"
NO_DOMAINS = "domains must be a list of domain names"
NO_STYLE = "style must be one of summary, bullets, citations-only"
NO_PREVIOUS = "previous_response_id must be the response id of an earlier answer"


@pytest.mark.parametrize(
    ("name", "reason", "values"),
    [
        ("query", "query is required", [None]),
        ("query", f"query {NOT_BLANK}", ["", " \n\t", "\u3000", 7, True, ["Q"], {}]),
        ("recency_days", NO_DAYS, [-1, -0.5, "-1", "+1", "", " 7", "7\n", "1e3", ".5", "5.", "1_0", "0x1"]),
        ("recency_days", NO_DAYS, ["٧", "７", "9" * 400, True, False, [], {}, float("inf")]),
        ("max_results", NO_RESULTS, [0, 11, 0.99, 10.01, "0", "11", True, [5]]),
        ("domains", NO_DOMAINS, ["a.example", {}, 1, [1], [""], ["a", None]]),
        ("style", NO_STYLE, ["", "Bullets", "summary ", 1, ["summary"], {}]),
        ("previous_response_id", NO_PREVIOUS, ["", " ", 1, [], True]),
    ],
)
def test_a_bad_argument_of_answer_is_named_with_what_it_takes(name: str, reason: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InvalidArguments) as refusal:
            read_question(ANSWER, {"query": "Q", name: value})
        assert str(refusal.value) == reason, value


def test_a_question_is_required_and_its_name_has_one_spelling() -> None:
    for arguments in ({}, {"Query": "Q"}):
        with pytest.raises(InvalidArguments, match=r"^query is required$"):
            read_question(ANSWER, arguments)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"query": "Q"}, "input is required"),
        ({"input": " "}, f"input {NOT_BLANK}"),
        ({"input": "Q", "searchContextSize": "huge"}, "searchContextSize must be one of low, medium, high"),
        ({"input": "Q", "reasoningEffort": "minimal"}, "reasoningEffort must be one of low, medium, high"),
        ({"input": "Q", "model": ""}, "model must be a model id"),
        ({"input": "Q", "useCodeInterpreter": "true"}, "useCodeInterpreter must be true or false"),
        ({"input": "Q", "useCodeInterpreter": 1}, "useCodeInterpreter must be true or false"),
    ],
)
def test_a_bad_argument_of_iris_is_named_with_what_it_takes(arguments: dict[str, Any], reason: str) -> None:
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
