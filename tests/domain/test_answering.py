import asyncio
from dataclasses import replace

import pytest

from openai_responses_mcp.domain.answering import (
    LONGEST_ANSWER,
    AnsweringRules,
    AnswerQuestion,
    FetchAnswer,
    takes_effort,
    takes_verbosity,
)
from openai_responses_mcp.domain.errors import AnswerWithheld, ProfileMissing
from openai_responses_mcp.domain.models import (
    Answer,
    AnsweringProfile,
    Citation,
    ModelReply,
    ModelRequest,
    Progress,
    Question,
    SearchTool,
    Source,
    Usage,
)
from tests.fakes import FakeClock, FakeGateway, FakeLogger
from tests.rules import ANSWERING

STANDARD = AnsweringProfile(model="gpt-5.2", reasoning_effort="medium", verbosity="medium")
DETAILED = AnsweringProfile(model="gpt-5.1-codex", reasoning_effort="high", verbosity="high")
RULES = replace(ANSWERING, profiles={"answer": STANDARD})
DATES = "today=2026-11-16 yesterday=2026-11-15 tomorrow=2026-11-17 (Asia/Tokyo)"


async def request_for(
    question: Question, rules: AnsweringRules = RULES, clock: FakeClock | None = None
) -> ModelRequest:
    gateway = FakeGateway()
    await AnswerQuestion(gateway, clock or FakeClock(), FakeLogger(), rules).answer(question)
    return gateway.calls[0]


async def answer_to(reply: ModelReply, rules: AnsweringRules = RULES) -> Answer:
    gateway = FakeGateway()
    gateway.enqueue(reply)
    return await AnswerQuestion(gateway, FakeClock(), FakeLogger(), rules).answer(Question("Why?"))


async def test_a_bare_question_is_asked_with_the_defaults_and_nothing_else() -> None:
    assert await request_for(Question("Why?")) == ModelRequest(
        model="gpt-5.2",
        instructions="the policy",
        input_text=f"Why?\n[Hints] recency_days=60, max_results=5. {DATES}",
        search=SearchTool(),
        reasoning_effort="medium",
        verbosity="medium",
    )


@pytest.mark.parametrize(
    ("question", "hints"),
    [
        (Question("Q", recency_days=0.0, max_results=3.0), "recency_days=0, max_results=3."),
        (Question("Q", recency_days=1.5, max_results=2.25), "recency_days=1.5, max_results=2.25."),
        (
            Question("Q", domains=("a.example", "b.example"), style="citations-only"),
            "recency_days=60, max_results=5. domains: a.example, b.example style: citations-only",
        ),
    ],
)
async def test_hints_have_the_numbers_the_domains_the_style_and_the_dates(question: Question, hints: str) -> None:
    assert (await request_for(question)).input_text == f"Q\n[Hints] {hints} {DATES}"


async def test_what_the_question_leaves_out_comes_from_the_configured_defaults() -> None:
    rules = replace(RULES, recency_days=30.0, max_results=4, domains=("d.example",))
    assert (
        "recency_days=30, max_results=4. domains: d.example today="
        in (await request_for(Question("Q"), rules)).input_text
    )


async def test_an_empty_list_of_domains_overrides_the_configured_ones() -> None:
    rules = replace(RULES, domains=("d.example",), restrict_to_domains=True)
    request = await request_for(Question("Q", domains=()), rules)
    assert "domains" not in request.input_text
    assert request.search.allowed_domains == ()


@pytest.mark.parametrize(("restricts", "allowed"), [(True, ("a.example",)), (False, ())])
async def test_domains_restrict_the_search_only_when_configured(restricts: bool, allowed: tuple[str, ...]) -> None:
    request = await request_for(Question("Q", domains=("a.example",)), replace(RULES, restrict_to_domains=restricts))
    assert request.search == SearchTool(allowed_domains=allowed)


async def test_search_settings_output_limit_and_store_are_passed_on() -> None:
    location = (("country", "JP"),)
    rules = replace(
        RULES,
        search_context_size="low",
        user_location=location,
        searches_live=False,
        max_output_tokens=99,
        store=False,
    )
    request = await request_for(Question("Q", use_code_interpreter=True), rules)
    assert request.search == SearchTool(context_size="low", user_location=location, is_live=False)
    assert (request.max_output_tokens, request.store, request.use_code_interpreter) == (99, False, True)


@pytest.mark.parametrize(
    ("profile", "model"), [("answer", "gpt-5.2"), ("answer_detailed", "gpt-5.1-codex"), ("answer_quick", "gpt-5.2")]
)
async def test_a_tool_uses_its_own_profile_or_else_that_of_answer(profile: str, model: str) -> None:
    rules = replace(RULES, profiles={"answer": STANDARD, "answer_detailed": DETAILED})
    assert (await request_for(Question("Q", profile=profile), rules)).model == model


