"""Runs from start to end: the gate on every path, and how runners are made."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents as sdk
import pytest
from pydantic import BaseModel

from openai_responses_mcp.agents import (
    Agent,
    Extensions,
    PolicyProfile,
    RunOptions,
    SafetyAgent,
    create_runner,
    run,
    tool,
)
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import DENY, FakeClock, FakeJudge, code_of, within
from tests.agents.scenes import LOOK, PAY, Scene


async def test_an_allowed_call_runs_and_is_recorded() -> None:
    scene = Scene(LOOK, "all good")
    result = await scene.go()
    assert result.output_text == "all good"
    assert scene.ran == ["look here"]
    (call,) = result.tool_calls
    assert (call.tool_call_id, call.tool_name, call.tool_kind, call.args, call.output) == (
        "l-1", "look", "function", {"what": "here"}, "saw here",
    )  # fmt: skip
    assert await scene.events() == [("decision", "allow"), ("started", "started"), ("outcome", "completed")]
    assert result.extensions == {"policy_profile": "balanced"}
    assert result.usage.requests == 2
    assert result.messages[0] == {"role": "user", "content": "go"}


async def test_a_result_is_also_the_sdks() -> None:
    scene = Scene(LOOK, "all good")
    result = await scene.go()
    assert result.final_output == "all good"
    assert [type(item).__name__ for item in result.new_items] == [
        "ToolCallItem",
        "ToolCallOutputItem",
        "MessageOutputItem",
    ]
    assert result.to_input_list() == result.messages
    assert result.final_output_as(str) == "all good"
    assert result.last_agent is scene.agent
    assert result.new_items[0].agent is scene.agent
    assert "1 calls" in repr(result)
    with pytest.raises(AttributeError):
        _ = result.no_such_thing


async def test_arguments_left_to_their_defaults_are_no_reason_to_stop() -> None:
    scene = Scene(ScriptedCall("look"), "all good")
    assert (await scene.go()).output_text == "all good"
    assert scene.ran == ["look around"]


async def test_the_debug_log_tells_of_decisions_without_arguments(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(PAY)
    with caplog.at_level(logging.DEBUG, logger="openai_responses_mcp.agents"):
        paused = await scene.paused()
    assert "gate: function pay -> needs_human, risk 3" in caplog.text
    assert "'arguments': ['amount']" in caplog.text
    assert paused.interruptions[0].approval_id in caplog.text


async def test_a_denied_call_stops_the_run_before_anything_runs() -> None:
    scene = Scene([LOOK, PAY], "never said")
    scene.judge.on("pay", DENY)
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED") as caught:
        await scene.go()
    assert scene.ran == []
    assert "not today" in str(caught.value)
    assert await scene.events() == [("decision", "allow"), ("decision", "deny")]


async def test_no_call_runs_before_its_slower_sibling_is_judged() -> None:
    decided, waiting = asyncio.Event(), asyncio.Event()

    async def judge(agent: Any, request: Any, policy: Any) -> dict[str, Any]:
        if request.tool_name == "look":
            return {"decision": "allow", "risk_level": 1, "reason": ""}
        waiting.set()
        await decided.wait()
        return {"decision": "deny", "risk_level": 1, "reason": "no"}

    scene = Scene([LOOK, PAY])
    runner = create_runner(safety_agent=SafetyAgent(judge))
    task = asyncio.create_task(runner.run(scene.agent, "go"))
    await within(waiting.wait())
    assert scene.ran == []
    decided.set()
    assert await code_of(task) == "AGENTS-E-GATE-DENIED"
    assert scene.ran == []


async def test_the_judge_sees_what_the_agent_can_do() -> None:
    scene = Scene(LOOK, "all good")
    await scene.go()
    (request,) = scene.judge.requests
    assert scene.judge.agents == [scene.agent]
    assert request.user_intent == "go"
    assert request.capability_snapshot is not None
    assert request.capability_snapshot.agent_name == "Clerk"
    assert request.capability_snapshot.tool_names == ("look", "pay")
    assert [entry.name for entry in request.tool_catalog] == ["look", "pay"]
    assert request.target_tool is not None
    assert request.target_tool.description == "Look at something."
    assert request.target_tool.parameters["properties"]["what"]["type"] == "string"


async def test_a_tool_of_the_sdk_that_needs_approval_asks_a_human() -> None:
    async def for_large_amounts(context: Any, args: dict[str, Any], call_id: str) -> bool:
        return bool(args["amount"] > 10)

    @sdk.function_tool(needs_approval=for_large_amounts)
    def spend(amount: int) -> str:
        """Spend something."""
        return f"spent {amount}"

    model = ScriptedModel(ScriptedCall("spend", {"amount": 5}), "small", ScriptedCall("spend", {"amount": 50}), "large")
    agent = sdk.Agent(name="A", model=model, tools=[spend])
    runner = create_runner(safety_agent=FakeJudge())
    assert (await within(runner.run(agent, "go"))).output_text == "small"
    paused = await within(runner.run(agent, "go"))
    assert [request.reason for request in paused.interruptions] == ["the tool asks for approval"]
    result = await within(runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert result.output_text == "large"


async def test_the_profile_of_the_agent_counts_where_the_run_names_none() -> None:
    scene = Scene(PAY, "paid", PAY)
    scene.agent.extensions = Extensions(policy_profile="fast")
    assert (await scene.go()).extensions == {"policy_profile": "fast"}
    assert (await scene.go(Extensions(policy_profile="strict"))).interruptions


async def test_a_profile_can_be_redefined() -> None:
    scene = Scene(LOOK)
    await scene.runner.set_policy_profile(PolicyProfile("balanced", 1, 5, ("function:pay",)))
    assert await code_of(scene.go()) == "AGENTS-E-GATE-DENIED"
    assert await code_of(scene.runner.set_policy_profile("fast")) == "AGENTS-E-POLICY-INVALID"  # type: ignore[arg-type]


async def test_a_failing_tool_is_recorded_without_its_secrets() -> None:
    @tool(failure_error_function=None)
    def fail() -> str:
        """Fail."""
        raise RuntimeError("wrong key sk-0123456789abcdef")

    runner = create_runner(safety_agent=FakeJudge())
    agent = Agent(name="A", model=ScriptedModel(ScriptedCall("fail")), tools=[fail])
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER") as caught:
        await within(runner.run(agent, "go"))
    assert "sk-0123" not in repr(caught.value)
    assert "sk-0123" not in str(caught.value.details)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    logs = await runner.get_execution_logs()
    assert "sk-0123" not in str(logs)
    assert logs[-1].decision == "failed"


async def test_a_tool_that_fails_softly_tells_the_model() -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise RuntimeError("no luck")

    agent = Agent(name="A", model=ScriptedModel(ScriptedCall("fail"), "oh well"), tools=[fail])
    result = await within(create_runner(safety_agent=FakeJudge()).run(agent, "go"))
    assert result.output_text == "oh well"
    assert "error occurred" in result.tool_calls[0].output


@pytest.mark.parametrize("text", ["", [], None, 5])
async def test_a_run_needs_an_input(text: Any) -> None:
    scene = Scene()
    assert await code_of(scene.runner.run(scene.agent, text)) == "AGENTS-E-RUNNER"


async def test_a_model_that_calls_an_unknown_tool_is_a_runner_error() -> None:
    assert await code_of(Scene(ScriptedCall("nothing")).go()) == "AGENTS-E-RUNNER"


async def test_a_model_that_uses_an_id_twice_is_a_runner_error() -> None:
    scene = Scene([ScriptedCall("look", {"what": "a"}, "x"), ScriptedCall("look", {"what": "b"}, "x")])
    assert await code_of(scene.go()) == "AGENTS-E-RUNNER"
    assert scene.ran == []


async def test_a_model_that_fails_is_a_runner_error_with_its_cause() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER") as caught:
        await Scene(ConnectionError("no line")).go()
    assert isinstance(caught.value.__cause__, ConnectionError)


async def test_turns_are_limited() -> None:
    scene = Scene(*(ScriptedCall("look", {"what": str(n)}) for n in range(3)))
    assert await code_of(scene.go(Extensions(max_turns=2))) == "AGENTS-E-RUNNER"
    assert len(scene.ran) == 2


async def test_arguments_that_are_no_json_are_judged_and_then_left_to_the_sdk() -> None:
    scene = Scene(ScriptedCall("look", "{not json"), "oh well")
    result = await scene.go()
    assert result.output_text == "oh well"
    assert scene.judge.requests[0].args == {"<unreadable>": "{not json"}
    assert scene.ran == []


async def test_a_structured_output_is_shown_as_text() -> None:
    class Total(BaseModel):
        total: int

    agent = Agent(name="A", model=ScriptedModel('{"total": 5}'), output_type=Total)
    result = await within(create_runner(safety_agent=FakeJudge()).run(agent, "go"))
    assert result.final_output == Total(total=5)
    assert result.output_text == '{"total":5}'


async def test_the_users_hooks_are_called_with_the_users_objects() -> None:
    seen: list[Any] = []

    class Hooks(sdk.RunHooks[Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            seen.append(("start", agent))

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            seen.append(("tool", tool))

        async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
            seen.append(("end", agent))

    scene = Scene(LOOK, "all good")
    await within(scene.runner.run(scene.agent, "go", RunOptions(sdk={"hooks": Hooks()})))
    assert seen[0][1] is scene.agent
    assert seen[1][1] is scene.look
    assert seen[2][1] is scene.agent


@pytest.mark.parametrize(
    "make",
    [
        lambda: create_runner(),
        lambda: create_runner(safety_agent="me"),  # type: ignore[arg-type]
        lambda: create_runner(safety_agent=FakeJudge(), store="mysql://x/y"),
        lambda: create_runner(safety_agent=FakeJudge(), store="nonsense"),
        lambda: create_runner(safety_agent=FakeJudge(), store="what://x"),
        lambda: create_runner(safety_agent=FakeJudge(), resume_token_ttl_sec=0),
        lambda: create_runner(safety_agent=FakeJudge(), resume_token_ttl_sec=True),
        lambda: create_runner(safety_agent=FakeJudge(), audit="sometimes"),  # type: ignore[arg-type]
    ],
)
def test_a_runner_that_cannot_be_made_says_why(make: Callable[[], AgentRunner]) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        make()


@pytest.mark.parametrize("value", ["", "abc", "-5", "0", "1.5", "９"])
def test_a_ttl_in_the_environment_must_make_sense(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_RESUME_TOKEN_TTL_SEC", value)
    with pytest.raises(AgentsError, match="AGENTS_RESUME_TOKEN_TTL_SEC"):
        create_runner(safety_agent=FakeJudge())


async def test_the_ttl_comes_from_the_environment(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_RESUME_TOKEN_TTL_SEC", "30")
    scene = Scene(PAY, clock=clock)
    paused = await scene.paused()
    token = await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    assert token.expires_at == "2026-11-16T09:00:30.000000+00:00"


async def test_a_head_may_be_kept_anywhere(tmp_path: Path) -> None:
    scene = Scene(LOOK, "all good", audit_head=tmp_path / "head")
    await scene.go()
    verification = await scene.runner.verify_execution_logs()
    assert (verification.is_intact, verification.uncovered) == (True, "")
    assert (tmp_path / "head").exists()


async def test_a_sqlite_file_has_its_head_beside_it(tmp_path: Path, sqlite_url: str) -> None:
    scene = Scene(LOOK, "all good", store=sqlite_url)
    await scene.go()
    assert (tmp_path / "agents.db.head").exists()
    assert (await scene.runner.verify_execution_logs()).uncovered == ""


async def test_run_takes_a_runner() -> None:
    scene = Scene("all good")
    assert (await within(run(scene.agent, "go", runner=scene.runner))).output_text == "all good"
