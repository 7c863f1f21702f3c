"""Conversations, refusals and trouble on request, asked over HTTP."""

import asyncio
from typing import Any

import httpx2
import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from openai_responses_mcp.rehearsal.api import KNOWN_FIELDS, RehearsedApi
from openai_responses_mcp.rehearsal.wire import ApiError
from tests.rehearsal.conftest import SEARCH, Ask


def text(response: dict[str, Any]) -> str:
    return str(response["output"][-1]["content"][0]["text"])


async def test_a_conversation_goes_on_with_an_id_that_was_given_out(ask: Ask) -> None:
    first = (await ask("Who was Ada?")).json()
    second = (await ask("And then?", previous_response_id=first["id"])).json()
    assert '"Who was Ada?"' in text(second)
    assert second["previous_response_id"] == first["id"]


async def test_ids_that_are_unknown_or_not_stored_are_refused(ask: Ask) -> None:
    unstored = (await ask("Hello", store=False)).json()["id"]
    for unknown in (unstored, "resp_other"):
        error = (await ask("Hello", previous_response_id=unknown)).json()["error"]
        assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")


async def test_memory_is_bounded() -> None:
    api = RehearsedApi(max_remembered=1)
    question = {"model": "gpt-5", "input": "Hello"}
    first, second = await api.create(question), await api.create(question)
    with pytest.raises(ApiError, match="not found"):
        await api.create({**question, "previous_response_id": first.response["id"]})
    await api.create({**question, "previous_response_id": second.response["id"]})


FUNCTION = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}


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


def test_the_fields_it_knows_are_those_the_vendor_declares() -> None:
    assert {*KNOWN_FIELDS} == {*ResponseCreateParamsBase.__annotations__, "stream"}


@pytest.mark.parametrize(
    ("status", "type", "code"),
    [
        (429, "requests", "rate_limit_exceeded"),
        (500, "server_error", "server_error"),
        (599, "server_error", None),
        (418, "invalid_request_error", None),
    ],
)
async def test_a_status_comes_with_the_usual_error(ask: Ask, status: int, type: str, code: str | None) -> None:
    reply = await ask(f"Hello [rehearse: status={status}]")
    assert reply.status_code == status
    assert (reply.json()["error"]["type"], reply.json()["error"]["code"]) == (type, code)


async def test_trouble_ends_after_its_times_and_questions_do_not_share_them(ask: Ask) -> None:
    marker = "[rehearse: status=429; times=2; text=Well]"
    assert [(await ask(f"One {marker}")).status_code for _ in range(3)] == [429, 429, 200]
    assert (await ask(f"Two {marker}")).status_code == 429
    assert text((await ask(f"One {marker}")).json()) == "Well"


async def test_an_answer_can_be_delayed(client: httpx2.AsyncClient) -> None:
    slow = asyncio.create_task(client.post("/responses", json={"model": "gpt-5", "input": "[rehearse: delay=60]"}))
    quick = await client.post("/responses", json={"model": "gpt-5", "input": "[rehearse: delay=0.01]"})
    assert quick.status_code == 200
    assert not slow.done()
    slow.cancel()