async def test_without_any_profile_the_model_is_not_asked() -> None:
    gateway = FakeGateway()
    rules = replace(RULES, profiles={"answer_detailed": DETAILED})
    with pytest.raises(ProfileMissing, match=r"^model_profiles\.answer is required$"):
        await AnswerQuestion(gateway, FakeClock(), FakeLogger(), rules).answer(Question("Q", profile="answer_quick"))
    assert gateway.calls == []


@pytest.mark.parametrize(
    ("model", "effort", "verbosity"), [("gpt-5.2", "medium", "medium"), ("o3", "medium", None), ("gpt-4.1", None, None)]
)
async def test_effort_and_verbosity_go_only_to_models_that_take_them(
    model: str, effort: str | None, verbosity: str | None
) -> None:
    rules = replace(RULES, profiles={"answer": AnsweringProfile(model, "medium", "medium")})
    request = await request_for(Question("Q"), rules)
    assert (request.reasoning_effort, request.verbosity) == (effort, verbosity)


async def test_a_question_may_bring_its_own_model_effort_and_context_size() -> None:
    question = Question("Q", model="o3", reasoning_effort="high", search_context_size="high")
    request = await request_for(question, replace(RULES, search_context_size="low"))
    assert (request.model, request.reasoning_effort, request.verbosity) == ("o3", "high", None)
    assert request.search.context_size == "high"


async def test_an_answer_without_a_search_is_the_text_as_it_is() -> None:
    usage = Usage(10, 20, 30)
    reply = ModelReply(text=" Because.\n", model="gpt-5.2-2026-01-01", response_id="resp_9", usage=usage)
    assert await answer_to(reply) == Answer(
        text="Because.", used_search=False, citations=(), model="gpt-5.2-2026-01-01", response_id="resp_9", usage=usage
    )


async def test_the_requested_model_is_named_when_the_api_names_none() -> None:
    assert (await answer_to(ModelReply(text="Because."))).model == "gpt-5.2"


async def test_an_answer_from_a_search_ends_with_its_dated_sources() -> None:
    cited = (Source("https://a.example", title="A", date="2026-01-02"), Source("https://b.example"))
    answer = await answer_to(ModelReply(text="Because.", cited=cited, search_count=2))
    assert answer.text == "Because.\n\nSources:\n- https://a.example (2026-01-02)\n- https://b.example (2026-11-16)"
    assert answer.used_search
    assert answer.citations[0] == Citation("https://a.example", "2026-01-02", "A", "published")
    assert answer.search_count == 2


async def test_citations_keep_to_the_configured_limit() -> None:
    cited = tuple(Source(f"https://{n}.example") for n in range(5))
    answer = await answer_to(ModelReply(text="Because.", cited=cited), replace(RULES, max_citations=2))
    assert [citation.url for citation in answer.citations] == ["https://0.example", "https://1.example"]


@pytest.mark.parametrize(
    ("restricts", "urls", "left_out"),
    [
        (True, ["https://a.example"], ("https://b.example",)),
        (False, ["https://a.example", "https://b.example"], ()),
    ],
)
async def test_sources_from_outside_the_domains_are_left_out_where_the_search_is_restricted(
    restricts: bool, urls: list[str], left_out: tuple[str, ...]
) -> None:
    reply = ModelReply(text="Because.", cited=(Source("https://a.example"), Source("https://b.example")))
    answer = await answer_to(reply, replace(RULES, domains=("a.example",), restrict_to_domains=restricts))
    assert [citation.url for citation in answer.citations] == urls
    assert answer.left_out == left_out
    assert answer.text == "\n".join(["Because.", "", "Sources:", *(f"- {url} (2026-11-16)" for url in urls)])


async def test_an_answer_cut_short_says_so_first() -> None:
    answer = await answer_to(ModelReply(text="Because", incomplete_reason="max_output_tokens"))
    assert answer.text == "[Incomplete: max_output_tokens] Because"
    assert answer.incomplete_reason == "max_output_tokens"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            ModelReply(text="half", refusal="I cannot help with that."),
            "The model refused to answer: ask in another way. It says: I cannot help with that.",
        ),
        (ModelReply(text=" \u3000\n\u00a0"), "The model returned no text. Ask again, or ask in another way."),
        (
            ModelReply(text="", incomplete_reason="max_output_tokens"),
            "The response ended early (max_output_tokens) before any text."
            " Raise request.max_output_tokens, or ask for less.",
        ),
    ],
)
async def test_a_reply_without_an_answer_is_a_failure_that_says_so(reply: ModelReply, message: str) -> None:
    with pytest.raises(AnswerWithheld) as failure:
        await answer_to(reply)
    assert str(failure.value) == message


async def test_no_response_id_is_offered_when_the_api_keeps_no_responses() -> None:
    answer = await answer_to(ModelReply(text="Because.", response_id="resp_9"), replace(RULES, store=False))
    assert answer.response_id is None


