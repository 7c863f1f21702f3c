"""Questions asked over the wire, what the API is sent for them, and what comes back."""

import json
import re
from datetime import date, datetime, timedelta

import pytest

from openai_responses_mcp.adapters.clocks import TOKYO
from openai_responses_mcp.domain.policy import SYSTEM_POLICY
from tests.e2e.client import KEY, Message, Server, answer_in, call
from tests.e2e.conftest import Start, requests_about
from tests.stand_in.server import StandInThread


def today() -> date:
    return datetime.now(TOKYO).date()


def sent(rehearsal: StandInThread, question: str) -> Message:
    """What the API was sent, once, for this question."""
    [request] = requests_about(rehearsal, question)
    asked: Message = request.json
    return asked


def text_of(asked: Message) -> str:
    text: str = asked["input"][0]["content"][0]["text"]
    return text


def with_progress(message: Message, token: int | str) -> Message:
    return {**message, "params": {**message["params"], "_meta": {"progressToken": token}}}


def test_a_timeless_question_is_answered_without_a_search(warm_server: Server) -> None:
    answer = answer_in(warm_server.ask("HTTP 404 の意味は？"))
    assert list(answer) == ["answer", "used_search", "citations", "model"]
    assert answer["used_search"] is False
    assert answer["citations"] == []
    assert answer["model"] == "gpt-5.2"
    assert "Sources:" not in answer["answer"]


def test_a_question_about_today_is_answered_with_dated_sources(warm_server: Server) -> None:
    answer = answer_in(warm_server.ask(f"本日 {today()} の東京の天気は？"))
    assert answer["used_search"] is True
    assert answer["citations"]
    for citation in answer["citations"]:
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", citation["published_at"])
        assert f"- {citation['url']} ({citation['published_at']})" in answer["answer"].partition("\nSources:\n")[2]
    assert "oai-weather" in [citation["url"] for citation in answer["citations"]]


def test_the_result_holds_the_answer_twice_and_says_what_it_took(warm_server: Server) -> None:
    result = warm_server.ask("What is the latest release?")["result"]
    answer, response_id = json.loads(result["content"][0]["text"]), result["structuredContent"]["response_id"]
    kinds = [citation.pop("date_kind") for citation in result["structuredContent"]["citations"]]
    assert result["structuredContent"] == {**answer, "response_id": response_id}
    assert kinds
    assert set(kinds) <= {"published", "accessed"}
    assert result["content"][1] == {"type": "text", "text": f"[Response ID: {response_id}]"}
    assert len(result["content"]) == 2
    assert "isError" not in result
    usage = result["_meta"]["openai-responses-mcp/usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert result["_meta"]["openai-responses-mcp/searches"] == 1


def test_the_api_is_sent_exactly_what_the_contract_says(warm_server: Server, warm_rehearsal: StandInThread) -> None:
    warm_server.ask("What exactly is sent?")
    [request] = requests_about(warm_rehearsal, "What exactly is sent?")
    day = timedelta(days=1)
    hints = (
        f"[Hints] recency_days=60, max_results=5."
        f" today={today()} yesterday={today() - day} tomorrow={today() + day} (Asia/Tokyo)"
    )
    assert (request.method, request.path) == ("POST", "/v1/responses")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {
        "model": "gpt-5.2",
        "instructions": SYSTEM_POLICY,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": f"What exactly is sent?\n{hints}"}]}],
        "tools": [{"type": "web_search"}],
        "include": ["web_search_call.action.sources"],
        "text": {"verbosity": "medium"},
        "reasoning": {"effort": "medium"},
        "truncation": "auto",
        "store": True,
        "stream": True,
    }


def test_the_configuration_shapes_the_request(start: Start, rehearsal: StandInThread) -> None:
    server = start(
        config="""
            request: {max_output_tokens: 99, omit: [truncation, include], extra: {service_tier: flex}}
            model_profiles: {answer_quick: {model: o3-mini}, answer_detailed: {model: gpt-4.1}}
            policy: {max_citations: 1}
            search:
              defaults: {recency_days: 1.5, max_results: 3, domains: [example.com]}
              restrict_to_domains: true
              context_size: high
              user_location: {country: JP, city: Tokyo}
              live: false
        """,
        ANSWER_EFFORT="high",
        ANSWER_VERBOSITY="low",
    )
    answer = answer_in(server.ask("What is the latest release?"))
    server.ask("Quick?", "answer_quick")
    server.ask("Detailed?", "answer_detailed")
    asked, quick, detailed = (request.json for request in rehearsal.server.requests)
    assert len(answer["citations"]) == 1
    assert asked["tools"] == [
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["example.com"]},
            "search_context_size": "high",
            "user_location": {"type": "approximate", "country": "JP", "city": "Tokyo"},
            "external_web_access": False,
        }
    ]
    assert "recency_days=1.5, max_results=3. domains: example.com today=" in text_of(asked)
    assert (asked["max_output_tokens"], asked["service_tier"]) == (99, "flex")
    assert asked["text"] == {"verbosity": "low"}
    assert asked["reasoning"] == {"effort": "high"}
    assert not {"truncation", "include"} & set(asked)
    assert quick["model"] == "o3-mini"
    assert quick["reasoning"] == {"effort": "high"}
    assert "text" not in quick
    assert detailed["model"] == "gpt-4.1"
    assert not {"text", "reasoning"} & set(detailed)


