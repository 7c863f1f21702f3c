"""Budgets of runs: reaching one asks a human whether to go on."""

from pathlib import Path
from typing import Any

from openai_responses_mcp.agents.runs.models import Extensions
from openai_responses_mcp.agents.testing import ScriptedCall
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.agents.fakes import FakeClock, code_of, within
from tests.agents.scenes import Scene


def look(number: int) -> ScriptedCall:
    return ScriptedCall("look", {"what": str(number)}, f"l-{number}")


async def test_a_used_up_budget_of_calls_asks_a_human() -> None:
    scene = Scene(look(1), look(2), look(3), look(4), look(5), "done")
    run = await scene.go(Extensions(max_tool_calls=2))
    assert scene.ran == ["look 1", "look 2"]
    (request,) = run.interruptions
    assert (request.tool_call_id, request.reason) == ("l-3", "the budget of 2 calls per run is used up")
    run = await within(scene.runner.approve_and_resume(run.run_id, request.approval_id))
    assert scene.ran == ["look 1", "look 2", "look 3", "look 4"]
    (request,) = run.interruptions
    assert request.tool_call_id == "l-5"
    result = await within(scene.runner.approve_and_resume(run.run_id, request.approval_id))
    assert result.output_text == "done"
    assert (await scene.runner.verify_execution_logs()).is_intact


async def test_a_denied_budget_ends_the_run_unless_the_denial_goes_to_the_model() -> None:
    scene = Scene(look(1), look(2), look(3), "done")
    run = await scene.go(Extensions(max_tool_calls=1))
    await scene.runner.submit_approval(run.interruptions[0].approval_id, "deny", "come to an end", tell_model=True)
    run = await within(scene.runner.resume_run(run.run_id))
    assert scene.ran == ["look 1"]
    assert [request.tool_call_id for request in run.interruptions] == ["l-3"]
    denied = scene.runner.approve_and_resume(run.run_id, run.interruptions[0].approval_id, decision="deny")
    assert await code_of(denied) == "AGENTS-E-GATE-DENIED"


async def test_a_used_up_budget_of_tokens_asks_a_human() -> None:
    scene = Scene(look(1), look(2), look(3), look(4), "done")
    run = await scene.go(Extensions(max_tokens=5))  # the model uses two each time
    assert scene.ran == ["look 1", "look 2"]
    assert run.interruptions[0].reason == "the budget of 5 tokens per run is used up"
    result = await within(scene.runner.approve_and_resume(run.run_id, run.interruptions[0].approval_id))
    assert result.output_text == "done"


async def test_a_budget_holds_in_another_process(shared_url: str) -> None:
    scene = Scene(look(1), look(2), store=shared_url)
    run = await scene.go(Extensions(max_tool_calls=1))
    elsewhere = Scene(look(3), "done", store=shared_url)
    approval_id = run.interruptions[0].approval_id
    run = await within(elsewhere.runner.approve_and_resume(run.run_id, approval_id, agent=elsewhere.agent))
    assert elsewhere.ran == ["look 2"]
    assert [request.tool_call_id for request in run.interruptions] == ["l-3"]


def with_budget(folder: Path, budget: str) -> Path:
    file = folder / "policy.yaml"
    file.write_text(f"version: 1\nbudget: {budget}\n")
    return file


async def test_the_budget_of_a_policy_file_counts_each_run_by_itself(tmp_path: Path) -> None:
    scene = Scene(look(1), "done", look(2), look(3), policy_file=with_budget(tmp_path, "{calls: 1, per: session}"))
    assert (await scene.go()).output_text == "done"
    run = await scene.go()
    assert scene.ran == ["look 1", "look 2"]
    assert run.interruptions[0].reason == "the budget of 1 call per session is used up"


async def test_an_hour_counts_all_runs_on_the_store(tmp_path: Path, sqlite_url: str, clock: FakeClock) -> None:
    def scene(*turns: Any) -> Scene:
        return Scene(*turns, store=sqlite_url, clock=clock, policy_file=with_budget(tmp_path, "{calls: 1, per: hour}"))

    assert (await scene(look(1), "done").go()).output_text == "done"
    # Other processes count under the same name, also those of other versions.
    assert await open_stores(sqlite_url).budgets.read("calls per hour 2026-11-16T09 agents") == (1, 0)
    waiting = scene(look(2))
    assert (await waiting.go()).interruptions[0].reason == "the budget of 1 call per hour is used up"
    clock.move(3600)
    assert (await scene(look(3), "done").go()).output_text == "done"


async def test_a_refused_call_does_not_count() -> None:
    scene = Scene(ScriptedCall("pay", {"amount": 5}, "p-1"), look(1), look(2), "done")
    run = await scene.go(Extensions(max_tool_calls=1))
    await scene.runner.submit_approval(run.interruptions[0].approval_id, "deny", tell_model=True)
    run = await within(scene.runner.resume_run(run.run_id))
    assert scene.ran == ["look 1"]
    assert [request.tool_call_id for request in run.interruptions] == ["l-2"]


def test_the_smaller_budget_of_run_and_agent_counts() -> None:
    both = Extensions(max_tool_calls=5).joined_by(Extensions(max_tool_calls=3, max_tokens=9))
    assert (both.max_tool_calls, both.max_tokens) == (3, 9)
    none = Extensions().joined_by(Extensions())
    assert (none.max_tool_calls, none.max_tokens) == (None, None)
