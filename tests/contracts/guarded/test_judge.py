"""What every judge must do: give the verdict it came to, or raise. Asked of the fake and of all that ship."""

import json
from collections.abc import Callable

import pytest

from openai_responses_mcp.agents.sdk.model_safety_agent import ModelSafetyAgent
from openai_responses_mcp.agents.testing import ScriptedModel
from openai_responses_mcp.gate.calls import GateDecision, ToolCallRequest
from openai_responses_mcp.gate.policy.rules import PROFILES
from openai_responses_mcp.gate.reasons import Decision
from openai_responses_mcp.gate.safety_gate import Judge, SafetyAgent
from tests.agents.fakes import FakeJudge, within

Make = Callable[[GateDecision | Exception], Judge]
REQUEST = ToolCallRequest("pay", "function", {"amount": 5}, run_id="r1", tool_call_id="c1")


def outcome(verdict: GateDecision | Exception) -> GateDecision:
    if isinstance(verdict, Exception):
        raise verdict
    return verdict


def fake(verdict: GateDecision | Exception) -> Judge:
    judge = FakeJudge()
    judge.enqueue(verdict)
    return judge


def sync(verdict: GateDecision | Exception) -> Judge:
    return SafetyAgent(lambda agent, request, policy: outcome(verdict))


def asynchronous(verdict: GateDecision | Exception) -> Judge:
    async def judge(agent: object, request: object, policy: object) -> GateDecision:
        return outcome(verdict)

    return SafetyAgent(judge)


def model(verdict: GateDecision | Exception) -> Judge:
    if isinstance(verdict, Exception):
        return ModelSafetyAgent(ScriptedModel(verdict), "Be careful.")
    said = {"decision": verdict.decision, "risk_level": verdict.risk_level, "reason": verdict.reason}
    return ModelSafetyAgent(ScriptedModel(json.dumps(said)), "Be careful.")


@pytest.fixture(
    params=[
        pytest.param(fake, id="fake"),
        pytest.param(sync, id="sync"),
        pytest.param(asynchronous, id="async"),
        pytest.param(model, id="model"),
    ]
)
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


@pytest.mark.parametrize("decision", ["allow", "deny", "needs_human"])
async def test_a_verdict_comes_out_whole(make: Make, decision: Decision) -> None:
    verdict = GateDecision(decision, 4, "because")
    assert await within(make(verdict).evaluate(None, REQUEST, PROFILES["balanced"])) == verdict


async def test_a_judge_that_fails_gives_no_verdict(make: Make) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - a judge may raise anything
        await within(make(RuntimeError("no idea")).evaluate(None, REQUEST, PROFILES["balanced"]))
