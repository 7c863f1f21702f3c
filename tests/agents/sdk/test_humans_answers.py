"""What a human refused or changed, in runs of the SDK: structured outputs, hooks, handoffs with input, last tools."""

from typing import Any

import agents as sdk
from agents.tool import ToolOutputImage, ToolOutputText
from pydantic import BaseModel

from openai_responses_mcp.agents import Agent, Extensions, RunOptions, create_runner, tool
from openai_responses_mcp.agents.sdk.guarded_calls import with_note
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import FakeJudge, within

IMAGE = ToolOutputImage(image_url="data:image/png;base64,AA==")


def test_a_note_comes_before_any_output() -> None:
    cases: list[tuple[object, object]] = [
        ("paid", "note\n\npaid"),
        ({"paid": 5}, "note\n\n{'paid': 5}"),
        (None, "note\n\nNone"),
        ([], "note\n\n[]"),
        (IMAGE, [ToolOutputText(text="note"), IMAGE]),
        ([{"type": "text", "text": "a"}, IMAGE], [ToolOutputText(text="note"), {"type": "text", "text": "a"}, IMAGE]),
    ]
    for output, noted in cases:
        assert with_note(output, "note", sdk.Agent(name="A")) == noted
        assert with_note(output, "note", None) == noted


def test_an_output_that_ends_the_run_gets_no_note() -> None:
    agent = sdk.Agent[Any](name="A", tool_use_behavior="stop_on_first_tool")
    assert with_note({"paid": 5}, "note", agent) == {"paid": 5}


seen: list[str] = []


@tool(risk_level=3)
def pay(context: sdk.RunContextWrapper[Any], amount: int) -> str:
    """Pay somebody."""
    seen.append(str(getattr(context, "tool_arguments", "")))
    return f"paid {amount}"


async def test_a_changed_call_of_a_real_tool_sees_the_new_arguments_everywhere() -> None:
    seen.clear()
    agent = Agent(name="Clerk", model=ScriptedModel(ScriptedCall("pay", {"amount": 5}), "less"), tools=[pay])
    runner = create_runner(safety_agent=FakeJudge())
    paused = await within(runner.run(agent, "go"))
    await runner.submit_approval(paused.interruptions[0].approval_id, "approve", arguments={"amount": 3})
    result = await within(runner.resume_run(paused.run_id))
    assert result.output_text == "less"
    assert seen == ['{"amount": 3}']
    assert [call.output for call in result.tool_calls] == ["paid 3"]


class Case(BaseModel):
    title: str


class Hooks(sdk.RunHooks[Any]):
    def __init__(self) -> None:
        self.handoffs: list[str] = []

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        self.handoffs.append(f"{from_agent.name} to {to_agent.name}")


class Transfer:
    """A clerk who hands a case over, with a filter that forgets everything."""

    def __init__(self, *after: Any) -> None:
        self.got: list[str] = []
        self.hooks = Hooks()
        self.other_model = ScriptedModel("by the other")
        self.model = ScriptedModel(ScriptedCall("transfer_to_other", {"title": "一"}), *after)
        other = Agent(name="Other", model=self.other_model)
        over = sdk.handoff(other, on_handoff=self._note, input_type=Case, input_filter=self._forget)
        self.agent = Agent(name="Clerk", model=self.model, handoffs=[over])
        self.runner = create_runner(safety_agent=FakeJudge())

    async def _note(self, context: Any, case: Case) -> None:
        self.got.append(case.title)

    def _forget(self, data: sdk.HandoffInputData) -> sdk.HandoffInputData:
        return data.clone(input_history=(), pre_handoff_items=())

    async def paused(self) -> Any:
        extensions = Extensions(require_human_approval=True)
        options = RunOptions(extensions=extensions, sdk={"hooks": self.hooks})
        return await within(self.runner.run(self.agent, "please", options))


async def test_a_refused_handoff_keeps_its_history_and_calls_no_hook() -> None:
    scene = Transfer("by myself")
    paused = await scene.paused()
    await scene.runner.submit_approval(paused.interruptions[0].approval_id, "deny", "no", tell_model=True)
    result = await within(scene.runner.resume_run(paused.run_id))
    assert result.output_text == "by myself"
    assert (scene.got, scene.hooks.handoffs) == ([], [])
    said = str(scene.model.calls[-1].input)
    assert "please" in said
    assert "A human refused this call: no" in said


async def test_another_handoff_works_after_a_refused_one() -> None:
    scene = Transfer(ScriptedCall("transfer_to_other", {"title": "二"}))
    paused = await scene.paused()
    await scene.runner.submit_approval(paused.interruptions[0].approval_id, "deny", "no", tell_model=True)
    again = await within(scene.runner.resume_run(paused.run_id))
    result = await within(scene.runner.approve_and_resume(again.run_id, again.interruptions[0].approval_id))
    assert result.output_text == "by the other"
    assert (scene.got, scene.hooks.handoffs) == (["二"], ["Clerk to Other"])
    assert "please" not in str(scene.other_model.calls[-1].input)


async def test_a_handoff_is_changed_too() -> None:
    scene = Transfer()
    paused = await scene.paused()
    await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve", arguments={"title": "三"})
    result = await within(scene.runner.resume_run(paused.run_id))
    assert result.output_text == "by the other"
    assert scene.got == ["三"]
    assert '"一" is now "三"' in str(scene.other_model.calls[-1].input)
