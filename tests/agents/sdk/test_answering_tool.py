"""The answering use case as a tool of an agent, in process."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents import (
    Agent,
    AgentsError,
    Extensions,
    RequestedToolCall,
    RunOptions,
    create_runner,
)
from openai_responses_mcp.agents.composition import answer_tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import FakeJudge, within
from tests.stand_in.server import StandInThread

KEY = "sk-made-up-0123456789"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rehearsal: StandInThread) -> None:
    for name in ("MODEL_ANSWER", "MODEL_DETAILED", "MODEL_QUICK", "DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", rehearsal.base_url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


async def call(name: str, args: dict[str, Any]) -> Any:
    agent = Agent(name="caller", tools=[answer_tool(name)])
    options = RunOptions(extensions=Extensions(tool_calls=(RequestedToolCall(name, args),)))
    result = await within(create_runner(safety_agent=FakeJudge()).run(agent, "", options))
    return result.tool_calls[0].output


async def test_an_agent_answers_with_sources() -> None:
    model = ScriptedModel([ScriptedCall("answer", {"query": "What is the latest news?"})], "Here you are.")
    judge = FakeJudge()
    agent = Agent(name="caller", model=model, tools=[answer_tool()])
    result = await within(create_runner(safety_agent=judge).run(agent, "News?"))
    answer = json.loads(str(result.tool_calls[0].output))
    assert answer["used_search"] is True
    assert answer["citations"]
    assert judge.requests[0].target_tool is not None
    assert judge.requests[0].target_tool.own_risk == 2


@pytest.mark.parametrize(("name", "args"), [("answer_quick", {"query": "Why?"}), ("iris", {"input": "Why?"})])
async def test_every_profile_of_the_server_can_be_had(name: str, args: dict[str, Any]) -> None:
    assert json.loads(await call(name, args))["answer"]


@pytest.mark.parametrize("args", [{}, {"query": "  "}, {"query": "Why?", "max_results": 99}])
async def test_the_model_gets_an_error_for_a_question_that_cannot_be_asked(args: dict[str, Any]) -> None:
    assert (await call("answer", args)).startswith("The question was not answered")


async def test_a_failure_of_the_api_is_reported_without_the_key() -> None:
    output = await call("answer", {"query": "Why? [rehearse: status=401]"})
    assert output.startswith("The question was not answered")
    assert KEY not in output


async def test_arguments_that_are_no_object_lack_the_question() -> None:
    tool: Any = answer_tool()
    for arguments in ("[]", "{"):
        assert "query is required" in await tool.on_invoke_tool(None, arguments)


async def test_without_a_key_nothing_can_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    tool: Any = answer_tool()
    with pytest.raises(AgentsError) as caught:
        await tool.on_invoke_tool(None, '{"query": "Why?"}')
    assert caught.value.code == "AGENTS-E-PROVIDER-CONFIG"
    assert "OPENAI_API_KEY" in caught.value.message


def test_an_unknown_profile_or_a_bad_address_is_an_error_when_the_tool_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        answer_tool("everything")
    monkeypatch.setenv("OPENAI_BASE_URL", "nowhere")
    with pytest.raises(AgentsError, match="AGENTS-E-PROVIDER-CONFIG"):
        answer_tool()


async def test_calls_side_by_side_do_not_close_each_others_connections(rehearsal: StandInThread) -> None:
    tool: Any = answer_tool()
    questions = ["Why?", "Why? [rehearse: delay=0.3]", "Why?"]
    outputs = await within(
        asyncio.gather(*(tool.on_invoke_tool(None, json.dumps({"query": question})) for question in questions))
    )
    assert [json.loads(output)["used_search"] for output in outputs] == [False] * 3
    assert json.loads(await within(tool.on_invoke_tool(None, '{"query": "Again?"}')))["answer"]


def test_a_tool_answers_on_one_event_loop_after_the_other() -> None:
    tool: Any = answer_tool()
    for _ in range(2):
        assert json.loads(asyncio.run(tool.on_invoke_tool(None, '{"query": "Why?"}')))["answer"]
