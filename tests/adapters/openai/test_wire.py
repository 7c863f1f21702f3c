from typing import Any

import pytest

from openai_responses_mcp.adapters.openai.wire import is_under_way, progress_of, read_reply, read_state, request_body
from openai_responses_mcp.domain.errors import AnswerWithheld, GatewayGarbled
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, Progress, SearchTool, Source, Usage

PLAIN = ModelRequest(model="gpt-4.1", instructions="Be brief.", input_text="Why?")
PLAIN_BODY = {
    "model": "gpt-4.1",
    "instructions": "Be brief.",
    "input": [{"role": "user", "content": [{"type": "input_text", "text": "Why?"}]}],
    "tools": [{"type": "web_search"}],
    "include": ["web_search_call.action.sources"],
    "truncation": "auto",
    "store": True,
    "stream": True,
}


def asked(**fields: Any) -> ModelRequest:
    return ModelRequest(model="gpt-4.1", instructions="Be brief.", input_text="Why?", **fields)


def test_a_request_has_what_was_asked_for_and_nothing_else() -> None:
    cases: list[tuple[ModelRequest, dict[str, Any]]] = [
        (PLAIN, {}),
        (asked(store=False), {"store": False}),
        (asked(background=True), {"background": True}),
        (asked(verbosity="low"), {"text": {"verbosity": "low"}}),
        (asked(reasoning_effort="high"), {"reasoning": {"effort": "high"}}),
        (asked(previous_response_id="resp_1"), {"previous_response_id": "resp_1"}),
        (asked(max_output_tokens=100), {"max_output_tokens": 100}),
        (
            asked(use_code_interpreter=True),
            {"tools": [{"type": "web_search"}, {"type": "code_interpreter", "container": {"type": "auto"}}]},
        ),
        (
            asked(search=SearchTool(allowed_domains=("a.org", "b.org"))),
            {"tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.org", "b.org"]}}]},
        ),
        (
            asked(search=SearchTool(is_live=False)),
            {"tools": [{"type": "web_search", "external_web_access": False}]},
        ),
        (
            asked(search=SearchTool(context_size="high")),
            {"tools": [{"type": "web_search", "search_context_size": "high"}]},
        ),
        (
            asked(search=SearchTool(user_location=())),
            {"tools": [{"type": "web_search", "user_location": {"type": "approximate"}}]},
        ),
        (
            asked(search=SearchTool(user_location=(("country", "JP"), ("city", "Tokyo")))),
            {
                "tools": [
                    {
                        "type": "web_search",
                        "user_location": {"type": "approximate", "country": "JP", "city": "Tokyo"},
                    }
                ]
            },
        ),
    ]
    for request_, changes in cases:
        assert request_body(request_) == PLAIN_BODY | changes


def test_fields_a_gateway_refuses_can_be_left_out() -> None:
    request = asked(verbosity="low", reasoning_effort="low", max_output_tokens=5)
    omit = ("truncation", "include", "store", "text", "reasoning", "max_output_tokens", "stream")
    assert request_body(request, omit) == {
        name: PLAIN_BODY[name] for name in ("model", "instructions", "input", "tools")
    }


def test_extra_fields_can_be_added() -> None:
    extra = {"service_tier": "flex", "metadata": {"team": "a"}}
    assert request_body(PLAIN, ("truncation",), extra) == {
        **{name: value for name, value in PLAIN_BODY.items() if name != "truncation"},
        **extra,
    }


def message(*parts: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "content": list(parts), **fields}


def text(text: Any, *annotations: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": list(annotations)}


def cites(url: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "url_citation", "url": url, **fields}


def search(*sources: Any) -> dict[str, Any]:
    return {"type": "web_search_call", "action": {"type": "search", "query": "q", "sources": list(sources)}}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    return {"status": "completed", "output": list(output), **fields}


def test_a_whole_response_is_read_into_a_reply() -> None:
    reply = read_reply(
        response(
            {"type": "reasoning", "summary": []},
            search(
                {"type": "url", "url": "https://a.org", "date": "2026-01-02"}, {"type": "api", "name": "oai-weather"}
            ),
            search(),
            message(text("It ", cites("https://a.org", title="A")), text("rains.", cites("https://b.org"))),
            id="resp_1",
            model="gpt-5.2-2026",
            usage={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "details": {}},
        )
    )
    assert reply == ModelReply(
        text="It rains.",
        model="gpt-5.2-2026",
        response_id="resp_1",
        cited=(Source("https://a.org", "A", "2026-01-02"), Source("https://b.org")),
        searched=(Source("https://a.org", None, "2026-01-02"), Source("oai-weather", "api", is_url=False)),
        search_count=2,
        usage=Usage(1, 2, 3),
    )


def test_the_text_is_that_of_the_final_answer() -> None:
    cases: list[tuple[list[Any], str]] = [
        ([], ""),
        ([message(text("a")), message(text("b"))], "a\n\nb"),
        ([message(text("aside"), phase="commentary"), message(text("b"), phase="final_answer")], "b"),
        ([message(text("aside"), phase=["odd"]), message(text("b"))], "b"),
        ([{"type": "brand_new", "content": 7}, message({"type": "brand_new"}, text("a"))], "a"),
        ([message(text("half \ud83d of a pair"))], "half \ufffd of a pair"),
    ]
    for output, expected in cases:
        assert read_reply(response(*output)).text == expected


def test_a_refusal_is_distinguished_from_text() -> None:
    reply = read_reply(response(message({"type": "refusal", "refusal": "I \udc00 will not."})))
    assert (reply.text, reply.refusal) == ("", "I \ufffd will not.")


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ({"reason": "max_output_tokens"}, "max_output_tokens"),
        ({"reason": 7}, "unknown"),
        (None, "unknown"),
    ],
)
def test_an_incomplete_response_says_why(details: object, reason: str) -> None:
    body = response(message(text("Half")), status="incomplete", incomplete_details=details)
    assert read_reply(body) == ModelReply(text="Half", incomplete_reason=reason)


