"""Runs from start to end: the gate on every path, pauses, resumes, logs."""

import asyncio
import json
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
    RequestedToolCall,
    ResumeOptions,
    RunOptions,
    SafetyAgent,
    create_runner,
    run,
    tool,
)
from openai_responses_mcp.agents.adapters.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.sql_stores import SqlExecutionLogStore
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import ASK, DENY, BreakableLogStore, FakeClock, FakeJudge, code_of, collected, within


class Scene:
    """Two tools that note what they were called with, an agent, a judge and a runner."""

    def __init__(self, *turns: Any, **options: Any) -> None:
        self.ran: list[str] = []
        self.judge = FakeJudge()
        self.model = ScriptedModel(*turns)

        @tool
        def look(what: str = "around") -> str:
            """Look at something."""
            self.ran.append(f"look {what}")
            return f"saw {what}"

        @tool(risk_level=3)
        def pay(amount: int) -> str:
            """Pay somebody."""
            self.ran.append(f"pay {amount}")
            return f"paid {amount}"

        self.look, self.pay = look, pay
        self.agent = Agent(name="Clerk", model=self.model, tools=[look, pay])
        self.runner = create_runner(safety_agent=self.judge, **options)

    async def go(self, extensions: Extensions | None = None) -> Any:
        return await within(self.runner.run(self.agent, "go", RunOptions(extensions=extensions)))

    async def paused(self) -> Any:
        result = await self.go()
        assert result.interruptions
        return result

    async def events(self) -> list[tuple[str, str]]:
        return [(log.event, log.decision) for log in await self.runner.get_execution_logs()]


LOOK = ScriptedCall("look", {"what": "here"}, "l-1")
PAY = ScriptedCall("pay", {"amount": 5}, "p-1")


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


# ---------------------------------------------------------------------------------------------------------------------
# Calls that the caller asks for


async def test_calls_asked_for_by_the_caller_need_no_model_and_pass_the_gate() -> None:
    scene = Scene()
    calls = (RequestedToolCall("look", {"what": "a"}), RequestedToolCall("look", {"what": "b"}))
    result = await scene.go(Extensions(tool_calls=calls))
    assert scene.ran == ["look a", "look b"]
    assert result.output_text == "saw a\nsaw b"
    assert [call.output for call in result.tool_calls] == ["saw a", "saw b"]
    assert scene.model.calls == []
    assert len(scene.judge.requests) == 2


async def test_calls_asked_for_by_the_caller_can_be_streamed() -> None:
    scene = Scene()
    options = RunOptions(extensions=Extensions(tool_calls=(RequestedToolCall("look", {"what": "a"}),)))
    events = await within(collected(scene.runner.run_stream(scene.agent, "", options)))
    assert [event.type for event in events] == ["tool_call", "tool_output", "final_output"]
    assert (events[-1].final_output, scene.ran) == ("saw a", ["look a"])


async def test_a_handoff_can_be_asked_for_by_the_caller() -> None:
    scene = Scene()
    scene.agent.handoffs = [Agent(name="Second", model=ScriptedModel("second here"))]
    result = await scene.go(Extensions(tool_calls=(RequestedToolCall("Second"),)))
    assert result.output_text == "second here"
    assert [request.tool_name for request in scene.judge.requests] == ["Second"]


async def test_a_call_asked_for_by_the_caller_can_be_denied() -> None:
    scene = Scene()
    scene.judge.on("look", DENY)
    calls = (RequestedToolCall("look"), RequestedToolCall("pay", {"amount": 1}))
    assert await code_of(scene.go(Extensions(tool_calls=calls))) == "AGENTS-E-GATE-DENIED"
    assert scene.ran == []


