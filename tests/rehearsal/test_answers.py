"""What is answered to which question, asked over HTTP."""

import re
from typing import Any

import httpx2
import pytest
from openai.types.responses import Response

from tests.rehearsal.conftest import SEARCH, WEATHER, Ask


def types(response: dict[str, Any]) -> list[str]:
    return [item["type"] for item in response["output"]]


def text(response: dict[str, Any]) -> str:
    return str(response["output"][-1]["content"][0]["text"])


async def test_an_answer_has_the_wire_format_of_the_api(ask: Ask) -> None:
    reply = await ask("What is the latest news?", instructions="Be brief.", reasoning={"effort": "low"}, **SEARCH)
    response = Response.model_validate(reply.json(), strict=True)
    assert response.id.startswith("resp_")
    assert [item.type for item in response.output] == ["reasoning", "web_search_call", "message"]
    assert (response.status, response.model, response.error, response.incomplete_details) == (
        "completed", "gpt-5", None, None,
    )  # fmt: skip
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


async def test_a_question_about_settled_things_is_answered_without_a_search(ask: Ask) -> None:
    response = (await ask("HTTP 404 の意味は？", **SEARCH)).json()
    assert types(response) == ["reasoning", "message"]
    assert response["output"][1]["content"][0]["annotations"] == []
    assert "HTTP 404 の意味は？" in text(response)
    assert "リハーサル" in text(response)


async def test_a_question_about_the_weather_is_searched_and_dated(ask: Ask) -> None:
    response = (await ask(WEATHER, **SEARCH)).json()
    action = response["output"][1]["action"]
    assert action["query"] == WEATHER
    assert {"type": "api", "name": "oai-weather"} in action["sources"]
    part = response["output"][2]["content"][0]
    for citation in part["annotations"]:
        assert citation["url"] in part["text"][citation["start_index"] : citation["end_index"]]
        assert citation["url"].startswith("https://example.com/")
    assert len(part["annotations"]) == 2
    assert "2026-11-16" in part["text"]
    assert "Sources" not in part["text"]


@pytest.mark.parametrize(
    ("question", "is_searched"),
    [
        ("Is there NEWS?", True),
        ("最新のnewsは", True),
        ("What do newspapers print?", False),
        ("I know that. Do you?", False),
        ("Hello\n[Hints] style: latest today=2026-11-16", False),
        ("Hello [rehearse: search=yes]", True),
        ("latest [rehearse: search=no]", False),
        ("Hello [rehearse: text=the latest news]", False),
    ],
)
async def test_trigger_words_in_the_question_decide_about_the_search(
    ask: Ask, question: str, is_searched: bool
) -> None:
    assert ("web_search_call" in types((await ask(question, **SEARCH)).json())) is is_searched


async def test_nothing_is_searched_without_the_tool_nor_sources_told_without_the_include(ask: Ask) -> None:
    assert "web_search_call" not in types((await ask("latest news")).json())
    response = (await ask("latest news", tools=SEARCH["tools"])).json()
    assert "sources" not in response["output"][1]["action"]


async def test_the_date_comes_from_the_question_or_the_hints_or_the_clock(ask: Ask) -> None:
    assert "2031-02-03" in text((await ask("latest of 2031-02-03?\n[Hints] today=2026-11-16", **SEARCH)).json())
    assert "2026-11-16" in text((await ask("latest?\n[Hints] today=2026-11-16", **SEARCH)).json())
    assert re.search(r"\d{4}-\d{2}-\d{2}", text((await ask("latest?", **SEARCH)).json()))


async def test_the_last_user_message_is_the_question(ask: Ask) -> None:
    parts = [{"type": "input_text", "text": "Second?"}, {"type": "input_image", "image_url": "x"}, 7]
    given = [{"role": "user", "content": "First?"}, None, {"role": "user", "content": parts}]
    answer = text((await ask(given)).json())
    assert '"Second?"' in answer
    assert "First?" not in answer


@pytest.mark.parametrize("given", [[], [{"role": "user"}], "", [{"role": "developer", "content": "Be kind."}]])
async def test_an_input_without_a_question_is_answered_all_the_same(ask: Ask, given: Any) -> None:
    assert '""' in text((await ask(given)).json())


async def test_a_long_question_is_quoted_in_part_and_half_a_surrogate_pair_survives(
    client: httpx2.AsyncClient,
) -> None:
    body = '{"model": "gpt-5", "input": "\\ud83d' + "long " * 100 + '"}'
    response = (await client.post("/responses", content=body)).json()
    assert text(response).endswith('…".')
    assert len(text(response)) < 250


async def answered(ask: Ask, keys: str) -> dict[str, Any]:
    response: dict[str, Any] = (await ask(f"Hello [rehearse: {keys}]", **SEARCH)).json()
    Response.model_validate(response, strict=True)
    return response


async def test_the_answer_ends_as_the_question_asks(ask: Ask) -> None:
    assert (await answered(ask, "outcome=refusal"))["output"][-1]["content"][0]["type"] == "refusal"
    incomplete = await answered(ask, "outcome=incomplete")
    assert (incomplete["status"], incomplete["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert incomplete["output"][-1]["status"] == "incomplete"
    failed = await answered(ask, "outcome=failed")
    assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")
    wordless = await answered(ask, "outcome=no-text")
    assert (wordless["status"], types(wordless)) == ("completed", ["reasoning"])


async def test_a_refusal_is_in_the_language_of_the_question(ask: Ask) -> None:
    for question, word in (("Why?", "rehearsal"), ("なぜ？", "リハーサル")):
        response = (await ask(f"{question} [rehearse: outcome=refusal]")).json()
        assert word in response["output"][-1]["content"][0]["refusal"]


async def test_the_words_and_the_number_of_sources_can_be_given(ask: Ask) -> None:
    response = await answered(ask, r"text=a\nb; search=yes; citations=5")
    part = response["output"][-1]["content"][0]
    assert (part["text"], len(part["annotations"])) == ("a\nb", 5)
    assert len(response["output"][1]["action"]["sources"]) == 6
