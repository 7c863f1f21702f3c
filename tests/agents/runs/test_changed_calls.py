"""A human approves a call with other arguments: judged again by every voice, run with the new seal, shown to the model."""

from typing import Annotated, Any

from pydantic import Field

from openai_responses_mcp.agents import tool
from openai_responses_mcp.agents.testing import ScriptedCall
from openai_responses_mcp.gate.calls import GateDecision, ToolCallRequest
from openai_responses_mcp.gate.policy.rules import PolicyProfile
from openai_responses_mcp.gate.safety_gate import SafetyAgent
from tests.agents.fakes import code_of, within
from tests.agents.scenes import LOOK, PAY, Scene

INVALID = "AGENTS-E-APPROVAL-INVALID"
PAY_MORE = ScriptedCall("pay", {"amount": 7}, "p-2")


async def changed(scene: Scene, arguments: Any, comment: str | None = None) -> Any:
    """The paused run, and what came of it after its first request was approved with these arguments."""
    run = await scene.paused()
    await scene.runner.submit_approval(run.interruptions[0].approval_id, "approve", comment, arguments=arguments)
    return await within(scene.runner.resume_run(run.run_id))


async def test_the_new_arguments_are_judged_run_and_recorded_and_the_model_sees_what_changed() -> None:
    scene = Scene([LOOK, PAY], "less, then")
    result = await changed(scene, {"amount": 3}, "半分で")
    assert result.output_text == "less, then"
    assert scene.ran == ["look here", "pay 3"]
    judged = [(one.tool_name, one.args, one.attempt) for one in scene.judge.requests]
    assert judged[2:] == [("look", {"what": "here"}, 2), ("pay", {"amount": 3}, 2)]
    assert [(call.args, call.output) for call in result.tool_calls][1:] == [({"amount": 3}, "paid 3")]
    note = 'A human changed the arguments of this call:\n"amount": 5 is now 3'
    assert scene.heard[-1][-1]["output"] == f"{note}\n\npaid 3"
    logs = [log for log in await scene.runner.get_execution_logs() if log.tool_name == "pay"]
    assert [(log.event, dict(log.arguments)) for log in logs] == [
        *((event, {"amount": 5}) for event in ("decision", "approval_requested")),
        *((event, {"amount": 3}) for event in ("approval", "decision:2", "started", "outcome")),
    ]
    assert logs[2].comment == "半分で"
    assert (await scene.runner.verify_execution_logs()).is_intact


def by_amount(agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
    amount = int(str(request.args.get("amount", 0)))
    if amount > 100:
        return GateDecision("deny", 1, "too much")
    return GateDecision("needs_human", 1, "a large sum") if amount > 10 else GateDecision("allow", 1, "")


async def test_changed_arguments_can_be_refused() -> None:
    scene = Scene(PAY, "never said", judge=SafetyAgent(by_amount))
    assert await code_of(changed(scene, {"amount": 500})) == "AGENTS-E-GATE-DENIED"
    assert scene.ran == []


async def test_a_new_reason_to_ask_asks_again_and_the_last_change_counts() -> None:
    scene = Scene(PAY, "done", judge=SafetyAgent(by_amount))
    again = await changed(scene, {"amount": 50})
    assert scene.ran == []
    (request,) = again.interruptions
    assert request.arguments == {"amount": 50}
    assert request.reason == "a large sum; risk 3 needs a human under the profile balanced"
    await scene.runner.submit_approval(request.approval_id, "approve", arguments={"amount": 4})
    await within(scene.runner.resume_run(again.run_id))
    assert scene.ran == ["pay 4"]
    assert '"amount": 5 is now 4' in scene.heard[-1][-1]["output"]
    assert (await scene.runner.verify_execution_logs()).is_intact


async def test_one_call_is_changed_another_refused_a_third_approved() -> None:
    scene = Scene([PAY, PAY_MORE, ScriptedCall("pay", {"amount": 9}, "p-3")], "done")
    run = await scene.paused()
    first, second, third = [request.approval_id for request in run.interruptions]
    await scene.runner.submit_approval(first, "approve", arguments={"amount": 1})
    await scene.runner.submit_approval(second, "deny", "no", tell_model=True)
    await scene.runner.submit_approval(third, "approve")
    assert (await within(scene.runner.resume_run(run.run_id))).output_text == "done"
    assert scene.ran == ["pay 1", "pay 9"]
    assert (await scene.runner.verify_execution_logs()).is_intact


async def test_the_same_arguments_are_a_plain_approval() -> None:
    scene = Scene(PAY, "done")
    await changed(scene, {"amount": 5})
    assert "A human changed" not in str(scene.heard)
    assert len(scene.judge.requests) == 1


# ---------------------------------------------------------------------------------------------------------------------
# Secrets


class Login(Scene):
    """A tool whose schema names a field after a secret."""

    def __init__(self, **options: Any) -> None:
        super().__init__(ScriptedCall("login", {"user": "sato", "password": "open sesame 123"}, "g-1"), "in", **options)

        @tool(risk_level=3)
        def login(user: Annotated[str, Field(max_length=20)], password: str) -> str:
            """Log in."""
            self.ran.append(f"{user} {password}")
            return "welcome"

        self.agent.tools.append(login)


async def test_a_secret_that_is_left_as_it_is_shown_is_used_as_it_was(sqlite_url: str) -> None:
    scene = Login(store=sqlite_url)
    run = await scene.paused()
    shown = dict(run.interruptions[0].arguments)
    assert shown == {"user": "sato", "password": "‹password, 15 characters›"}
    approval_id = run.interruptions[0].approval_id
    await scene.runner.submit_approval(approval_id, "approve", arguments={**shown, "user": "suzuki"})
    await within(scene.runner.resume_run(run.run_id))
    assert scene.ran == ["suzuki open sesame 123"]
    assert "sesame" not in str(await scene.runner.get_execution_logs())


async def test_arguments_with_a_secret_are_checked_when_it_is_back() -> None:
    scene = Login()
    run = await scene.paused()
    shown = dict(run.interruptions[0].arguments)
    await scene.runner.submit_approval(
        run.interruptions[0].approval_id, "approve", arguments={**shown, "user": "x" * 21}
    )
    assert await code_of(scene.runner.resume_run(run.run_id)) == INVALID
    assert scene.ran == []
