"""Every way that the SDK offers to run an agent, and that it passes the gate or is refused."""

import io
import sys
from collections.abc import Iterator
from typing import Any

import agents as sdk
import pytest
from agents.realtime import RealtimeAgent
from agents.sandbox import SandboxAgent

import openai_responses_mcp.agents as guarded
from openai_responses_mcp.agents.runner import configure
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import ASK, DENY, FakeJudge, code_of, within

RAN: list[int] = []


@sdk.function_tool
def pay(amount: int) -> str:
    """Pay somebody."""
    RAN.append(amount)
    return f"paid {amount}"


PAY = ScriptedCall("pay", {"amount": 5}, "p-1")


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    RAN.clear()
    judge = FakeJudge()
    configure(guarded.create_runner(safety_agent=judge))
    yield judge
    configure(None)


def a_clerk(*turns: Any) -> sdk.Agent[Any]:
    return sdk.Agent(name="Clerk", model=ScriptedModel(*turns), tools=[pay])


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


# ---------------------------------------------------------------------------------------------------------------------
# The demo loop


@pytest.mark.parametrize("stream", [True, False])
async def test_the_demo_loop_talks_through_the_runner(
    stream: bool, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "go", "", "again", "quit")
    agent = a_clerk(PAY, "all good", "still here")
    await within(guarded.run_demo_loop(agent, stream=stream))
    assert [request.tool_name for request in judge.requests] == ["pay"]
    shown = capsys.readouterr().out
    assert "all good" in shown
    assert "still here" in shown
    heard = str(agent.model.calls[-1].input)  # type: ignore[union-attr]
    assert "all good" in heard
    assert "again" in heard


async def test_the_demo_loop_shows_a_refusal_and_goes_on(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge.on("pay", DENY)
    typed(monkeypatch, "go", "hello", "exit")
    await within(guarded.run_demo_loop(a_clerk(PAY, "hello yourself")))
    shown = capsys.readouterr().out
    assert "AGENTS-E-GATE-DENIED" in shown
    assert "hello yourself" in shown
    assert RAN == []


@pytest.mark.parametrize(("answer", "ran"), [("y", [5]), ("", [])])
async def test_the_demo_loop_asks_its_user(
    answer: str, ran: list[int], judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge.on("pay", ASK)
    typed(monkeypatch, "go", answer)
    await within(guarded.run_demo_loop(a_clerk(PAY, "all good")))
    shown = capsys.readouterr().out
    assert "function pay" in shown
    assert '"amount": 5' in shown
    assert ran == RAN


async def test_nothing_in_the_demo_loop_steers_the_terminal_or_hides_what_is_asked(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge.on("pay", guarded.GateDecision("needs_human", 3, "\x1b[8m\u202e\u200bhidden\ud800"))
    typed(monkeypatch, "go", "y")
    await within(guarded.run_demo_loop(a_clerk(PAY, "\x1b[2Jall good")))
    shown = capsys.readouterr().out
    assert r"\x1b[8m\u202e\u200bhidden\ud800" in shown
    assert "Pay somebody." in shown
    assert r"\x1b[2Jall good" in shown
    assert "\x1b" not in shown


# ---------------------------------------------------------------------------------------------------------------------
# Sessions over a websocket


async def test_a_websocket_session_runs_through_the_runner(judge: FakeJudge) -> None:
    async with guarded.responses_websocket_session(api_key="made-up") as session:
        assert isinstance(session, sdk.ResponsesWebSocketSession)
        result = await within(session.run(a_clerk(PAY, "all good"), "go"))
        assert result.final_output == "all good"
        judge.on("pay", DENY)
        with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
            await within(session.run(a_clerk(PAY), "go"))
        streamed = session.run_streamed(a_clerk(PAY), "go")
        with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
            _ = [event async for event in streamed.stream_events()]
        with pytest.raises(ValueError, match="run_config"):
            await within(session.run(a_clerk(), "go", run_config=sdk.RunConfig()))
    assert RAN == [5]


# ---------------------------------------------------------------------------------------------------------------------
# Sandboxes


def sandboxed() -> SandboxAgent[Any]:
    return SandboxAgent(name="Sandboxed", model=ScriptedModel("never said"))


@pytest.mark.parametrize(
    "agent",
    [
        sandboxed,
        lambda: guarded.Agent(name="A", model=ScriptedModel("never said"), handoffs=[sandboxed()]),
        lambda: guarded.Agent(name="A", model=ScriptedModel("never said"), tools=[sandboxed().as_tool("ask", "Ask.")]),
    ],
)
async def test_a_sandbox_agent_is_refused(agent: Any, judge: FakeJudge) -> None:
    made = agent()
    assert await code_of(guarded.run(made, "go")) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"
    assert made.model.calls == []


# ---------------------------------------------------------------------------------------------------------------------
# Realtime


async def test_a_realtime_agent_is_no_agent_for_the_runner(judge: FakeJudge) -> None:
    agent: Any = RealtimeAgent(name="Talker", tools=[pay])
    assert await code_of(guarded.run(agent, "go")) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"


async def test_a_run_in_a_sandbox_is_refused(judge: FakeJudge) -> None:
    config = sdk.RunConfig(sandbox=sdk.sandbox.SandboxRunConfig())
    agent = a_clerk("never said")
    code = await code_of(guarded.run(agent, "go", guarded.RunOptions(sdk={"run_config": config})))
    assert code == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"
