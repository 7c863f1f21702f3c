import asyncio
from dataclasses import replace

import pytest

from openai_responses_mcp.domain.answering import FetchAnswer
from openai_responses_mcp.domain.errors import AnswerWithheld, ResponseCancelled, ResponseLost
from openai_responses_mcp.domain.models import Answer, ModelReply, Progress, Source
from tests.fakes import FakeClock, FakeGateway
from tests.rules import ANSWERING

REPLY = ModelReply(text="Because.", model="gpt-5.2", response_id="resp_7")


def fetching(gateway: FakeGateway) -> FetchAnswer:
    return FetchAnswer(gateway, FakeClock(), ANSWERING)


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


async def test_the_id_is_there_also_where_new_responses_are_not_kept() -> None:
    gateway = FakeGateway()
    gateway.keep("resp_7", REPLY)
    fetched = await FetchAnswer(gateway, FakeClock(), replace(ANSWERING, store=False)).wait("resp_7")
    assert fetched.response_id == "resp_7"


async def test_sources_from_outside_the_domains_of_the_response_are_left_out() -> None:
    cited = (Source("https://a.example/1"), Source("https://b.example/2"))
    gateway = FakeGateway()
    gateway.keep("resp_7", replace(REPLY, cited=cited, search_count=1, allowed_domains=("a.example",)))
    fetched = await fetching(gateway).wait("resp_7")
    assert [citation.url for citation in fetched.citations] == ["https://a.example/1"]
    assert fetched.left_out == ("https://b.example/2",)


async def test_a_look_at_a_response_that_runs_says_what_it_does() -> None:
    gateway = FakeGateway()
    gateway.hold()
    gateway.keep("resp_7", REPLY)
    assert await fetching(gateway).look("resp_7") == Progress("working")
    gateway.progress = [Progress("thinking")]
    assert await fetching(gateway).look("resp_7") == Progress("thinking")


async def test_waiting_tells_what_happens_and_can_be_given_up() -> None:
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


@pytest.mark.parametrize("failure", [ResponseLost("gone"), ResponseCancelled("cancelled"), AnswerWithheld("failed")])
async def test_what_went_wrong_at_the_api_is_raised(failure: Exception) -> None:
    gateway = FakeGateway()
    gateway.keep("resp_7", failure)
    with pytest.raises(type(failure)):
        await fetching(gateway).wait("resp_7")
    with pytest.raises(type(failure)):
        await fetching(gateway).look("resp_7")
