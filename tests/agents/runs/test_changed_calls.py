"""A human approves a call with other arguments: judged again by every voice, run with the new seal, shown to the model."""

from typing import Annotated, Any

import pytest
from agents import FunctionTool
from pydantic import Field

from openai_responses_mcp.agents import tool
from openai_responses_mcp.agents.testing import ScriptedCall
from openai_responses_mcp.gate.calls import GateDecision, ToolCallRequest
from openai_responses_mcp.gate.policy.rules import PolicyProfile
from openai_responses_mcp.gate.safety_gate import SafetyAgent
from tests.agents.fakes import ASK, code_of, within
from tests.agents.scenes import LOOK, PAY, Scene

INVALID = "AGENTS-E-APPROVAL-INVALID"
PAY_MORE = ScriptedCall("pay", {"amount": 7}, "p-2")


async def changed(scene: Scene, arguments: Any, comment: str | None = None) -> Any:
    """The paused run, and what came of it after its first request was approved with these arguments."""
    run = await scene.paused()
    await scene.runner.submit_approval(run.interruptions[0].approval_id, "approve", comment, arguments=arguments)
    return await within(scene.runner.resume_run(run.run_id))


async def test_the_new_arguments_run_and_the_model_sees_what_changed() -> None:
    scene = Scene(PAY, "less, then")
    result = await changed(scene, {"amount": 3}, "半分で")
    assert result.output_text == "less, then"
    assert scene.ran == ["pay 3"]
    assert [(call.args, call.output) for call in result.tool_calls] == [({"amount": 3}, "paid 3")]
    note = 'A human changed the arguments of this call:\n"amount": 5 is now 3'
    assert scene.heard[-1][-1]["output"] == f"{note}\n\npaid 3"


async def test_the_log_shows_the_change_and_the_call_that_ran() -> None:
    scene = Scene(PAY, "done")
    await changed(scene, {"amount": 3}, "半分で")
    logs = await scene.runner.get_execution_logs()
    assert [(log.event, log.decision, dict(log.arguments)) for log in logs] == [
        ("decision", "needs_human", {"amount": 5}),
        ("approval_requested", "pending", {"amount": 5}),
        ("approval", "approved", {"amount": 3}),
        ("decision:2", "needs_human", {"amount": 3}),
        ("started", "started", {"amount": 3}),
        ("outcome", "completed", {"amount": 3}),
    ]
    assert logs[2].reason == 'a human changed the arguments:\n"amount": 5 is now 3'
    assert logs[2].comment == "半分で"
    assert (await scene.runner.verify_execution_logs()).is_intact


async def test_the_judge_sees_the_changed_arguments() -> None:
    scene = Scene([LOOK, PAY], "done")
    await changed(scene, {"amount": 3})
    assert [(one.tool_name, one.args, one.attempt) for one in scene.judge.requests] == [
        ("look", {"what": "here"}, 1),
        ("pay", {"amount": 5}, 1),
        ("look", {"what": "here"}, 2),
        ("pay", {"amount": 3}, 2),
    ]


def by_amount(agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
    amount = int(str(request.args.get("amount", 0)))
    if amount > 100:
        return GateDecision("deny", 1, "too much")
    return GateDecision("needs_human", 1, "a large sum") if amount > 10 else GateDecision("allow", 1, "")


async def test_changed_arguments_can_be_refused() -> None:
    scene = Scene(PAY, "never said", judge=SafetyAgent(by_amount))
    assert await code_of(changed(scene, {"amount": 500})) == "AGENTS-E-GATE-DENIED"
    assert scene.ran == []


async def test_a_new_reason_to_ask_asks_again() -> None:
    scene = Scene(PAY, "done", judge=SafetyAgent(by_amount))
    again = await changed(scene, {"amount": 50})
    assert scene.ran == []
    (request,) = again.interruptions
    assert request.arguments == {"amount": 50}
    assert request.reason == "a large sum; risk 3 needs a human under the profile balanced"
    result = await within(scene.runner.approve_and_resume(again.run_id, request.approval_id))
    assert result.output_text == "done"
    assert scene.ran == ["pay 50"]
    assert '"amount": 5 is now 50' in scene.heard[-1][-1]["output"]
    events = [log.event for log in await scene.runner.get_execution_logs()]
    assert events == [
        "decision", "approval_requested", "approval", "decision:2", "approval_requested:2", "approval:2",
        "started", "outcome",
    ]  # fmt: skip
    assert (await scene.runner.verify_execution_logs()).is_intact


async def test_a_call_can_be_changed_more_than_once_and_the_last_one_counts() -> None:
    scene = Scene(PAY, "done", judge=SafetyAgent(by_amount))
    again = await changed(scene, {"amount": 50})
    approval_id = again.interruptions[0].approval_id
    await scene.runner.submit_approval(approval_id, "approve", arguments={"amount": 4})
    await within(scene.runner.resume_run(again.run_id))
    assert scene.ran == ["pay 4"]
    assert '"amount": 5 is now 4' in scene.heard[-1][-1]["output"]


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"amount": "much"}, "do not fit the tool"),
        ({}, "do not fit the tool"),
        ({"amount": 3, "to": "me"}, "do not fit the tool"),
        ("amount", "object"),
        ([3], "object"),
        ({"amount": float("nan")}, "JSON"),
        ({"amount": object()}, "JSON"),
        ({"amount": 10**400, "x": "y" * 1_000_000}, "characters"),
    ],
)
async def test_arguments_that_do_not_fit_decide_nothing(arguments: Any, words: str) -> None:
    scene = Scene(PAY, "done")
    run = await scene.paused()
    approval_id = run.interruptions[0].approval_id
    with pytest.raises(Exception, match=words) as caught:
        await scene.runner.submit_approval(approval_id, "approve", arguments=arguments)
    assert getattr(caught.value, "code", "") == INVALID
    assert (await within(scene.runner.approve_and_resume(run.run_id, approval_id))).output_text == "done"
    assert scene.ran == ["pay 5"]


async def _sent(context: Any, arguments: str) -> str:
    return "sent"


async def test_a_tool_without_a_schema_is_approved_as_it_is() -> None:
    scene = Scene(ScriptedCall("send", {"to": "a"}, "s-1"), "done")
    scene.judge.on("send", ASK)
    scene.agent.tools.append(FunctionTool("send", "", {}, _sent, strict_json_schema=False))
    run = await scene.paused()
    work = scene.runner.submit_approval(run.interruptions[0].approval_id, "approve", arguments={"to": "b"})
    assert await code_of(work) == INVALID


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


@pytest.mark.parametrize(
    "arguments",
    [
        {"user": "sato", "password": "a new one, typed in"},
        {"user": "‹password, 15 characters›", "password": "‹password, 15 characters›"},
        {"user": "sato", "password": "x ‹password, 15 characters›"},
    ],
)
async def test_a_new_secret_or_one_at_another_place_is_refused(arguments: Any) -> None:
    scene = Login()
    run = await scene.paused()
    work = scene.runner.submit_approval(run.interruptions[0].approval_id, "approve", arguments=arguments)
    assert await code_of(work) == INVALID


async def test_arguments_with_a_secret_are_checked_when_it_is_back() -> None:
    scene = Login()
    run = await scene.paused()
    shown = dict(run.interruptions[0].arguments)
    await scene.runner.submit_approval(
        run.interruptions[0].approval_id, "approve", arguments={**shown, "user": "x" * 21}
    )
    assert await code_of(scene.runner.resume_run(run.run_id)) == INVALID
    assert scene.ran == []
