"""What an engine must do: all that the use cases in `runs` rely on."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents.mcp.guarded_tools import guarded_mcp_tools
from openai_responses_mcp.agents.runs.ports import (
    EngineEvent,
    EngineOptions,
    EngineOutcome,
    PausedRun,
    Said,
)
from openai_responses_mcp.agents.sdk.engine import OpenAIAgentsEngine
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.calls import PlannedCall
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import code_of, collected, within
from tests.agents.runs.guards import NotingLedger

LOOK = ScriptedCall("look", {"what": "here"}, "l-1")
PAY = ScriptedCall("pay", {"amount": 5}, "p-1")
PLAIN = EngineOptions()
STREAMED = EngineOptions(is_streamed=True)


class Play:
    """A clerk with two tools, what they were called with, and the script from which all agents speak."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.model = ScriptedModel()
        self.engine = OpenAIAgentsEngine(guarded_mcp_tools)
        self.look = self.tool("look", self._look, "Look at something.")
        self.pay = self.tool("pay", self._pay)
        self.clerk = self.agent("Clerk", [self.look, self.pay])

    def _look(self, what: str = "around") -> str:
        self.ran.append(f"look {what}")
        return f"saw {what}"

    def _pay(self, amount: int) -> str:
        self.ran.append(f"pay {amount}")
        return f"paid {amount}"

    @property
    def heard(self) -> list[str]:
        """What the models got, one text for each time that one was asked."""
        return [json.dumps(call.input, default=str) for call in self.model.calls]

    def agent(self, name: str, tools: Sequence[Any] = (), handoffs: Sequence[Any] = ()) -> Any:
        return sdk.Agent[Any](name=name, model=self.model, tools=list(tools), handoffs=list(handoffs))

    def tool(self, name: str, work: Callable[..., Any], description: str = "") -> Any:
        async def invoke(context: Any, arguments: str) -> Any:
            return work(**json.loads(arguments))

        schema = {"type": "object", "properties": {}, "additionalProperties": True}
        return sdk.FunctionTool(name, description, schema, invoke, strict_json_schema=False)

    async def run(self, ledger: NotingLedger, options: EngineOptions = PLAIN, agent: Any = None) -> EngineOutcome:
        return await within(outcome_of(self.engine.stream(agent or self.clerk, "go", ledger, options)))

    async def stream(self, ledger: NotingLedger) -> list[EngineEvent]:
        return await within(collected(self.engine.stream(self.clerk, "go", ledger, STREAMED)))

    async def elsewhere(
        self, paused: EngineOutcome, ledger: NotingLedger, agent: Any = None, options: EngineOptions = PLAIN
    ) -> PausedRun:
        """The paused run read back from its text by another engine."""
        assert paused.saved is not None
        self.engine = OpenAIAgentsEngine(guarded_mcp_tools)
        saved = json.loads(json.dumps(paused.saved))
        return await within(self.engine.restore(agent or self.clerk, saved, ledger, options))

    async def resumed(
        self, ledger: NotingLedger, paused: EngineOutcome, agent: Any = None, said: Said | None = None, **answers: Any
    ) -> tuple[EngineOutcome, NotingLedger]:
        """How the run ends elsewhere with these answers, and the ledger that it was resumed with."""
        again = ledger.resumed(**answers)
        restored = await self.elsewhere(paused, again, agent)
        await again.take_up(restored.turns)
        return await within(outcome_of(restored.stream(said) if said else restored.stream())), again


async def outcome_of(steps: AsyncGenerator[EngineEvent, None]) -> EngineOutcome:
    outcome = (await collected(steps))[-1].outcome
    assert outcome is not None
    return outcome


@pytest.fixture
def play() -> Play:
    return Play()


# ---------------------------------------------------------------------------------------------------------------------
# What an agent can do