async def test_a_call_asked_for_by_the_caller_can_wait_for_a_human_elsewhere(sqlite_url: str) -> None:
    scene = Scene(store=sqlite_url)
    call = RequestedToolCall("pay", {"amount": 7})
    paused = await within(scene.runner.run(scene.agent, "", RunOptions(extensions=Extensions(tool_calls=(call,)))))
    other = Scene(store=sqlite_url)
    (request,) = await other.runner.get_pending_approvals(paused.run_id)
    result = await within(other.runner.approve_and_resume(paused.run_id, request.approval_id, agent=other.agent))
    assert (result.output_text, scene.ran, other.ran) == ("paid 7", [], ["pay 7"])


async def test_a_call_of_a_tool_that_the_agent_has_not_is_refused() -> None:
    scene = Scene()
    extensions = Extensions(tool_calls=(RequestedToolCall("fly"),))
    assert await code_of(scene.go(extensions)) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"


# ---------------------------------------------------------------------------------------------------------------------
# Pausing and resuming


async def test_a_turn_waits_as_a_whole_for_a_human() -> None:
    scene = Scene([LOOK, PAY], "all good")
    paused = await scene.paused()
    assert scene.ran == []
    (request,) = paused.interruptions
    assert (request.tool_name, request.tool_call_id, request.status) == ("pay", "p-1", "pending")
    assert await scene.runner.get_pending_approvals() == [request]
    result = await within(scene.runner.approve_and_resume(paused.run_id, request.approval_id, comment="checked"))
    assert result.output_text == "all good"
    assert sorted(scene.ran) == ["look here", "pay 5"]
    assert [call.tool_name for call in result.tool_calls] == ["look", "pay"]
    assert await scene.runner.get_pending_approvals(paused.run_id) == []
    approval = next(log for log in await scene.runner.get_execution_logs() if log.event == "approval")
    assert (approval.decision, approval.comment) == ("approved", "checked")


async def test_a_run_is_approved_and_resumed_in_two_steps() -> None:
    scene = Scene(PAY, "all good")
    paused = await scene.paused()
    token = await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    assert scene.ran == []
    result = await within(scene.runner.resume_run(paused.run_id, token.token))
    assert (result.output_text, scene.ran) == ("all good", ["pay 5"])


async def test_a_run_is_resumed_by_another_process_after_a_restart(shared_url: str) -> None:
    first, second = Scene([LOOK, PAY], store=shared_url), Scene("all good", store=shared_url)
    paused = await first.paused()
    (request,) = await second.runner.get_pending_approvals(paused.run_id)
    token = await second.runner.submit_approval(request.approval_id, "approve")
    result = await within(second.runner.resume_run(paused.run_id, token.token, agent=second.agent))
    assert result.output_text == "all good"
    assert (first.ran, sorted(second.ran)) == ([], ["look here", "pay 5"])
    assert (await second.runner.verify_execution_logs()).is_intact


