import json
import re
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from openai.types import Model
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from openai_responses_mcp.rehearsal import responses_api
from openai_responses_mcp.rehearsal.http_wire import RecordedRequest
from openai_responses_mcp.rehearsal.responses_api import KNOWN_FIELDS, ResponsesApi
from openai_responses_mcp.rehearsal.server import RehearsalServer
from tests.rehearsal.conftest import Ask

SEARCH = {"tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"]}
WEATHER = "本日 2026-11-16 の東京の天気は？"


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


async def test_a_conversation_goes_on_with_an_id_that_was_given_out(ask: Ask) -> None:
    first = (await ask("Who was Ada?")).json()
    second = (await ask("And then?", previous_response_id=first["id"])).json()
    assert '"Who was Ada?"' in text(second)
    assert second["previous_response_id"] == first["id"]


async def test_ids_that_are_unknown_expired_or_not_stored_are_told_apart(ask: Ask) -> None:
    unstored = (await ask("Hello", store=False)).json()["id"]
    for unknown in (unstored, "resp_other"):
        error = (await ask("Hello", previous_response_id=unknown)).json()["error"]
        assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")
    reply = await ask("Hello", previous_response_id="resp_expired1")
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (400, None, None)
    assert "previous_response_id" in error["message"]
    assert "expired" in error["message"]


async def test_memory_is_bounded() -> None:
    api = ResponsesApi(max_remembered=1)

    async def create(**fields: str) -> tuple[int, Any]:
        body = json.dumps({"model": "gpt-5", "input": "Hello", **fields}).encode()
        reply = await api.answer(RecordedRequest("POST", "/v1/responses", {"authorization": "Bearer k"}, body))
        assert isinstance(reply.body, bytes)
        return reply.status, json.loads(reply.body).get("id")

    (_, first), (_, second) = await create(), await create()
    assert (await create(previous_response_id=first))[0] == 400
    assert (await create(previous_response_id=second))[0] == 200


FUNCTION = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}
CALL = 'Add them. [rehearse: call=add; args={"of": [1, 2]}]'


async def test_a_function_is_called_and_its_output_quoted(ask: Ask) -> None:
    response = (await ask(CALL, tools=[FUNCTION])).json()
    Response.model_validate(response, strict=True)
    call = response["output"][-1]
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "add", '{"of": [1, 2]}')
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "three"}
    continued = (await ask([output], tools=[FUNCTION], previous_response_id=response["id"])).json()
    assert '"three"' in text(continued)
    assert "Add them." in text(continued)
    given = [{"role": "user", "content": CALL}, call, output]
    assert '"three"' in text((await ask(given, tools=[FUNCTION])).json())


async def test_a_function_nobody_offers_is_not_called(ask: Ask) -> None:
    assert types((await ask(CALL)).json()) == ["reasoning", "message"]


async def test_an_output_nobody_asked_for_is_refused(ask: Ask) -> None:
    reply = await ask([{"type": "function_call_output", "call_id": "call_x", "output": [{"text": "a"}]}])
    assert reply.status_code == 400
    assert "call_x" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"model": "no-such-model"}, "model", "model_not_found"),
        ({"colour": "red"}, "colour", "unknown_parameter"),
        ({"tools": "web_search"}, "tools", "invalid_type"),
        ({"model": None}, "model", "missing_required_parameter"),
        ({"input": None}, "input", "missing_required_parameter"),
        ({"reasoning": {"effort": "minimal"}, **SEARCH}, "tools", None),
        ({"input": "[rehearse: colour=red]"}, "input", "invalid_rehearsal"),
    ],
)
async def test_a_request_the_api_would_refuse_is_refused(
    client: httpx2.AsyncClient, fields: dict[str, Any], param: str, code: str | None
) -> None:
    reply = await client.post("/responses", json={"model": "gpt-5", "input": "Hello", **fields})
    error = reply.json()["error"]
    assert (reply.status_code, error["type"]) == (400, "invalid_request_error")
    assert (error["param"], error["code"]) == (param, code)


async def test_minimal_effort_goes_without_a_search(ask: Ask) -> None:
    assert (await ask("Hello", reasoning={"effort": "minimal"}, tools=[FUNCTION])).status_code == 200


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"a": NaN}', b"\xff", b"[" * 200_000])
async def test_a_body_that_is_no_json_object_is_refused(client: httpx2.AsyncClient, body: bytes) -> None:
    reply = await client.post("/responses", content=body)
    assert reply.status_code == 400
    assert "JSON" in reply.json()["error"]["message"]


@pytest.mark.parametrize("header", ["", "Bearer", "Basic abc"])
async def test_a_request_without_a_key_is_refused(client: httpx2.AsyncClient, header: str) -> None:
    reply = await client.post("/responses", json={}, headers={"authorization": header})
    assert reply.status_code == 401
    assert "API key" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/responses", 405),
        ("POST", "/models", 405),
        ("DELETE", "/models/gpt-5", 405),
        ("POST", "/chat/completions", 404),
        ("GET", "/models/no-such-model", 404),
    ],
)
async def test_other_paths_and_methods_are_refused(
    client: httpx2.AsyncClient, method: str, path: str, status: int
) -> None:
    reply = await client.request(method, path)
    assert reply.status_code == status
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}


async def test_models_are_listed_and_found(client: httpx2.AsyncClient) -> None:
    models = (await client.get("/models")).json()["data"]
    assert [Model.model_validate(model, strict=True).id for model in models] == list(responses_api.MODELS)
    assert (await client.get("/models/gpt-5")).json()["id"] == "gpt-5"


def test_the_fields_it_knows_are_those_the_vendor_declares() -> None:
    assert {*KNOWN_FIELDS} == {*ResponseCreateParamsBase.__annotations__, "stream"}


async def test_the_vendors_client_reads_the_answer(base_url: str) -> None:
    async with AsyncOpenAI(api_key="made-up", base_url=base_url, max_retries=0, timeout=5) as client:
        response = await client.responses.create(model="gpt-5", input=WEATHER, tools=[{"type": "web_search"}])
    assert "2026-11-16" in response.output_text


async def test_every_answer_can_be_delayed() -> None:
    server = RehearsalServer(delay_seconds=60)
    headers = {"authorization": "Bearer made-up"}
    async with httpx2.AsyncClient(base_url=await server.start(), headers=headers, trust_env=False) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.post("/responses", json={"model": "gpt-5", "input": "Hello"}, timeout=0.05)
    await server.wait_for_abort()
    await server.close()
