"""Questions in the background over real HTTP: whatever happens to the connection, one question and the whole answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from openai_responses_mcp.adapters.openai.background import POLL_SECONDS
from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
from openai_responses_mcp.domain.errors import (
    AnswerWithheld,
    GatewayBroken,
    GatewayGarbled,
    GatewayOverloaded,
    ResponseLost,
    StillRunning,
)
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, Progress
from openai_responses_mcp.rehearsal.wire import STREAM_HEADERS, encode_event
from tests.contracts.openai_gateways import InstantClock, forget_proxies, openai_gateway
from tests.fakes import SLOW_SECONDS, FakeLogger
from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import Ending, RecordedRequest, Reply
from tests.stand_in.replies import json_reply
from tests.stand_in.server import StandIn

ANSWER = "search=yes; citations=2; text=It is so."
# For an attempt that is to run out of time: on a busy machine, too, enough for the API to say the id before.
SHORT_SECONDS = 1.0


class Api:
    """The stand-in, and a gateway whose clock never waits."""

    def __init__(self, server: HttpServer, base_url: str) -> None:
        self.server = server
        self.base_url = base_url
        self.clock = InstantClock()
        self.made: list[OpenAIResponsesGateway] = []
        self.use()
        self.started: list[str] = []
        self.heard: list[str] = []

    def use(self, **options: Any) -> None:
        """A gateway with these options from now on."""
        self.gateway = openai_gateway(self.base_url, clock=self.clock, **options)
        self.made.append(self.gateway)

    async def close(self) -> None:
        for gateway in self.made:
            await gateway.close()
        await self.server.close()

    async def ask(self, keys: str = ANSWER) -> ModelReply:
        responding = self.gateway.respond(asking(keys), self.hear, self.started.append)
        return await asyncio.wait_for(responding, SLOW_SECONDS)

    async def follow(self, response_id: str) -> ModelReply:
        return await asyncio.wait_for(self.gateway.follow(response_id, self.hear), SLOW_SECONDS)

    def requested(self) -> list[str]:
        return [f"{request.method} {request.target.removeprefix('/v1')}" for request in self.server.requests]

    def questions(self) -> int:
        return self.requested().count("POST /responses")

    def hear(self, progress: Progress) -> None:
        self.heard.append(progress.message)


def asking(keys: str, **fields: Any) -> ModelRequest:
    question = f"Why? [rehearse: {keys}]"
    return ModelRequest(model="gpt-5", instructions="", input_text=question, background=True, **fields)


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    forget_proxies(monkeypatch)
    server = StandIn(keep_requests=100_000)
    api = Api(server, await server.start())
    yield api
    await api.close()


@pytest.mark.parametrize("kind", ["after", "in", "end"])
async def test_a_connection_cut_at_any_event_costs_nothing(api: Api, kind: str) -> None:
    whole = without_ids(await api.ask())
    count, asked = await number_of_events(api, api.started[0]), 1
    assert count > 20
    # Cut inside its first event, a stream has not said its id.
    for number in range(1 if kind == "in" else 0, count):
        api.started.clear()
        reply = await api.ask(f"{ANSWER}; cuts={kind} {number}")
        assert without_ids(reply) == whole
        assert api.started == [reply.response_id]
        asked += 1
        assert api.questions() == asked


async def test_reading_goes_on_behind_the_last_event_that_came_whole(api: Api) -> None:
    await api.ask("cuts=after 3, in 5, none")
    path = f"/responses/{api.started[0]}?stream=true&starting_after="
    assert api.requested() == ["POST /responses", f"GET {path}3", f"GET {path}4"]


async def test_an_api_in_trouble_is_asked_again_for_the_rest(api: Api) -> None:
    assert (await api.ask(f"{ANSWER}; cuts=after 2; get_status=500, 0, 429")).text == "It is so."
    assert api.questions() == 1
    assert len(api.requested()) == 2 + 3


async def test_the_api_says_how_long_to_wait(api: Api) -> None:
    await api.ask("cuts=after 2; get_status=429; retry_after=7")
    assert api.clock.sleeps[1] == 7
    assert "waiting 7.0 s to go on (429)" in api.heard


async def test_waits_grow_while_nothing_comes_and_start_again_after_each_event(api: Api) -> None:
    troubles = ", ".join(["503"] * 8)
    await api.ask(f"cuts=after 2, after 3; get_status={troubles}, 200, {troubles}")
    bounds = [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0]
    assert len(api.clock.sleeps) == 2 * len(bounds)
    for slept, bound in zip(api.clock.sleeps, bounds * 2, strict=True):
        assert slept <= bound
    assert max(api.clock.sleeps) > 0.5


async def test_a_stream_that_ends_early_is_looked_at_before_it_is_read_on(api: Api) -> None:
    await api.ask("cuts=end 3; slow_stream=0.001")
    path = f"GET /responses/{api.started[0]}"
    assert api.requested() == ["POST /responses", path, f"{path}?stream=true&starting_after=3"]


@pytest.mark.parametrize("fault", ["bad-json", "error-event"])
async def test_a_spoiled_stream_costs_nothing_once_its_id_is_known(api: Api, fault: str) -> None:
    assert (await api.ask(f"{ANSWER}; stream={fault}")).text == "It is so."
    assert api.questions() == 1


@pytest.mark.parametrize("fault", ["stream=empty", "drop=reset"])
async def test_a_cut_before_the_id_is_known_is_one_failure_that_says_so(api: Api, fault: str) -> None:
    with pytest.raises(GatewayBroken, match="before it said the id"):
        await api.ask(fault)
    assert api.requested() == ["POST /responses"]
    assert api.started == []


async def test_a_response_too_old_to_stream_is_polled(api: Api) -> None:
    assert (await api.ask(f"{ANSWER}; cuts=after 2; too_old=yes; slow_stream=0.002")).text == "It is so."
    path = f"GET /responses/{api.started[0]}"
    assert api.requested()[:3] == ["POST /responses", f"{path}?stream=true&starting_after=2", path]
    assert set(api.requested()[3:]) <= {path}
    assert set(api.clock.sleeps[1:]) <= {POLL_SECONDS}
    assert api.questions() == 1


async def test_a_response_that_fails_at_the_api_is_a_failure_that_says_why(api: Api) -> None:
    with pytest.raises(AnswerWithheld, match="No luck"):
        await api.ask("outcome=failed; message=No luck; cuts=after 3")
    assert api.questions() == 1


async def test_a_response_that_expires_while_it_is_read_is_lost(api: Api) -> None:
    with pytest.raises(ResponseLost, match="30 days") as caught:
        await api.ask("cuts=after 3; expires=0")
    assert caught.value.status == 404
    assert api.started[0] in str(caught.value)


async def test_a_failure_to_read_on_names_the_id_with_which_the_answer_can_be_fetched(api: Api) -> None:
    with pytest.raises(StillRunning, match="key was refused") as caught:
        await api.ask("cuts=after 3; get_status=401")
    assert caught.value.status == 401
    assert caught.value.name == "AuthenticationError"
    assert f"goes on at the API as {api.started[0]}" in str(caught.value)[:400]
    assert str(caught.value).endswith(f"--fetch {api.started[0]}")
    assert len(str(caught.value)) < 400
    assert api.questions() == 1


async def test_a_key_in_what_the_api_says_is_masked_before_it_is_cut(api: Api) -> None:
    api.use(mask=lambda text: text.replace("key", "***"))
    with pytest.raises(StillRunning) as caught:
        await api.ask("cuts=after 3; get_status=401")
    assert "key" not in caught.value.reason


async def test_a_demand_to_wait_for_long_is_not_waited_for(api: Api) -> None:
    with pytest.raises(StillRunning, match="The API wants us to wait for 61 s") as caught:
        await api.ask("cuts=after 3; get_status=429; retry_after=61")
    assert caught.value.status == 429
    assert "ask again" not in str(caught.value).lower()
    assert len(api.clock.sleeps) == 1  # After the cut.
    assert (await api.follow(api.started[0])).response_id == api.started[0]


async def test_reading_on_is_in_the_debug_log(api: Api) -> None:
    logger = FakeLogger()
    api.use(logger=logger)
    await api.ask(f"{ANSWER}; cuts=after 2, end 5; get_status=503")
    read_on = logger.facts("read on")
    assert [(facts["after"], facts.get("status")) for facts in read_on] == [(2, None), (2, 503), (5, None)]
    assert {facts["responseId"] for facts in read_on} == {api.started[0]}
    assert read_on[1]["type"] == "server_error"
    assert "overloaded" in str(read_on[1]["body"])
    assert read_on[-1]["msg"] == "the stream ended"


async def test_a_response_that_takes_too_long_goes_on_and_can_be_fetched(api: Api) -> None:
    api.use(timeout_seconds=SHORT_SECONDS)
    with pytest.raises(StillRunning, match="goes on at the API") as caught:
        await api.ask("hang_after=4")
    response_id = api.started[0]
    assert caught.value.response_id == response_id
    assert f"--fetch {response_id}" in str(caught.value)
    await api.gateway.settle()
    assert await api.gateway.look_up(response_id) == Progress("working")
    assert api.requested() == ["POST /responses", f"GET /responses/{response_id}"]


async def test_endless_trouble_ends_with_the_time_and_is_named(api: Api) -> None:
    api.use(timeout_seconds=SHORT_SECONDS)
    with pytest.raises(StillRunning, match=r"within 1 s\. The API is in trouble \(HTTP 503\)") as caught:
        await api.ask(f"cuts=after 2; get_status={', '.join(['503'] * 5000)}")
    assert caught.value.status == 503
    assert "ask again" not in str(caught.value).lower()
    assert api.questions() == 1


async def test_an_api_that_does_not_know_the_parameter_is_asked_without_it_from_then_on(api: Api) -> None:
    for _ in range(2):
        assert (await api.ask(f"{ANSWER}; background=no")).text == "It is so."
    assert ["background" in request.json for request in api.server.requests] == [True, False, False]
    assert api.started == []


async def test_an_api_that_ignores_the_parameter_is_read_as_any_other() -> None:
    created = {"id": "resp_1", "status": "in_progress", "background": False, "output": []}
    events = [{"type": "response.created", "sequence_number": 0, "response": created}]
    events += [{"type": "response.completed", "response": {**created, "status": "completed", "output": [MESSAGE]}}]
    async with answering(Reply(headers=STREAM_HEADERS, body=b"".join(map(encode_event, events)))) as api:
        assert (await api.ask()).text == "Well."
        assert api.started == []


@pytest.mark.parametrize(("is_cut", "reason"), [(False, "The stream ended before"), (True, "broke before the reply")])
async def test_a_foreground_response_is_lost_with_its_connection(is_cut: bool, reason: str) -> None:
    created = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
    ending = Ending.CUT if is_cut else Ending.KEEP
    reply = Reply(headers=STREAM_HEADERS, body=some_bytes(encode_event(created)), ending=ending)
    async with answering(reply) as api:
        with pytest.raises(GatewayBroken, match=reason):
            await api.ask()
        assert api.requested() == ["POST /responses"]


async def test_an_api_that_does_not_say_so_runs_in_the_background_what_it_queues() -> None:
    queued = {"id": "resp_1", "status": "queued", "output": []}
    async with answering(json_reply(queued), json_reply(queued | {"status": "completed", "output": [MESSAGE]})) as api:
        assert (await api.ask()).text == "Well."
        assert api.started == ["resp_1"]


async def test_an_invalid_id_is_not_reported() -> None:
    finished = {"id": "resp_\x1b/../models", "status": "completed", "background": True, "output": [MESSAGE]}
    async with answering(json_reply(finished)) as api:
        assert (await api.ask()).text == "Well."
        assert api.started == []


async def test_an_api_that_streams_nothing_is_looked_at() -> None:
    queued = {"id": "resp_1", "status": "queued", "background": True, "output": []}
    working = json_reply(queued | {"status": "in_progress"})
    done = json_reply(queued | {"status": "completed", "output": [MESSAGE]})
    async with answering(json_reply(queued), working, done) as api:
        assert (await api.ask()).text == "Well."
        assert api.started == ["resp_1"]
        assert api.heard == ["working"]
        assert api.clock.sleeps == [POLL_SECONDS] * 2


async def test_a_garbled_reply_to_a_poll_is_a_failure_that_names_the_running_response() -> None:
    queued = {"id": "resp_1", "status": "queued", "background": True, "output": []}
    async with answering(json_reply(queued), Reply(body=b"<html>")) as api:
        with pytest.raises(StillRunning, match="could not be read") as caught:
            await api.ask()
    assert caught.value.response_id == "resp_1"
    assert "ask again" not in str(caught.value).lower()
    assert isinstance(caught.value.__cause__, GatewayGarbled)


async def test_a_look_that_shows_nothing_is_repeated_with_growing_waits() -> None:
    queued = {"id": "resp_1", "status": "queued", "background": True, "output": []}
    nothing, done = Reply(headers=STREAM_HEADERS), json_reply(queued | {"status": "completed", "output": [MESSAGE]})
    async with answering(json_reply(queued), nothing, nothing, done) as api:
        assert (await api.ask()).text == "Well."
        assert len(api.clock.sleeps) == 3
        assert api.heard[-1].startswith("waiting ")


async def test_a_single_look_that_shows_nothing_is_a_failure() -> None:
    async with answering(Reply(headers=STREAM_HEADERS)) as api:
        with pytest.raises(GatewayBroken, match="The stream ended"):
            await api.gateway.look_up("resp_1")


# Fetching by the id


async def test_a_finished_response_is_followed_with_one_look(api: Api) -> None:
    reply = await api.ask()
    assert await api.follow(api.started[0]) == reply
    assert api.requested()[1:] == [f"GET /responses/{api.started[0]}"]


async def test_a_running_response_is_looked_at_and_then_read(api: Api) -> None:
    api.use(timeout_seconds=SHORT_SECONDS)
    with pytest.raises(StillRunning):
        await api.ask(f"{ANSWER}; queue=1.5")
    api.heard.clear()
    api.use()
    assert (await api.follow(api.started[0])).text == "It is so."
    path = f"GET /responses/{api.started[0]}"
    assert api.requested()[1:] == [path, f"{path}?stream=true"]
    assert api.heard[0] == "waiting in the API's queue"
    assert api.heard[-1] == "writing the answer"


async def test_following_for_too_long_says_that_it_goes_on(api: Api) -> None:
    api.use(timeout_seconds=SHORT_SECONDS)
    with pytest.raises(StillRunning):
        await api.ask("hang_after=4")
    with pytest.raises(StillRunning, match=f"--fetch {api.started[0]}"):
        await api.follow(api.started[0])


async def test_following_says_when_the_api_could_not_be_reached(api: Api) -> None:
    api.use(timeout_seconds=SHORT_SECONDS)
    await api.server.close()
    with pytest.raises(StillRunning, match="No connection to the API could be opened") as caught:
        await api.follow("resp_1")
    assert caught.value.reason.endswith("…")
    assert str(caught.value).endswith("--fetch resp_1")
    assert api.heard[0].endswith("s to go on (no connection)")


async def test_a_look_is_one_request_and_raises_its_trouble(api: Api) -> None:
    await api.ask("get_status=503")
    with pytest.raises(GatewayOverloaded):
        await api.gateway.look_up(api.started[0])
    assert len(api.requested()) == 2


MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "Well.", "annotations": []}]}


@asynccontextmanager
async def answering(*replies: Reply) -> AsyncIterator[Api]:
    """An API that gives these replies, whatever it is asked."""
    rest = list(replies)

    async def answer(request: RecordedRequest) -> Reply:
        return rest.pop(0)

    server = HttpServer(answer, keep_requests=10)
    api = Api(server, await server.start())
    yield api
    await api.close()


async def some_bytes(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def without_ids(reply: ModelReply) -> ModelReply:
    return replace(reply, response_id=None, usage=None)


async def number_of_events(api: Api, response_id: str) -> int:
    async with httpx2.AsyncClient(headers={"authorization": "Bearer made-up"}, trust_env=False) as client:
        stream = await client.get(f"{api.base_url}/responses/{response_id}?stream=true", timeout=SLOW_SECONDS)
    return stream.text.count("\nevent: ") + 1
