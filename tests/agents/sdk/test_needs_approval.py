"""A tool's `needs_approval` is asked as the SDK asks it, and no number that JSON does not have reaches a tool."""

import asyncio
from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents import Agent, SafetyAgent, create_runner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import code_of, within


class Deployment:
    """A tool that asks a human for `prod` only, and notes what its predicate saw and what ran."""

    def __init__(self, arguments: str) -> None:
        self.seen: list[dict[str, Any]] = []
        self.ran: list[tuple[str, float]] = []

        async def is_prod(context: object, args: dict[str, Any], call_id: str) -> bool:
            self.seen.append(args)
            return args.get("target") == "prod"

        @sdk.function_tool(needs_approval=is_prod, strict_mode=False)
        def deploy(target: str = "prod", share: float = 1) -> str:
            """Deploy."""
            self.ran.append((target, share))
            return "deployed"

        self.tool = deploy
        self.model = ScriptedModel(ScriptedCall("deploy", arguments), "done")
        self.agent = Agent(name="Ops", model=self.model, tools=[deploy])
        self.runner = create_runner(safety_agent=SafetyAgent.allow_all())

    async def go(self) -> Any:
        return await within(self.runner.run(self.agent, "go"))

    async def approved(self) -> Any:
        paused = await self.go()
        return await within(self.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))


ASKED = [
    pytest.param("", id="empty"),
    pytest.param('{"target": "test", "sha', id="cut"),
    pytest.param("null", id="null"),
    pytest.param("[]", id="a list"),
    pytest.param('{"target": "test", "share": NaN}', id="NaN"),
    pytest.param("{}", id="prod by default"),
    pytest.param('{"target": "test", "share": "1"}', id="a text becomes a number"),
]


@pytest.mark.parametrize("arguments", ASKED)
async def test_a_human_is_asked_as_in_the_sdk_if_validation_would_change_the_arguments(arguments: str) -> None:
    ours, theirs = Deployment(arguments), Deployment(arguments)
    result = await ours.go()
    assert [request.tool_name for request in result.interruptions] == ["deploy"]
    assert (ours.seen, ours.ran) == ([], [])
    agent = sdk.Agent(name="Ops", model=theirs.model, tools=[theirs.tool])
    plain = await within(sdk.Runner.run(agent, "go", run_config=sdk.RunConfig(tracing_disabled=True)))
    assert [item.name for item in plain.interruptions] == ["deploy"]


async def test_the_predicate_decides_on_arguments_that_validation_does_not_change() -> None:
    deployment = Deployment('{"target": "test", "share": 0.5}')
    assert (await deployment.go()).output_text == "done"
    assert deployment.seen == [{"target": "test", "share": 0.5}]
    assert deployment.ran == [("test", 0.5)]


async def test_arguments_are_validated_after_a_yes() -> None:
    by_default, cut = Deployment("{}"), Deployment('{"target": "test", "sha')
    await by_default.approved()
    await cut.approved()
    assert by_default.ran == [("prod", 1)]
    assert cut.ran == []


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
async def test_a_number_that_is_not_finite_reaches_no_tool_even_after_a_yes(number: str) -> None:
    deployment = Deployment(f'{{"target": "test", "share": {number}}}')
    result = await deployment.approved()
    assert deployment.ran == []
    assert str(result.tool_calls[0].output).startswith("Invalid JSON input for tool deploy: ")
    logs = await deployment.runner.get_execution_logs(result.run_id)
    assert (logs[-1].event, logs[-1].decision) == ("outcome", "failed")


@pytest.mark.parametrize("number", ["-Infinity", "-1e400", "9" * 5000])
async def test_a_number_that_some_cannot_read_reaches_no_tool_that_is_never_asked_about(number: str) -> None:
    ran: list[str] = []

    async def note(context: object, arguments: str) -> str:
        ran.append(arguments)
        return "noted"

    plain = sdk.FunctionTool("note", "Note.", {"type": "object", "properties": {}}, note, strict_json_schema=False)
    model = ScriptedModel(ScriptedCall("note", f'{{"amount": {number}}}'), "done")
    agent = Agent(name="A", model=model, tools=[plain])
    await within(create_runner(safety_agent=SafetyAgent.allow_all()).run(agent, "go"))
    assert ran == []


async def test_all_predicates_of_a_turn_are_asked_at_once() -> None:
    both = asyncio.Barrier(2)

    async def meets_the_other(context: object, args: object, call_id: str) -> bool:
        await both.wait()
        return call_id == "second"

    @sdk.function_tool(needs_approval=meets_the_other)
    def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel([ScriptedCall("look", {}, "first"), ScriptedCall("look", {}, "second")])
    runner = create_runner(safety_agent=SafetyAgent.allow_all())
    result = await within(runner.run(Agent(name="A", model=model, tools=[look]), "go"))
    assert [request.tool_call_id for request in result.interruptions] == ["second"]


async def test_a_predicate_that_fails_ends_the_others_and_the_turn() -> None:
    ended, ran = asyncio.Event(), list[str]()

    async def fails(context: object, args: dict[str, Any], call_id: str) -> bool:
        if call_id == "first":
            raise ValueError("no idea")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return False

    @sdk.function_tool(needs_approval=fails)
    def look() -> str:
        """Look."""
        ran.append("look")
        return "seen"

    model = ScriptedModel([ScriptedCall("look", {}, "second"), ScriptedCall("look", {}, "first")])
    run = create_runner(safety_agent=SafetyAgent.allow_all()).run(Agent(name="A", model=model, tools=[look]), "go")
    assert await code_of(run) == "AGENTS-E-RUNNER"
    await within(ended.wait())
    assert ran == []