async def test_tools_and_handoffs_are_described(play: Play) -> None:
    other = play.agent("Other")
    agent = play.agent("Clerk", [play.look], [other])
    look, handoff = await within(play.engine.describe(agent, NotingLedger()))
    assert (look.name, look.kind, look.description) == ("look", "function", "Look at something.")
    assert (handoff.name, handoff.kind) == ("Other", "function")
    assert look.definition_hash
    assert handoff.definition_hash


async def test_another_description_is_another_definition(play: Play) -> None:
    changed = play.agent("Clerk", [play.tool("look", play._look, "Look and tell everybody.")])
    (before, _), (after,) = [
        await within(play.engine.describe(agent, NotingLedger())) for agent in (play.clerk, changed)
    ]
    assert before.definition_hash != after.definition_hash


async def test_what_is_no_agent_is_refused(play: Play) -> None:
    assert await code_of(play.engine.describe(object(), NotingLedger())) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"
    assert await code_of(play.run(NotingLedger(), agent=object())) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"


# ---------------------------------------------------------------------------------------------------------------------
# Turns


async def test_a_run_ends_with_what_the_model_said(play: Play) -> None:
    play.model.enqueue("all good")
    outcome = await play.run(NotingLedger())
    assert (outcome.output_text, outcome.last_agent, outcome.saved) == ("all good", play.clerk, None)
    assert outcome.messages[0] == {"role": "user", "content": "go"}
    assert outcome.usage.requests == 1


async def test_a_turn_is_judged_as_a_whole_before_any_of_it_starts(play: Play) -> None:
    play.model.enqueue([LOOK, PAY], "all good")
    ledger = NotingLedger()
    outcome = await play.run(ledger)
    assert ledger.events[0] == "judged look, pay"
    assert sorted(ledger.events[1:]) == ["finished l-1", "finished p-1", "started l-1", "started p-1"]
    ((agent, calls, catalogue),) = ledger.judged
    assert agent is play.clerk
    assert [(call.call_id, call.args) for call in calls] == [("l-1", {"what": "here"}), ("p-1", {"amount": 5})]
    assert [tool.name for tool in catalogue] == ["look", "pay"]
    assert sorted(play.ran) == ["look here", "pay 5"]
    assert (outcome.output_text, outcome.usage.requests) == ("all good", 2)
    assert "saw here" in play.heard[1]
    result = ledger.result_of("l-1")
    assert result is not None
    assert result.output == "saw here"


async def test_nothing_of_a_refused_turn_runs(play: Play) -> None:
    play.model.enqueue([LOOK, PAY], "never said")
    ledger = NotingLedger(denies=["pay"])
    assert await code_of(play.run(ledger)) == "AGENTS-E-GATE-DENIED"
    assert ledger.events == ["judged look, pay"]
    assert (play.ran, len(play.heard)) == ([], 1)


async def test_a_call_of_an_unknown_tool_is_a_runner_error(play: Play) -> None:
    play.model.enqueue(ScriptedCall("fly"))
    assert await code_of(play.run(NotingLedger())) == "AGENTS-E-RUNNER"


async def test_turns_are_limited(play: Play) -> None:
    play.model.enqueue(*(ScriptedCall("look", {}, f"l-{number}") for number in range(3)))
    assert await code_of(play.run(NotingLedger(), EngineOptions(max_turns=2))) == "AGENTS-E-RUNNER"
    assert len(play.ran) == 2


# ---------------------------------------------------------------------------------------------------------------------
# Failures


async def test_a_model_that_fails_is_a_runner_error_with_its_cause(play: Play) -> None:
    play.model.enqueue(ConnectionError("no line"))
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER") as caught:
        await play.run(NotingLedger())
    assert isinstance(caught.value.__cause__, ConnectionError)