def test_without_a_status_a_response_is_complete_whatever_its_details_say() -> None:
    assert read_reply({"output": [], "incomplete_details": {"reason": "odd"}}).incomplete_reason is None


@pytest.mark.parametrize(
    ("fields", "said", "code"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "It broke."}}, "It broke.", "server_error"),
        ({"status": "failed", "error": {"code": 7, "message": None}}, "It gives no reason.", None),
        ({"status": "cancelled"}, "was cancelled at the API", None),
    ],
)
def test_a_failed_response_is_an_error_that_says_why(fields: dict[str, Any], said: str, code: str | None) -> None:
    with pytest.raises(AnswerWithheld, match=said) as caught:
        read_reply({"output": [], **fields})
    assert caught.value.code == code


@pytest.mark.parametrize("status", ["in_progress", 7, "x" * 1000])
def test_a_response_that_is_not_finished_is_garbled(status: object) -> None:
    with pytest.raises(GatewayGarbled, match="not finished") as caught:
        read_reply({"status": status, "output": []})
    assert len(str(caught.value)) < 200


def test_a_reply_with_an_unexpected_shape_is_garbled() -> None:
    cases: list[object] = [
        None,
        {"output": ["text"]},
        {"output": [{"type": "message"}]},
        {"output": [message("text")]},
        {"output": [message(text(7))]},
    ]
    for body in cases:
        with pytest.raises(GatewayGarbled, match="unexpected shape"):
            read_reply(body)


def test_optional_fields_with_unexpected_types_are_ignored() -> None:
    cases: list[dict[str, Any]] = [
        {"model": ["m"]},
        {"id": "", "model": " "},
        {"usage": "odd"},
    ]
    for fields in cases:
        assert read_reply(response(message(text("a")), **fields)) == ModelReply(text="a")


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 1, "output_tokens": 2, "total_tokens": "3"},
        {"input_tokens": 1.5, "output_tokens": 2, "total_tokens": 3},
    ],
)
def test_incomplete_or_fractional_usage_is_ignored(usage: dict[str, Any]) -> None:
    assert read_reply(response(usage=usage)).usage is None


@pytest.mark.parametrize(
    "annotations",
    [None, "odd", {}, [None, 7, "odd", [], cites(7), cites(None), cites(" "), {"type": "url_citation"}]],
)
def test_annotations_that_are_not_citations_are_ignored(annotations: object) -> None:
    part = {"type": "output_text", "text": "a", "annotations": annotations}
    assert read_reply(response(message(part))).cited == ()


def test_only_url_citations_count_and_titles_may_be_missing() -> None:
    annotations = [
        {"type": "file_citation", "url": "https://no.org"},
        cites("https://a.org", title=7),
        cites("https://a.org"),
    ]
    reply = read_reply(response(message(text("a", *annotations))))
    assert reply.cited == (Source("https://a.org"), Source("https://a.org"))


def test_citations_in_a_commentary_are_ignored() -> None:
    aside = message(text("aside", cites("https://a.org")), phase="commentary")
    assert read_reply(response(aside, message(text("a"), phase="final_answer"))).cited == ()


@pytest.mark.parametrize(
    "call",
    [
        {"type": "web_search_call"},
        {"type": "web_search_call", "action": {"type": "open_page", "url": "https://a.org"}},
        {"type": "web_search_call", "action": {"sources": "odd"}},
        search(None, 7, "odd", [], {"type": "url"}, {"type": "url", "url": 7}, {"type": "api", "name": 7}),
    ],
)
def test_a_search_counts_even_when_its_sources_cannot_be_read(call: dict[str, Any]) -> None:
    reply = read_reply(response(call))
    assert (reply.search_count, reply.searched) == (1, ())


