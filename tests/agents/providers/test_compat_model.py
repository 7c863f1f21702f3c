"""Models of the six providers over real HTTP, each stand-in with the quirks of the real one."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest
from agents import ModelSettings, WebSearchTool
from agents.retry import ModelRetryAdviceRequest
from pydantic import BaseModel

from openai_responses_mcp.agents import Agent, AgentsError, RunOptions, create_runner, tool
from openai_responses_mcp.agents.providers.compat_client import FAILURES, fitting_body
from openai_responses_mcp.agents.providers.compat_model import CompatModel
from openai_responses_mcp.agents.providers.settings import PROVIDERS, CompatModelConfig, ProviderName
from tests.agents.fakes import FakeJudge, collected, last_result, within
from tests.agents.providers.conftest import Ask, Play
from tests.agents.providers.stand_in import HANG_UP, KEY, ChatStandIn, calls, refusal
from tests.stand_in.http_wire import Ending, Reply
from tests.stand_in.server import StandInThread

ALL: list[ProviderName] = list(PROVIDERS)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def subtract(a: int, b: int) -> int:
    """Subtract a number from another."""
    return a - b


class Sum(BaseModel):
    total: int


async def run(agent: Agent[Any], **options: Any) -> Any:
    runner = create_runner(safety_agent=FakeJudge())
    return await within(runner.run(agent, "How much is 1 + 2?", RunOptions(sdk=options)))


async def failure_of(agent: Agent[Any], **options: Any) -> AgentsError:
    with pytest.raises(AgentsError) as caught:
        await run(agent, **options)
    assert KEY not in f"{caught.value!r} {caught.value.details} {caught.value.__cause__!r}"
    return caught.value


@pytest.mark.parametrize("name", ALL)
async def test_an_agent_with_tools_runs_and_streams_on_every_provider(
    name: ProviderName, play: Play, model_of: Ask
) -> None:
    stand_in = await play(name)
    stand_in.enqueue(*[calls("add", {"a": 1, "b": 2}), "It is 3."] * 2)
    agent = Agent(name="calculator", instructions="Calculate.", model=model_of(name), tools=[add])
    result = await run(agent)
    assert result.output_text == "It is 3."
    assert result.tool_calls[0].output == 3
    assert (result.usage.requests, result.usage.total_tokens) == (2, 10)
    assert stand_in.bodies[0]["model"] == "some-model"
    events = await within(collected(create_runner(safety_agent=FakeJudge()).run_stream(agent, "1 + 2?")))
    assert "".join(event.delta or "" for event in events) == "It is 3."
    assert last_result(events).usage.total_tokens == 10
    assert stand_in.bodies[2]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("name", ["gemini", "ollama", "lmstudio", "anthropic"])
async def test_fields_that_only_openai_knows_are_left_out(name: ProviderName, play: Play, model_of: Ask) -> None:
    stand_in = await play(name)
    settings = ModelSettings(store=True, metadata={"a": "b"}, verbosity="low", extra_args={"service_tier": "auto"})
    await run(Agent(name="a", model=model_of(name), tools=[add], model_settings=settings))
    body = stand_in.bodies[0]
    assert not {"store", "metadata", "verbosity", "service_tier"} & set(body)
    assert "strict" not in body["tools"][0]["function"]


async def test_gemini_gets_schemas_without_the_words_that_it_refuses(play: Play, model_of: Ask) -> None:
    stand_in = await play("gemini")
    settings = ModelSettings(parallel_tool_calls=False, frequency_penalty=0.5)
    await run(Agent(name="a", model=model_of("gemini"), tools=[add], model_settings=settings))
    parameters = stand_in.bodies[0]["tools"][0]["function"]["parameters"]
    assert "additionalProperties" not in parameters
    assert set(parameters["properties"]) == {"a", "b"}


def test_arguments_called_like_a_keyword_stay() -> None:
    schema = {"type": "object", "properties": {"additionalProperties": {"type": "string"}}, "anyOf": [{"$schema": "x"}]}
    body = {"tools": [{"function": {"parameters": schema}}, {"type": "other"}, 7]}
    fitting: Any = fitting_body(body, PROVIDERS["gemini"].quirks)
    assert fitting["tools"][0]["function"]["parameters"] == {**schema, "anyOf": [{}]}
    assert fitting["tools"][1:] == [{"type": "other"}, 7]


async def test_a_named_tool_choice_is_sent_where_it_is_understood(play: Play, model_of: Ask) -> None:
    stand_in = await play("anthropic")
    settings = ModelSettings(tool_choice="add")
    await run(Agent(name="a", model=model_of("anthropic"), tools=[add, subtract], model_settings=settings))
    assert stand_in.bodies[0]["tool_choice"] == {"type": "function", "function": {"name": "add"}}


@pytest.mark.parametrize("name", ["lmstudio", "gemini"])
async def test_elsewhere_that_tool_is_offered_alone(name: ProviderName, play: Play, model_of: Ask) -> None:
    stand_in = await play(name)
    other = Agent(name="other")
    agent = Agent(name="a", model=model_of(name), tools=[add, subtract], handoffs=[other])
    agent.model_settings = ModelSettings(tool_choice="add")
    await run(agent)
    assert stand_in.bodies[0]["tool_choice"] == "required"
    assert [one["function"]["name"] for one in stand_in.bodies[0]["tools"]] == ["add"]


@pytest.mark.parametrize("choice", ["required", "add"])
async def test_ollama_cannot_be_made_to_call_a_tool_and_none_are_offered_where_it_must_not(
    choice: str, play: Play, model_of: Ask
) -> None:
    stand_in = await play("ollama")
    agent = Agent(name="a", model=model_of("ollama"), tools=[add], model_settings=ModelSettings(tool_choice=choice))
    failure = await failure_of(agent)
    assert failure.code == "AGENTS-E-COMPAT-UNSUPPORTED"
    assert (failure.details["provider"], failure.details["feature"]) == ("ollama", "tool_choice")
    assert stand_in.bodies == []
    agent.model_settings = ModelSettings(tool_choice="none")
    await run(agent)
    assert "tools" not in stand_in.bodies[0]


async def test_an_answer_of_a_given_form_is_asked_for_in_words_where_the_schema_is_ignored(
    play: Play, model_of: Ask
) -> None:
    stand_in = await play("anthropic")
    stand_in.enqueue('{"total": 3}', '{"total": 3}')
    for instructions in ("Calculate.", None):
        result = await run(Agent(name="a", instructions=instructions, model=model_of("anthropic"), output_type=Sum))
        assert result.final_output == Sum(total=3)
    assert all("response_format" not in body for body in stand_in.bodies)
    assert "JSON Schema" in stand_in.bodies[1]["messages"][0]["content"]
    stand_in.enqueue("three")
    assert (await failure_of(Agent(name="a", model=model_of("anthropic"), output_type=Sum))).code == "AGENTS-E-RUNNER"
    ollama = await play("ollama")
    ollama.enqueue('{"total": 3}')
    await run(Agent(name="a", model=model_of("ollama"), output_type=Sum))
    assert ollama.bodies[0]["response_format"]["type"] == "json_schema"


async def test_anthropic_gets_no_temperature_that_it_refuses(play: Play, model_of: Ask) -> None:
    stand_in = await play("anthropic")
    for temperature in (0.5, 1.8):
        settings = ModelSettings(temperature=temperature, include_usage=False)
        await run(Agent(name="a", model=model_of("anthropic"), model_settings=settings))
    assert [body["temperature"] for body in stand_in.bodies] == [0.5, 1.0]


async def test_tools_and_conversations_on_the_providers_side_are_refused_before_anything_is_sent(
    play: Play, model_of: Ask
) -> None:
    stand_in = await play("openrouter")
    failure = await failure_of(Agent(name="a", model=model_of("openrouter"), tools=[WebSearchTool()]))
    assert (failure.code, failure.details["feature"]) == ("AGENTS-E-COMPAT-UNSUPPORTED", "hosted_tools")
    failure = await failure_of(Agent(name="a", model=model_of("openrouter")), previous_response_id="resp_1")
    assert (failure.code, failure.details["feature"]) == ("AGENTS-E-COMPAT-UNSUPPORTED", "previous_response_id")
    assert stand_in.requests == []


async def test_openrouter_gets_its_own_headers_and_none_that_are_for_openai(
    play: Play, model_of: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTS_OPENROUTER_HTTP_REFERER", "https://example.com")
    monkeypatch.setenv("AGENTS_OPENROUTER_X_TITLE", "Example")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Inner: 1\nAuthorization: Bearer other")
    stand_in = await play("openrouter")
    await run(Agent(name="a", model=model_of("openrouter")))
    headers = stand_in.requests[0].headers
    assert (headers["http-referer"], headers["x-title"]) == ("https://example.com", "Example")
    assert not {"openai-organization", "openai-project", "x-inner"} & set(headers)
    assert headers["authorization"] == f"Bearer {KEY}"


# ---------------------------------------------------------------------------------------------------------------------
# When it goes wrong


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_REQUEST_TIMEOUT_MS", "3000")


@pytest.mark.usefixtures("impatient")
async def test_after_a_timeout_it_is_retried_once(play: Play, model_of: Ask) -> None:
    stand_in, agent = await play("ollama"), Agent(name="a", model=model_of("ollama"))
    stand_in.enqueue(None, "Hello again.", None, None, "never asked for")
    assert (await run(agent)).output_text == "Hello again."
    assert stand_in.server.received == 2
    failure = await failure_of(agent)
    assert (failure.code, failure.details["reason"]) == ("AGENTS-E-PROVIDER-CONFIG", "timeout")
    assert "AGENTS_REQUEST_TIMEOUT_MS" in failure.message
    assert stand_in.server.received == 4


EVENTS = {"content-type": "text/event-stream"}


async def first_words() -> AsyncIterator[bytes]:
    delta = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    choices = [{"index": 0, "delta": {"role": "assistant", "content": "Well"}, "finish_reason": None}]
    yield f"data: {json.dumps({**delta, 'choices': choices})}\n\n".encode()


async def then_nothing() -> AsyncIterator[bytes]:
    async for chunk in first_words():
        yield chunk
    await asyncio.Event().wait()


async def then_garbage() -> AsyncIterator[bytes]:
    async for chunk in first_words():
        yield chunk
    yield b"data: {oops\n\n"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda: Reply(200, EVENTS, first_words(), ending=Ending.CUT), "network_error"),
        (lambda: Reply(200, EVENTS, then_nothing()), "timeout"),
        (lambda: Reply(200, EVENTS, then_garbage()), "broken"),
        (lambda: refusal(500, "down"), "http_error"),
    ],
)
async def test_a_stream_that_breaks_off_says_so(
    play: Play, model_of: Ask, reply: Callable[[], Reply], reason: str
) -> None:
    stand_in = await play("openrouter")
    stand_in.enqueue(reply())
    agent = Agent(name="a", model=model_of("openrouter"))
    with pytest.raises(AgentsError) as caught:
        await within(collected(create_runner(safety_agent=FakeJudge()).run_stream(agent, "Hello")))
    assert (caught.value.code, caught.value.details["reason"]) == ("AGENTS-E-STREAM", reason)
    assert stand_in.server.received == 1


@pytest.mark.parametrize(
    ("reply", "code", "reason", "named"),
    [
        (refusal(400, "no"), "AGENTS-E-COMPAT-UNSUPPORTED", "refused", "openrouter"),
        (refusal(401, f"bad key {KEY}"), "AGENTS-E-PROVIDER-CONFIG", "key", "AGENTS_OPENROUTER_API_KEY"),
        (refusal(404, "no"), "AGENTS-E-PROVIDER-CONFIG", "not_found", "AGENTS_OPENROUTER_MODEL"),
        (refusal(429, "no"), "AGENTS-E-RUNNER", "overloaded", "openrouter"),
        (Reply(302, {"location": "http://127.0.0.1:9/"}), "AGENTS-E-RUNNER", "http_error", "openrouter"),
        (HANG_UP, "AGENTS-E-PROVIDER-CONFIG", "network_error", "AGENTS_OPENROUTER_BASE_URL"),
        (Reply(200, {"content-type": "application/json"}, b"{"), "AGENTS-E-RUNNER", "broken", "openrouter"),
    ],
    ids=["400", "401", "404", "429", "302", "hang up", "no JSON"],
)
async def test_a_failure_has_a_code_a_reason_and_the_variable_to_check(
    play: Play, model_of: Ask, reply: Reply, code: str, reason: str, named: str
) -> None:
    stand_in = await play("openrouter")
    stand_in.enqueue(reply)
    failure = await failure_of(Agent(name="a", model=model_of("openrouter")))
    assert (failure.code, failure.details["provider"], failure.details["reason"]) == (code, "openrouter", reason)
    assert named in failure.message
    assert stand_in.server.received == 1


def test_every_exception_of_the_vendor_has_a_place_in_the_table() -> None:
    vendor = [kind for kind in [*vars(openai).values()] if isinstance(kind, type) and issubclass(kind, Exception)]
    unmapped = [kind.__name__ for kind in vendor if not issubclass(kind, tuple(row[0] for row in FAILURES))]
    assert unmapped == []


async def test_advice_on_retries_is_the_vendors(play: Play, model_of: Ask) -> None:
    (await play("openrouter")).enqueue(refusal(429, "slow down"))
    model = model_of("openrouter")
    failure = await failure_of(Agent(name="a", model=model))
    request = ModelRetryAdviceRequest(error=failure, attempt=1, stream=False)
    assert model.get_retry_advice(request) is not None


def test_one_model_serves_one_event_loop_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def once(model: CompatModel | None) -> CompatModel:
        async with ChatStandIn("ollama") as stand_in:
            if model is None:
                model = CompatModel("m", CompatModelConfig(stand_in.base_url, provider="ollama"))
            object.__setattr__(model.config, "base_url", stand_in.base_url)
            assert (await run(Agent(name="a", model=model))).output_text == "Hello."
            await model.close()
            return model

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    model = asyncio.run(once(None))
    asyncio.run(once(model))


# ---------------------------------------------------------------------------------------------------------------------
# OpenAI itself


async def test_openai_is_asked_over_the_responses_api_with_everything_it_can_do(rehearsal: StandInThread) -> None:
    config = CompatModelConfig(rehearsal.base_url, api_key=KEY, api="responses", provider="openai")
    model = CompatModel("gpt-4.1-mini", config)
    settings = ModelSettings(tool_choice="required")
    agent = Agent(name="a", model=model, tools=[WebSearchTool()], model_settings=settings)
    result = await run(agent)
    assert result.output_text
    await model.close()
    assert rehearsal.server.requests[0].path.endswith("/responses")


async def test_other_tool_choices_are_sent_as_they_are(play: Play, model_of: Ask) -> None:
    stand_in, model, choices = await play("lmstudio"), model_of("lmstudio"), ["none", "required", "auto"]
    for choice in choices:
        await run(Agent(name="a", model=model, tools=[add], model_settings=ModelSettings(tool_choice=choice)))
    assert [body["tool_choice"] for body in stand_in.bodies] == choices


@pytest.mark.usefixtures("impatient")
async def test_a_stream_is_not_tried_again(play: Play, model_of: Ask) -> None:
    stand_in = await play("ollama")
    stand_in.enqueue(None, "never asked for")
    agent = Agent(name="a", model=model_of("ollama"))
    with pytest.raises(AgentsError) as caught:
        await within(anext(aiter(create_runner(safety_agent=FakeJudge()).run_stream(agent, "Hello"))))
    assert (caught.value.code, caught.value.details["reason"]) == ("AGENTS-E-PROVIDER-CONFIG", "timeout")
    assert stand_in.server.received == 1