async def test_the_ledger_records_a_tool_that_fails(play: Play) -> None:
    def fail() -> str:
        raise RuntimeError("no luck")

    play.model.enqueue(ScriptedCall("fail", {}, "f-1"))
    ledger = NotingLedger()
    agent = play.agent("Clerk", [play.tool("fail", fail)])
    assert await code_of(play.run(ledger, agent=agent)) == "AGENTS-E-RUNNER"
    assert ledger.events == ["judged fail", "started f-1", "failed f-1"]
    result = ledger.result_of("f-1")
    assert result is not None
    assert result.output == "RuntimeError: no luck"


async def test_an_error_of_this_library_comes_out_of_a_tool_as_it_is(play: Play) -> None:
    def fail() -> str:
        raise AgentsError("AGENTS-E-MCP-EXEC", "no luck")

    play.model.enqueue(ScriptedCall("fail"))
    agent = play.agent("Clerk", [play.tool("fail", fail)])
    assert await code_of(play.run(NotingLedger(), agent=agent)) == "AGENTS-E-MCP-EXEC"


# ---------------------------------------------------------------------------------------------------------------------
# Calls of the caller's


async def requested(play: Play, *calls: tuple[str, dict[str, Any]]) -> EngineOptions:
    tools = {tool.name: tool for tool in await within(play.engine.describe(play.clerk, NotingLedger()))}
    planned = [PlannedCall(f"c-{number}", tools[name], args) for number, (name, args) in enumerate(calls)]
    return EngineOptions(requested_calls=tuple(planned))


async def test_calls_of_the_caller_are_judged_and_need_no_model(play: Play) -> None:
    ledger = NotingLedger()
    outcome = await play.run(ledger, await requested(play, ("look", {"what": "a"}), ("look", {"what": "b"})))
    assert ledger.events[0] == "judged look, look"
    assert (outcome.output_text, play.ran, play.heard) == ("saw a\nsaw b", ["look a", "look b"], [])


async def test_calls_of_the_caller_can_wait_too(play: Play) -> None:
    ledger = NotingLedger(asks=["pay"])
    paused = await play.run(ledger, await requested(play, ("pay", {"amount": 7})))
    outcome, _ = await play.resumed(ledger, paused)
    assert (outcome.output_text, play.ran, play.heard) == ("paid 7", ["pay 7"], [])


# ---------------------------------------------------------------------------------------------------------------------
# Pauses


async def test_nothing_of_a_turn_that_waits_runs(play: Play) -> None:
    play.model.enqueue([LOOK, PAY])
    ledger = NotingLedger(asks=["pay"])
    outcome = await play.run(ledger)
    assert outcome.saved is not None
    assert json.loads(json.dumps(outcome.saved)) == outcome.saved
    assert (ledger.events, play.ran) == (["judged look, pay"], [])
    assert (outcome.output_text, outcome.usage.requests, outcome.last_agent) == ("", 1, play.clerk)


async def test_a_saved_run_is_read_back_by_another_engine_without_running(play: Play) -> None:
    play.model.enqueue([LOOK, PAY])
    ledger = NotingLedger(asks=["pay"])
    paused = await play.run(ledger)
    again = ledger.resumed()
    restored = await play.elsewhere(paused, again)
    assert {call_id: call.args for call_id, call in restored.calls.items()} == {
        "l-1": {"what": "here"},
        "p-1": {"amount": 5},
    }
    ((_, judged, _),) = ledger.judged
    assert [restored.calls[call.call_id].tool for call in judged] == [call.tool for call in judged]
    assert (again.events, play.ran, len(play.heard)) == ([], [], 1)


async def test_a_saved_run_is_read_back_with_the_tools_as_they_are_now(play: Play) -> None:
    play.model.enqueue(LOOK)
    ledger = NotingLedger(asks=["look"])
    paused = await play.run(ledger)
    changed = play.agent("Clerk", [play.tool("look", play._look, "Look and tell everybody."), play.pay])
    restored = await play.elsewhere(paused, ledger.resumed(), changed)
    ((_, (judged,), _),) = ledger.judged
    assert restored.calls["l-1"].tool.definition_hash != judged.tool.definition_hash