def test_the_date_comes_from_the_first_of_three_fields_that_is_valid() -> None:
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({"date": "2026-01-02T23:59:59Z"}, "2026-01-02"),
        ({"published_at": "2026-01-02", "date": "2025-01-01"}, "2026-01-02"),
        ({"published_at": "yesterday", "published_date": "2026-02-31", "date": "2026-01-02"}, "2026-01-02"),
        ({"date": "2026-W01-1"}, None),
        ({"date": 1767225600}, None),
    ]
    for fields, date in cases:
        searched = read_reply(response(search({"type": "url", "url": "https://a.org", **fields}))).searched
        cited = read_reply(response(message(text("a", cites("https://a.org", **fields))))).cited
        assert (searched[0].date, cited[0].date) == (date, date)


def test_the_date_of_a_citation_overrides_that_of_the_search() -> None:
    source = {"type": "url", "url": "https://a.org", "date": "2026-01-02"}
    cited = message(text("a", cites("https://a.org", date="2025-05-05")))
    assert read_reply(response(search(source), cited)).cited[0].date == "2025-05-05"


def added(kind: object) -> dict[str, Any]:
    return {"type": "response.output_item.added", "item": {"type": kind}}


def searched(action: object) -> dict[str, Any]:
    return {"type": "response.output_item.done", "item": {"type": "web_search_call", "action": action}}


def test_an_event_becomes_a_progress_message_for_people() -> None:
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({"type": "response.created"}, "thinking"),
        ({"type": "response.web_search_call.searching"}, "searching the web"),
        (added("code_interpreter_call"), "running code"),
        (searched({"type": "search", "query": "the\nweather \ud800"}), 'searching for "the weather \ufffd"'),
        (searched({"type": "search", "query": "q" * 81}), f'searching for "{"q" * 80}…"'),
        (searched({"type": "open_page", "url": "https://a.org"}), "reading https://a.org"),
        (searched({"type": "search", "queries": ["rain", 3, "snow"]}), 'searching for "rain", "snow"'),
        (searched({"type": "search", "queries": []}), "reading the results"),
        (
            searched({"type": "find_in_page", "pattern": "x", "url": "https://a.org"}),
            'looking for "x" on https://a.org',
        ),
        (searched({"type": "find_in_page", "pattern": "x"}), 'looking for "x"'),
        (added(["odd"]), None),
        ({"type": "response.output_item.done", "item": {"type": "message"}}, None),
        ({"type": "response.queued"}, "waiting in the API's queue"),
    ]
    for event, shown in cases:
        assert progress_of(event) == (Progress(shown) if shown else None)


def test_progress_carries_each_new_piece_of_the_answer() -> None:
    event = {"type": "response.output_text.delta", "delta": "東京\ud800"}
    assert progress_of(event) == Progress("writing the answer", "東京\ufffd")


# A response by its id


def test_the_allowed_domains_come_from_the_tools_of_the_response() -> None:
    cases: list[tuple[Any, tuple[str, ...]]] = [
        (
            [{"type": "web_search", "filters": {"allowed_domains": ["a.example", 7, "b.example"]}}],
            ("a.example", "b.example"),
        ),
        ([{"type": "web_search", "filters": {"allowed_domains": "a.example"}}], ()),
        ([{"type": "web_search", "filters": None}, "odd"], ()),
        (None, ()),
    ]
    for tools, domains in cases:
        body = response(message(text("Well.")), id="resp_1", tools=tools)
        assert read_reply(body).allowed_domains == domains


SEARCH = {"type": "web_search_call", "action": {"type": "search", "query": "rain in made-up-key"}}


def test_the_state_of_an_unfinished_response_comes_from_its_last_output() -> None:
    cases: list[tuple[Any, str]] = [
        ([], "working"),
        ("odd", "working"),
        (["odd"], "working"),
        ([{"type": "unheard-of"}], "working"),
        ([{"type": "reasoning"}, SEARCH], 'searching for "rain in ***"'),
        ([SEARCH, {"type": "message", "content": []}], "writing the answer"),
    ]
    for output, message in cases:
        body = {"id": "resp_1", "status": "in_progress", "output": output}
        assert read_state(body, lambda text: text.replace("made-up-key", "***")) == Progress(message)
        assert is_under_way(body)


@pytest.mark.parametrize("odd", [None, [], {"status": ["queued"]}, {"status": "completed"}])
def test_only_an_unfinished_response_is_under_way(odd: object) -> None:
    assert not is_under_way(odd)


def test_the_state_of_a_body_that_is_no_response_is_garbled() -> None:
    with pytest.raises(GatewayGarbled):
        read_state([])
