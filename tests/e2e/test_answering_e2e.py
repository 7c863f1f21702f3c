"""Questions asked over the wire, what the API is sent for them, and what comes back."""

from datetime import date, datetime, timedelta

from openai_responses_mcp.adapters.clocks import TOKYO
from openai_responses_mcp.domain.policy import SYSTEM_POLICY
from tests.e2e.client import KEY, Message, Server, answer_in
from tests.e2e.conftest import Start
from tests.stand_in.server import StandInThread


def today() -> date:
    return datetime.now(TOKYO).date()


def text_of(asked: Message) -> str:
    text: str = asked["input"][0]["content"][0]["text"]
    return text


def test_the_api_is_sent_exactly_what_the_contract_says(server: Server, rehearsal: StandInThread) -> None:
    server.ask("What exactly is sent?")
    [request] = rehearsal.server.requests
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


def test_the_configured_tools_are_listed_and_can_be_called(start: Start) -> None:
    server = start(config="server: {tools: [iris, answer]}")
    listed = server.result_of("tools/list")
    result = server.result_of("tools/call", {"name": "iris", "arguments": {"input": "What is the latest release?"}})
    assert [tool["name"] for tool in listed["tools"]] == ["iris", "answer"]
    assert "[Response ID: resp_" in result["content"][0]["text"]
