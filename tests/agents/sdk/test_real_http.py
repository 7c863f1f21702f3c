"""Once with a real model over HTTP: the SDK's own client against the stand-in of this project."""

import agents as sdk
import pytest
from openai import AsyncOpenAI

from openai_responses_mcp.agents import Agent, Extensions, RunOptions, create_runner, tool
from tests.agents.fakes import FakeJudge, collected, last_result, within
from tests.stand_in.server import StandIn

WRITTEN: list[str] = []


@tool(risk_level=3)
def write(text: str) -> str:
    """Write something down."""
    WRITTEN.append(text)
    return f"wrote {text}"


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_model_over_http_calls_a_tool_that_waits_for_a_human(is_streamed: bool) -> None:
    WRITTEN.clear()
    server = StandIn(keep_requests=10)
    base_url = await server.start()
    client = AsyncOpenAI(api_key="sk-test-0123456789", base_url=base_url, max_retries=0)
    try:
        model = sdk.OpenAIResponsesModel(model="gpt-test", openai_client=client)
        agent = Agent(name="Clerk", model=model, tools=[write])
        runner = create_runner(safety_agent=FakeJudge())
        question = '[rehearse: call=write; args={"text": "hello"}] Write hello.'
        options = RunOptions(extensions=Extensions(max_turns=4))
        if is_streamed:
            events = await within(collected(runner.run_stream(agent, question, options)))
            paused = last_result(events)
        else:
            paused = await within(runner.run(agent, question, options))
        (request,) = paused.interruptions
        assert (request.tool_name, request.arguments, WRITTEN) == ("write", {"text": "hello"}, [])
        result = await within(runner.approve_and_resume(paused.run_id, request.approval_id))
        assert WRITTEN == ["hello"]
        assert result.output_text
        assert result.usage.requests == 2
        assert (await runner.verify_execution_logs()).is_intact
    finally:
        await client.close()
        await server.close()