async def test_a_resumed_run_makes_every_call_once_and_goes_on(play: Play) -> None:
    play.model.enqueue([LOOK, PAY], "all good")
    ledger = NotingLedger(asks=["pay"])
    paused = await play.run(ledger)
    outcome, again = await play.resumed(ledger, paused)
    assert sorted(again.events) == ["finished l-1", "finished p-1", "started l-1", "started p-1"]
    assert sorted(play.ran) == ["look here", "pay 5"]
    assert (outcome.output_text, outcome.usage.requests, outcome.saved) == ("all good", 2, None)
    assert outcome.last_agent is play.clerk


async def test_a_call_that_was_not_let_through_does_not_run_on_resume(play: Play) -> None:
    play.model.enqueue(PAY, "never said")
    paused = await play.run(NotingLedger(asks=["pay"]))
    restored = await play.elsewhere(paused, NotingLedger())
    assert await code_of(outcome_of(restored.stream())) == "AGENTS-E-GATE-DENIED"
    assert play.ran == []


async def test_the_model_gets_what_the_human_said(play: Play) -> None:
    play.model.enqueue(PAY, "all good")
    ledger = NotingLedger(asks=["pay"])
    paused = await play.run(ledger)
    await play.resumed(ledger, paused, said=Said("but not again"))
    assert "but not again" in play.heard[-1]


async def test_a_resumed_run_can_pause_again(play: Play) -> None:
    play.model.enqueue(PAY, ScriptedCall("pay", {"amount": 6}, "p-2"), "all good")
    ledger = NotingLedger(asks=["pay"])
    first = await play.run(ledger)
    again = ledger.resumed()
    second = await within(outcome_of((await play.elsewhere(first, again)).stream()))
    assert (second.saved is None, play.ran) == (False, ["pay 5"])
    third = await play.elsewhere(second, again.resumed())
    assert list(third.calls) == ["p-2"]
    outcome = await within(outcome_of(third.stream()))
    assert (outcome.output_text, outcome.usage.requests) == ("all good", 3)
    assert play.ran == ["pay 5", "pay 6"]


@pytest.mark.parametrize("saved", [{}, {"kind": "tools", "state": {}}, {"kind": "other"}])
async def test_a_saved_run_that_cannot_be_read_is_named(play: Play, saved: dict[str, Any]) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER") as caught:
        await within(play.engine.restore(play.clerk, saved, NotingLedger(), PLAIN))
    assert caught.value.details["reason"] == "state_unreadable"


# ---------------------------------------------------------------------------------------------------------------------
# Handoffs


async def test_a_handoff_is_judged_by_its_target_and_the_next_turn_with_the_new_agent(play: Play) -> None:
    other = play.agent("Other", [play.pay])
    first = play.agent("First", handoffs=[other])
    play.model.enqueue(ScriptedCall("transfer_to_other", {}, "h-1"), PAY, "other here")
    ledger = NotingLedger()
    outcome = await play.run(ledger, agent=first)
    assert ledger.events == [
        "judged Other", "started h-1", "finished h-1", "judged pay", "started p-1", "finished p-1",
    ]  # fmt: skip
    assert [agent for agent, _, _ in ledger.judged] == [first, other]
    assert [tool.name for tool in ledger.judged[1][2]] == ["pay"]
    assert (outcome.output_text, outcome.last_agent) == ("other here", other)


async def test_a_handoff_can_wait_and_be_resumed_elsewhere(play: Play) -> None:
    other = play.agent("Other")
    first = play.agent("First", handoffs=[other])
    play.model.enqueue(ScriptedCall("transfer_to_other", {}, "h-1"), "other here")
    ledger = NotingLedger(asks=["Other"])
    paused = await play.run(ledger, agent=first)
    again = ledger.resumed()
    restored = await play.elsewhere(paused, again, first)
    assert [(call_id, call.tool.name) for call_id, call in restored.calls.items()] == [("h-1", "Other")]
    outcome = await within(outcome_of(restored.stream(Said("be kind"))))
    assert again.events == ["started h-1", "finished h-1"]
    assert (outcome.output_text, outcome.last_agent, outcome.usage.requests) == ("other here", other, 2)
    assert "be kind" in play.heard[-1]


