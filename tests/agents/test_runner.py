"""Runs from start to end: the gate on every path."""

import asyncio
import logging
from typing import Any

import pytest

from openai_responses_mcp.agents import Agent, tool
from openai_responses_mcp.agents.runner import run
from openai_responses_mcp.agents.runs.models import Extensions, RequestedToolCall, RunOptions
from openai_responses_mcp.agents.testing import ScriptedCall
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.rules import PolicyProfile
from openai_responses_mcp.gate.safety_gate import SafetyAgent
from tests.agents.fakes import DENY, FakeClock, code_of, within
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


async def test_the_debug_log_has_decisions_without_arguments(caplog: pytest.LogCaptureFixture) -> None:
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

    scene = Scene([LOOK, PAY], judge=SafetyAgent(judge))
    task = asyncio.create_task(scene.runner.run(scene.agent, "go"))
    await within(waiting.wait())
    assert scene.ran == []
    decided.set()
    assert await code_of(task) == "AGENTS-E-GATE-DENIED"
    assert scene.ran == []


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

    scene = Scene(ScriptedCall("fail"))
    scene.agent.tools = [fail]
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER") as caught:
        await scene.go()
    assert "sk-0123" not in repr(caught.value)
    assert "sk-0123" not in str(caught.value.details)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    logs = await scene.runner.get_execution_logs()
    assert "sk-0123" not in str(logs)
    assert logs[-1].decision == "failed"


@pytest.mark.parametrize("text", ["", None])
async def test_a_run_needs_an_input(text: Any) -> None:
    scene = Scene()
    assert await code_of(scene.runner.run(scene.agent, text)) == "AGENTS-E-RUNNER"


async def test_the_ttl_comes_from_the_environment(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_RESUME_TOKEN_TTL_SEC", "30")
    scene = Scene(PAY, clock=clock)
    _, token = await scene.decided()
    assert token.expires_at == "2026-11-16T09:00:30.000000+00:00"


async def test_run_takes_a_runner() -> None:
    scene = Scene("all good")
    assert (await within(run(scene.agent, "go", runner=scene.runner))).output_text == "all good"


def test_a_run_needs_no_event_loop() -> None:
    scene = Scene("all good")
    assert scene.runner.run_sync(scene.agent, "go").output_text == "all good"


async def test_a_run_without_a_loop_is_not_for_running_loops() -> None:
    scene = Scene("never said")
    with pytest.raises(AgentsError, match="await run"):
        scene.runner.run_sync(scene.agent, "go")


# ---------------------------------------------------------------------------------------------------------------------
# Calls that the caller asks for, without a model


async def test_requested_calls_need_no_model_and_pass_the_gate() -> None:
    scene = Scene()
    calls = (RequestedToolCall("look", {"what": "a"}), RequestedToolCall("look", {"what": "b"}))
    result = await scene.go(Extensions(tool_calls=calls))
    assert scene.ran == ["look a", "look b"]
    assert result.output_text == "saw a\nsaw b"
    assert [call.output for call in result.tool_calls] == ["saw a", "saw b"]
    assert scene.heard == []
    assert len(scene.judge.requests) == 2


async def test_a_handoff_can_be_requested() -> None:
    scene = Scene("second here")
    scene.agent.handoffs = [Agent(name="Second", model=scene.model)]
    result = await scene.go(Extensions(tool_calls=(RequestedToolCall("Second"),)))
    assert result.output_text == "second here"
    assert [request.tool_name for request in scene.judge.requests] == ["Second"]


async def test_a_requested_call_can_wait_for_a_human_elsewhere(sqlite_url: str) -> None:
    scene = Scene(store=sqlite_url)
    call = RequestedToolCall("pay", {"amount": 7})
    paused = await within(scene.runner.run(scene.agent, "", RunOptions(extensions=Extensions(tool_calls=(call,)))))
    other = Scene(store=sqlite_url)
    (request,) = await other.runner.get_pending_approvals(paused.run_id)
    result = await within(other.runner.approve_and_resume(paused.run_id, request.approval_id, agent=other.agent))
    assert (result.output_text, scene.ran, other.ran) == ("paid 7", [], ["pay 7"])