async def test_another_process_must_be_given_the_agent_and_nothing_is_spent_before(sqlite_url: str) -> None:
    first, second = Scene(PAY, store=sqlite_url), Scene("all good", store=sqlite_url)
    paused = await first.paused()
    approval_id = paused.interruptions[0].approval_id
    assert await code_of(second.runner.approve_and_resume(paused.run_id, approval_id)) == "AGENTS-E-RUNNER-CONFIG"
    token = await second.runner.submit_approval(approval_id, "approve")
    assert await code_of(second.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-RUNNER-CONFIG"
    result = await within(second.runner.resume_run(paused.run_id, token.token, agent=second.agent))
    assert result.output_text == "all good"


async def test_a_denied_run_resumes_into_a_refusal() -> None:
    scene = Scene(PAY)
    paused = await scene.paused()
    token = await scene.runner.submit_approval(paused.interruptions[0].approval_id, "deny", "too much")
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED") as caught:
        await within(scene.runner.resume_run(paused.run_id, token.token))
    assert "too much" in str(caught.value)
    assert scene.ran == []
    assert await code_of(scene.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-RESUME-TOKEN"


async def test_a_run_is_denied_in_one_step() -> None:
    scene = Scene(PAY)
    paused = await scene.paused()
    work = scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id, decision="deny")
    assert await code_of(work) == "AGENTS-E-GATE-DENIED"
    assert scene.ran == []


async def test_with_several_in_one_turn_nothing_runs_until_all_are_decided() -> None:
    scene = Scene([PAY, ScriptedCall("pay", {"amount": 6}, "p-2")], "all good")
    paused = await scene.paused()
    first, second = paused.interruptions
    token = await scene.runner.submit_approval(first.approval_id, "approve")
    assert await code_of(scene.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-APPROVAL-INVALID"
    assert [one.approval_id for one in await scene.runner.get_pending_approvals()] == [second.approval_id]
    await scene.runner.submit_approval(second.approval_id, "approve")
    assert scene.ran == []
    assert (await within(scene.runner.resume_run(paused.run_id, token.token))).output_text == "all good"
    assert sorted(scene.ran) == ["pay 5", "pay 6"]


async def test_of_two_tokens_of_a_turn_only_one_resumes_it() -> None:
    scene = Scene([PAY, ScriptedCall("pay", {"amount": 6}, "p-2")], "all good")
    paused = await scene.paused()
    tokens = [await scene.runner.submit_approval(one.approval_id, "approve") for one in paused.interruptions]
    codes = await asyncio.gather(*(code_of(scene.runner.resume_run(paused.run_id, token.token)) for token in tokens))
    assert sorted(codes) == ["", "AGENTS-E-RESUME-TOKEN"]
    assert sorted(scene.ran) == ["pay 5", "pay 6"]


async def test_one_denied_of_several_stops_them_all() -> None:
    scene = Scene([PAY, ScriptedCall("pay", {"amount": 6}, "p-2")])
    paused = await scene.paused()
    first, second = paused.interruptions
    halfway = await within(scene.runner.approve_and_resume(paused.run_id, first.approval_id, decision="deny"))
    assert [one.approval_id for one in halfway.interruptions] == [second.approval_id]
    assert await code_of(scene.runner.approve_and_resume(paused.run_id, second.approval_id)) == "AGENTS-E-GATE-DENIED"
    assert scene.ran == []


async def test_an_approval_of_another_run_is_not_found() -> None:
    scene = Scene(PAY, PAY)
    one, other = await scene.paused(), await scene.paused()
    work = scene.runner.approve_and_resume(one.run_id, other.interruptions[0].approval_id)
    assert await code_of(work) == "AGENTS-E-APPROVAL-NOT-FOUND"


async def test_pending_approvals_of_an_unknown_run_are_an_error_and_of_a_known_one_an_empty_list() -> None:
    scene = Scene("all good")
    result = await scene.go()
    assert await scene.runner.get_pending_approvals(result.run_id) == []
    assert await scene.runner.get_pending_approvals() == []
    assert await code_of(scene.runner.get_pending_approvals("run_x")) == "AGENTS-E-APPROVAL-NOT-FOUND"


async def test_a_run_can_pause_more_than_once() -> None:
    scene = Scene(PAY, ScriptedCall("pay", {"amount": 6}, "p-2"), "all good")
    paused = await scene.paused()
    again = await within(scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert (again.run_id, scene.ran) == (paused.run_id, ["pay 5"])
    result = await within(scene.runner.approve_and_resume(again.run_id, again.interruptions[0].approval_id))
    assert (result.output_text, scene.ran) == ("all good", ["pay 5", "pay 6"])
    assert [call.tool_call_id for call in result.tool_calls] == ["p-1", "p-2"]


async def test_resume_through_the_options_tells_the_model_what_the_human_said() -> None:
    scene = Scene(PAY, "all good")
    paused = await scene.paused()
    token = await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    resume = ResumeOptions(token.token, human_response="but not again this month")
    result = await scene.go(Extensions(resume=resume))
    assert (result.run_id, result.output_text, scene.ran) == (paused.run_id, "all good", ["pay 5"])
    assert "but not again this month" in json.dumps(scene.model.calls[-1].input, default=str)


async def test_what_the_human_said_is_kept_when_no_model_is_left_to_hear_it() -> None:
    scene = Scene(PAY)
    scene.agent.tool_use_behavior = "stop_on_first_tool"
    paused = await scene.paused()
    token = await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    result = await scene.go(Extensions(resume=ResumeOptions(token.token, "fine")))
    assert result.output_text == "paid 5"


async def test_an_expired_token_asks_again_and_the_new_one_works(clock: FakeClock) -> None:
    scene = Scene(PAY, "all good", clock=clock, resume_token_ttl_sec=60)
    paused = await scene.paused()
    token = await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    clock.move(60)
    assert await code_of(scene.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-RESUME-TOKEN"
    (renewed,) = await scene.runner.get_pending_approvals(paused.run_id)
    assert renewed.approval_id != paused.interruptions[0].approval_id
    result = await within(scene.runner.approve_and_resume(paused.run_id, renewed.approval_id))
    assert (result.output_text, scene.ran) == ("all good", ["pay 5"])


async def test_context_and_settings_of_the_caller_survive_a_pause_in_the_same_process() -> None:
    seen: list[Any] = []

    @sdk.function_tool(needs_approval=True)
    def peek(context: sdk.RunContextWrapper[Any]) -> str:
        """Look at the context."""
        seen.append(context.context)
        return "seen"

    mine = object()
    agent = Agent(name="A", model=ScriptedModel(ScriptedCall("peek"), "done"), tools=[peek])
    runner = create_runner(safety_agent=FakeJudge())
    paused = await within(runner.run(agent, "go", RunOptions(sdk={"context": mine})))
    await within(runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert seen == [mine]


# ---------------------------------------------------------------------------------------------------------------------
# Streams


async def test_a_stream_shows_text_calls_and_the_end() -> None:
    scene = Scene(LOOK, "all good")
    events = await within(collected(scene.runner.run_stream(scene.agent, "go")))
    assert [event.type for event in events] == ["tool_call", "tool_output", "text_delta", "final_output"]
    assert events[0].tool_call is not None
    assert events[0].tool_call.args == {"what": "here"}
    assert events[1].tool_call is not None
    assert events[1].tool_call.output == "saw here"
    assert events[2].delta == "all good"
    assert events[3].final_output == "all good"
    assert events[3].result.output_text == "all good"


async def test_a_streamed_call_waits_for_a_human_and_is_resumed() -> None:
    scene = Scene([LOOK, PAY], "all good")
    events = await within(collected(scene.runner.run_stream(scene.agent, "go")))
    paused = events[-1].result
    assert (events[-1].type, events[-1].final_output, scene.ran) == ("interrupted", None, [])
    result = await within(scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert result.output_text == "all good"


async def test_a_streamed_handoff_waits_for_a_human() -> None:
    scene = Scene(ScriptedCall("transfer_to_second"))
    second = Agent(name="Second", model=ScriptedModel("second here"))
    scene.agent.handoffs = [second]
    scene.judge.on("Second", ASK)
    events = await within(collected(scene.runner.run_stream(scene.agent, "go")))
    paused = events[-1].result
    assert [one.tool_name for one in paused.interruptions] == ["Second"]
    result = await within(scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert result.output_text == "second here"


async def test_a_denied_call_in_a_stream_runs_nothing() -> None:
    scene = Scene([LOOK, PAY])
    scene.judge.on("pay", DENY)
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
        await within(collected(scene.runner.run_stream(scene.agent, "go")))
    assert scene.ran == []


async def test_a_broken_stream_is_a_stream_error() -> None:
    scene = Scene(ConnectionError("cut"))
    with pytest.raises(AgentsError, match="AGENTS-E-STREAM"):
        await within(collected(scene.runner.run_stream(scene.agent, "go")))


async def test_a_stream_that_is_left_early_ends_the_run() -> None:
    scene = Scene("all good")
    stream = scene.runner.run_stream(scene.agent, "go")
    async for _ in stream:
        break
    await within(stream.aclose())  # type: ignore[attr-defined]
    scene.model.enqueue("again")
    assert (await scene.go()).output_text == "again"


async def test_many_runs_of_one_agent_at_once_do_not_see_each_other() -> None:
    class Echo(ScriptedModel):
        async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> Any:
            asked = input[0]["content"]
            done = any(item.get("type") == "function_call_output" for item in input if isinstance(item, dict))
            turn = f"done {asked}" if done else ScriptedCall("look", {"what": asked}, f"call-{asked}")
            return await ScriptedModel(turn).get_response(system_instructions, input, *args, **options)

    scene = Scene()
    agent = Agent(name="Echo", model=Echo(), tools=[scene.look])
    results = await within(asyncio.gather(*(scene.runner.run(agent, str(number)) for number in range(20))))
    assert [result.output_text for result in results] == [f"done {number}" for number in range(20)]
    assert [result.tool_calls[0].output for result in results] == [f"saw {number}" for number in range(20)]
    assert (await scene.runner.verify_execution_logs()).is_intact


# ---------------------------------------------------------------------------------------------------------------------
# The log


async def test_the_log_is_found_by_run_and_by_time(clock: FakeClock) -> None:
    scene = Scene(LOOK, "one", LOOK, "two", clock=clock)
    first = await scene.go()
    clock.move(60)
    second = await scene.go()
    assert {log.run_id for log in await scene.runner.get_execution_logs(first.run_id)} == {first.run_id}
    logs = await scene.runner.get_execution_logs(since="2026-11-16T09:01:00+00:00")
    assert {log.run_id for log in logs} == {second.run_id}


async def test_best_effort_runs_on_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    store = BreakableLogStore(SqlExecutionLogStore(SqlDatabase()))
    store.is_broken = True
    scene = Scene(LOOK, "one", LOOK, "two", log_store=store)
    with caplog.at_level(logging.WARNING):
        result = await scene.go()
    assert (result.output_text, scene.ran) == ("one", ["look here"])
    assert "AGENTS-E-LOG-STORE" in result.extensions
    assert "AGENTS-E-LOG-STORE" in caplog.text
    store.is_broken = False
    assert "AGENTS-E-LOG-STORE" not in (await scene.go()).extensions
    assert len(await scene.events()) == 6


@pytest.mark.parametrize("event", ["decision", "started"])
async def test_required_does_not_run_the_tool(event: str) -> None:
    store = BreakableLogStore(SqlExecutionLogStore(SqlDatabase()))
    store.breaks_at = lambda log: log.event == event
    scene = Scene(LOOK, "one", log_store=store, audit="required")
    assert await code_of(scene.go()) == "AGENTS-E-LOG-STORE"
    assert scene.ran == []


async def test_required_reports_an_outcome_that_could_not_be_recorded() -> None:
    store = BreakableLogStore(SqlExecutionLogStore(SqlDatabase()))
    store.breaks_at = lambda log: log.event == "outcome"
    scene = Scene(LOOK, "one", log_store=store, audit="required")
    assert await code_of(scene.go()) == "AGENTS-E-LOG-STORE"
    assert scene.ran == ["look here"]


# ---------------------------------------------------------------------------------------------------------------------
# Making runners


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


async def test_only_so_many_paused_runs_are_remembered() -> None:
    scene = Scene(PAY)
    paused = await scene.paused()
    for number in range(1000):
        scene.runner._remember(f"run_{number}", scene.agent, {})
    work = scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id)
    assert await code_of(work) == "AGENTS-E-RUNNER-CONFIG"
