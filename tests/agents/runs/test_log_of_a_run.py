"""What runs leave in the log, and what happens when it cannot be written."""

import asyncio
from dataclasses import replace

import pytest

from openai_responses_mcp.agents.runs.models import RunOptions
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.calls import GateDecision, ToolCallRequest
from openai_responses_mcp.gate.policy.rules import PolicyProfile
from tests.agents.fakes import FakeJudge, within
from tests.agents.scenes import LOOK, PAY, Scene


class PatientJudge(FakeJudge):
    """Thinks for ever about everything but the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.is_thinking = asyncio.Event()

    async def evaluate(self, agent: object, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        if self.requests:
            self.is_thinking.set()
            await asyncio.Event().wait()
        return await super().evaluate(agent, request, policy)


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_cancelled_run_has_failed(is_stream: bool) -> None:
    judge = PatientJudge()
    scene = Scene(LOOK, replace(LOOK, call_id="l-2"), "never said", judge=judge)
    running = asyncio.create_task(scene.runner.run(scene.agent, "go", RunOptions(stream=is_stream)))
    await within(judge.is_thinking.wait())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(running)
    assert [run.status for run in await scene.runner.list_runs()] == ["failed"]
    assert [event for event, _ in await scene.events()] == ["decision", "started", "outcome"]


async def test_a_run_that_is_cancelled_after_it_paused_can_be_resumed() -> None:
    requested = asyncio.Event()

    async def never_returns(request: HumanApprovalRequest) -> None:
        requested.set()
        await asyncio.Event().wait()

    scene = Scene(PAY, "done", on_approval_requested=never_returns)
    running = asyncio.create_task(scene.runner.run(scene.agent, "go"))
    await within(requested.wait())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(running)
    (request,) = await scene.runner.get_pending_approvals()
    assert (await scene.runner.get_run(request.run_id)).status == "paused"
    result = await within(scene.runner.approve_and_resume(request.run_id, request.approval_id))
    assert result.output_text == "done"