# ---------------------------------------------------------------------------------------------------------------------
# Agents inside agents


def outer(play: Play) -> Any:
    return play.agent("Outer", [play.clerk.as_tool("ask", "Ask somebody else.")])


ASK = ScriptedCall("ask", {"input": "do it"}, "o-1")


async def test_calls_of_an_agent_inside_pass_the_same_ledger(play: Play) -> None:
    play.model.enqueue(ASK, LOOK, "inner done", "all done")
    ledger, agent = NotingLedger(), outer(play)
    outcome = await play.run(ledger, agent=agent)
    assert ledger.events == [
        "judged ask", "started o-1", "judged look", "started l-1", "finished l-1", "finished o-1",
    ]  # fmt: skip
    assert [one for one, _, _ in ledger.judged] == [agent, play.clerk]
    assert (outcome.output_text, outcome.usage.requests) == ("all done", 4)


async def test_a_refusal_inside_ends_the_whole_run(play: Play) -> None:
    play.model.enqueue(ASK, LOOK, "never said")
    ledger = NotingLedger(denies=["look"])
    assert await code_of(play.run(ledger, agent=outer(play))) == "AGENTS-E-GATE-DENIED"
    assert (play.ran, len(play.heard)) == ([], 2)


async def test_an_agent_inside_can_wait_and_is_resumed_elsewhere(play: Play) -> None:
    play.model.enqueue(ASK, LOOK, "inner done", "all done")
    ledger = NotingLedger(asks=["look"])
    paused = await play.run(ledger, agent=outer(play))
    assert ledger.events == ["judged ask", "started o-1", "judged look"]
    again = ledger.resumed()
    restored = await play.elsewhere(paused, again, outer(play))
    assert list(restored.calls) == ["l-1"]
    outcome = await within(outcome_of(restored.stream()))
    assert again.events == ["started o-1", "started l-1", "finished l-1", "finished o-1"]
    assert (outcome.output_text, play.ran) == ("all done", ["look here"])


# ---------------------------------------------------------------------------------------------------------------------
# Streams


def kinds(events: list[EngineEvent]) -> list[str]:
    return [step.event.type for step in events if step.event is not None]


async def test_a_stream_shows_text_and_calls_and_ends_with_the_outcome(play: Play) -> None:
    play.model.enqueue(LOOK, "all good")
    events = await play.stream(NotingLedger())
    assert kinds(events) == ["tool_call", "tool_output", "text_delta"]
    shown = [step.event for step in events if step.event is not None]
    assert shown[0].tool_call is not None
    assert (shown[0].tool_call.tool_call_id, shown[0].tool_call.args) == ("l-1", {"what": "here"})
    assert shown[1].tool_call is not None
    assert shown[1].tool_call.output == "saw here"
    assert shown[2].delta == "all good"
    assert [step for step in events if step.outcome is not None] == events[-1:]
    outcome = events[-1].outcome
    assert outcome is not None
    assert (outcome.output_text, outcome.usage.requests) == ("all good", 2)


async def test_a_stream_can_pause_and_be_resumed_as_a_stream(play: Play) -> None:
    play.model.enqueue([LOOK, PAY], "all good")
    ledger = NotingLedger(asks=["pay"])
    paused = (await play.stream(ledger))[-1].outcome
    assert paused is not None
    assert play.ran == []
    restored = await play.elsewhere(paused, ledger.resumed(), options=STREAMED)
    events = await within(collected(restored.stream(Said("but not again"))))
    assert kinds(events) == ["tool_output", "tool_output", "text_delta"]
    outcome = events[-1].outcome
    assert outcome is not None
    assert (outcome.output_text, outcome.usage.requests) == ("all good", 2)
    assert "but not again" in play.heard[-1]