def test_sources_that_slip_through_the_restriction_are_left_out_and_named(start: Start) -> None:
    server = start(config="search: {restrict_to_domains: true}")
    result = server.ask("What is the latest release?", domains=["a.example"])["result"]
    structured, left_out = result["structuredContent"], result["_meta"]["openai-responses-mcp/left_out"]
    assert left_out
    assert all(url.startswith("https://example.com/") for url in left_out)
    assert structured["used_search"] is True
    assert [citation["url"] for citation in structured["citations"] if "://" in citation["url"]] == []


def test_a_conversation_continues_from_a_response_id(warm_server: Server, warm_rehearsal: StandInThread) -> None:
    first = warm_server.ask("Where is Kyoto?")["result"]["structuredContent"]
    second = answer_in(warm_server.ask("And how far is it?", previous_response_id=first["response_id"]))
    assert "Where is Kyoto?" in second["answer"]
    asked = sent(warm_rehearsal, "And how far is it?")
    assert asked["previous_response_id"] == first["response_id"]
    assert asked["instructions"] == SYSTEM_POLICY


@pytest.mark.parametrize(
    ("response_id", "what"),
    [("resp_never_heard_of", "is not known to the API"), ("resp_expired_long_ago", "has expired")],
)
def test_a_lost_previous_response_says_why_and_is_not_retried(
    warm_server: Server, warm_rehearsal: StandInThread, response_id: str, what: str
) -> None:
    question = f"And after {response_id}?"
    error = warm_server.ask(question, previous_response_id=response_id)["error"]
    assert (error["code"], error["message"]) == (-32001, "answer failed")
    assert what in error["data"]["message"]
    assert "ask again without previous_response_id" in error["data"]["message"]
    assert "retries" not in error["data"]
    assert sent(warm_rehearsal, question)


def test_without_storing_no_response_id_is_offered_or_taken(start: Start, rehearsal: StandInThread) -> None:
    server = start(config="request: {store: false}")
    result = server.ask("Why?")["result"]
    refused = server.ask("And then?", previous_response_id="resp_1")["error"]
    assert sent(rehearsal, "Why?")["store"] is False
    assert len(result["content"]) == 1
    assert "response_id" not in result["structuredContent"]
    assert refused["message"] == "answer: invalid arguments"
    assert "request.store" in refused["data"]["reason"]
    assert rehearsal.server.received == 1


def test_iris_answers_in_its_own_shape_once_enabled(start: Start, rehearsal: StandInThread) -> None:
    server = start(config="server: {tools: [iris, answer]}")
    arguments = {
        "input": "What is the latest release?",
        "searchContextSize": "low",
        "reasoningEffort": "high",
        "model": "o4-mini",
        "useCodeInterpreter": True,
    }
    listed = server.result_of("tools/list")
    result = server.result_of("tools/call", {"name": "iris", "arguments": arguments})
    asked = sent(rehearsal, "What is the latest release?")
    structured = result["structuredContent"]
    assert [tool["name"] for tool in listed["tools"]] == ["iris", "answer"]
    assert set(structured) == {"answer", "response_id"}
    assert "\nSources:\n- https://example.com/" in structured["answer"]
    assert result["content"] == [
        {"type": "text", "text": f"{structured['answer']}\n\n[Response ID: {structured['response_id']}]"}
    ]
    assert asked["model"] == "o4-mini"
    assert asked["reasoning"] == {"effort": "high"}
    assert asked["instructions"] == SYSTEM_POLICY
    assert asked["tools"] == [
        {"type": "web_search", "search_context_size": "low"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ]


def test_progress_rises_until_the_reply_and_ends_with_it(server: Server) -> None:
    question = f"What is the weather on {today()}? [rehearse: slow_stream=0.12]"
    server.send(with_progress(call(1, question), "a token"))
    server.reply_to(1)
    assert server.finish() == 0
    reports = [message["params"] for message in server.received if "method" in message]
    messages = [report["message"] for report in reports]
    assert {message.get("method") for message in server.received[: len(reports)]} == {"notifications/progress"}
    assert {report["progressToken"] for report in reports} == {"a token"}
    assert [report["progress"] for report in reports] == sorted({report["progress"] for report in reports})
    assert any("searching" in message for message in messages)
    assert messages[-1] == "writing the answer"
    assert answer_in(server.reply_to(1))["used_search"] is True