async def test_the_debug_log_has_the_profile_a_summary_and_the_usage_but_not_the_question() -> None:
    gateway, logger = FakeGateway(), FakeLogger()
    gateway.enqueue(ModelReply(text="Because.", usage=Usage(10, 20, 30), search_count=1))
    rules = replace(RULES, profiles={"answer": AnsweringProfile("o3", "low", "low")})
    await AnswerQuestion(gateway, FakeClock(), logger, rules).answer(Question("private"))
    assert [(level, event) for level, event, _ in logger.lines] == [
        ("debug", ""),
        ("debug", "request summary"),
        ("debug", "reply"),
    ]
    assert logger.facts("") == [
        {"profile": "answer", "model": "o3", "supports": {"verbosity": False, "reasoning": True}}
    ]
    assert logger.facts("request summary") == [{"tools": "web_search(on)", "reasoning": "on", "text.verbosity": "off"}]
    assert logger.facts("reply") == [{"latencyMs": 0, "inputTokens": 10, "outputTokens": 20, "searches": 1}]
    assert "private" not in repr(logger.lines)


async def test_a_text_longer_than_any_answer_is_cut_and_says_so() -> None:
    answer = await answer_to(ModelReply(text="x" * (LONGEST_ANSWER + 1)))
    assert answer.text == "[Incomplete: cut after 1,000,000 characters] " + "x" * LONGEST_ANSWER
    assert (await answer_to(ModelReply(text="x" * LONGEST_ANSWER))).text == "x" * LONGEST_ANSWER


async def test_the_blank_that_opens_a_japanese_paragraph_stays() -> None:
    reply = ModelReply(text="\n \u3000東京です。\u3000\n")
    assert (await answer_to(reply)).text == "\u3000東京です。\u3000"


# Families from before verbosity; what the SDK learns from now on is not among them.


def test_the_number_in_the_id_says_what_a_model_takes() -> None:
    cases: list[tuple[str, bool, bool]] = [
        ("gpt-5", True, True),
        ("gpt-4.1", False, False),
        ("gpt-oss-120b", False, False),
        ("o3", True, False),
        ("o1-preview-2024-09-12", False, False),
        ("openai/gpt-6-sol", True, True),
        ("my-gpt-5", False, False),
        ("gpt-", False, False),
    ]
    for model, effort, verbosity in cases:
        assert (takes_effort(model), takes_verbosity(model)) == (effort, verbosity)


REPLY = ModelReply(text="Because.", model="gpt-5.2", response_id="resp_7")


def fetching(gateway: FakeGateway) -> FetchAnswer:
    # The id of a fetched answer is given even if new responses are not stored.
    return FetchAnswer(gateway, FakeClock(), replace(ANSWERING, store=False))


async def test_an_answer_is_fetched_by_its_id() -> None:
    gateway = FakeGateway()
    gateway.keep("resp_7", REPLY)
    fetched = await fetching(gateway).wait("resp_7")
    assert (fetched.text, fetched.model, fetched.response_id) == ("Because.", "gpt-5.2", "resp_7")
    assert await fetching(gateway).look("resp_7") == fetched


async def test_a_reply_that_does_not_say_its_model_has_an_unknown_one() -> None:
    gateway = FakeGateway()
    gateway.keep("resp_7", replace(REPLY, model=None))
    assert (await fetching(gateway).wait("resp_7")).model == "unknown"


async def test_sources_from_outside_the_domains_of_a_fetched_response_are_left_out() -> None:
    cited = (Source("https://a.example/1"), Source("https://b.example/2"))
    gateway = FakeGateway()
    gateway.keep("resp_7", replace(REPLY, cited=cited, allowed_domains=("a.example",)))
    assert (await fetching(gateway).wait("resp_7")).left_out == ("https://b.example/2",)
    looked = await fetching(gateway).look("resp_7", ("b.example",))
    assert isinstance(looked, Answer)
    assert looked.left_out == ("https://a.example/1",)


async def test_a_look_at_a_response_that_runs_says_what_it_does() -> None:
    gateway = FakeGateway()
    gateway.hold()
    gateway.keep("resp_7", REPLY)
    assert await fetching(gateway).look("resp_7") == Progress("working")
    gateway.progress = [Progress("thinking")]
    assert await fetching(gateway).look("resp_7") == Progress("thinking")


async def test_waiting_reports_progress_and_can_be_cancelled() -> None:
    gateway, heard = FakeGateway(), list[Progress]()
    gateway.hold()
    gateway.progress = [Progress("thinking")]
    gateway.keep("resp_7", REPLY)
    waiting = asyncio.ensure_future(fetching(gateway).wait("resp_7", heard.append))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert heard == [Progress("thinking")]
    assert gateway.cancelled_ids == []
    gateway.release()
    assert isinstance(await fetching(gateway).look("resp_7"), Answer)