async def test_a_stream_that_breaks_is_a_stream_error(play: Play) -> None:
    play.model.enqueue(ConnectionError("cut"))
    assert await code_of(play.stream(NotingLedger())) == "AGENTS-E-STREAM"


async def test_a_stream_can_be_left(play: Play) -> None:
    play.model.enqueue("all good", "again")
    steps: AsyncGenerator[EngineEvent, None] = play.engine.stream(play.clerk, "go", NotingLedger(), STREAMED)
    async for step in steps:
        if step.event is not None:
            break
    await within(steps.aclose())
    assert (await play.run(NotingLedger())).output_text == "again"


# ---------------------------------------------------------------------------------------------------------------------
# What a human refused or changed


async def test_the_model_gets_what_a_human_refused_and_the_rest_runs(play: Play) -> None:
    ledger = NotingLedger(asks=["pay"])
    play.model.enqueue([LOOK, PAY], "then not")
    paused = await play.run(ledger)
    outcome, resumed = await play.resumed(ledger, paused, told={"p-1": "refused: 別の口座に"})
    assert outcome.output_text == "then not"
    assert play.ran == ["look here"]
    assert resumed.events == ["started l-1", "finished l-1"]
    assert "refused: 別の口座に" in str(json.loads(play.heard[-1]))
    assert "saw here" in play.heard[-1]


async def test_a_changed_call_runs_with_the_new_arguments_and_the_model_gets_it(play: Play) -> None:
    ledger = NotingLedger(asks=["pay"])
    play.model.enqueue([LOOK, PAY], "less, then")
    paused = await play.run(ledger)
    outcome, resumed = await play.resumed(ledger, paused, changed={"p-1": {"amount": 3}})
    assert outcome.output_text == "less, then"
    assert sorted(play.ran) == ["look here", "pay 3"]
    result = resumed.result_of("p-1")
    assert result is not None
    assert (result.args, result.output) == ({"amount": 3}, "paid 3")
    assert play.heard[-1].count("A human changed the arguments") == 1
    assert "paid 3" in play.heard[-1]


async def test_an_agent_inside_gets_what_a_human_refused(play: Play) -> None:
    inside = play.agent("Inside", [play.pay])
    outside = play.agent("Outside", [inside.as_tool("ask", "Ask somebody else.")])
    ledger = NotingLedger(asks=["pay"])
    play.model.enqueue(ScriptedCall("ask", {"input": "pay"}, "a-1"), PAY, "inside: then not", "done")
    paused = await play.run(ledger, agent=outside)
    outcome, _ = await play.resumed(ledger, paused, outside, told={"p-1": "refused"})
    assert outcome.output_text == "done"
    assert play.ran == []
    assert "refused" in play.heard[-2]
    assert "inside: then not" in play.heard[-1]


async def test_the_calls_of_a_pause_name_their_agent(play: Play) -> None:
    ledger = NotingLedger(asks=["pay"])
    play.model.enqueue([LOOK, PAY])
    paused = await play.elsewhere(await play.run(ledger), ledger.resumed())
    assert all(turn.agent is play.clerk for turn in paused.turns if turn.calls)
    assert {call.call_id for turn in paused.turns for call in turn.calls} == {"l-1", "p-1"} == set(paused.calls)
    assert {tool.name for turn in paused.turns for tool in turn.catalog} == {"look", "pay"}


async def test_the_ledger_counts_what_the_models_used_before_their_turn_is_judged(play: Play) -> None:
    ledger = NotingLedger()
    play.model.enqueue(LOOK, "done")
    outcome = await play.run(ledger)
    assert ledger.tokens[0] == 2
    assert sum(ledger.tokens) <= outcome.usage.total_tokens == 4
