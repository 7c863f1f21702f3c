"""A paused run in another process: what it has to be given again, and what it may go on without."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agents import ModelResponse, RunContextWrapper, RunHooks, SQLiteSession

from openai_responses_mcp.agents.runs.models import Extensions, ResumeOptions, RunOptions
from openai_responses_mcp.agents.testing import ScriptedModel
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from openai_responses_mcp.gate.stores import RunRecord, RunStateStore
from tests.agents.fake_stores import FakeRunStateStore
from tests.agents.fakes import code_of, collected, within
from tests.agents.scenes import PAY, Scene


@pytest.fixture
def scenes(sqlite_url: str) -> tuple[Scene, Scene]:
    """Two processes on one store."""
    return Scene(PAY, store=sqlite_url), Scene("all good", store=sqlite_url)


async def paused(scene: Scene, **sdk: Any) -> Any:
    return await within(scene.runner.run(scene.agent, "go", RunOptions(sdk=sdk)))


class LateRuns(FakeRunStateStore):
    """Another store of runs. Before it is first read, another process decides."""

    def __init__(self, inner: RunStateStore, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._inner = inner
        self._meanwhile = [meanwhile]

    async def get(self, run_id: str) -> RunRecord | None:
        while self._meanwhile:
            await self._meanwhile.pop()()
        return await self._inner.get(run_id)


async def test_a_decision_that_comes_second_is_refused_also_when_the_run_has_gone_on_meanwhile(sqlite_url: str) -> None:
    first = Scene(PAY, "all good", store=sqlite_url)
    run = await paused(first)
    approval_id = run.interruptions[0].approval_id
    runs = LateRuns(open_stores(sqlite_url).runs, lambda: first.runner.approve_and_resume(run.run_id, approval_id))
    second = Scene("all good", store=sqlite_url, run_state_store=runs)
    work = second.runner.approve_and_resume(run.run_id, approval_id, agent=second.agent)
    assert await within(code_of(work)) == "AGENTS-E-APPROVAL-INVALID"
    assert (first.ran, second.ran) == (["pay 5"], [])


@pytest.mark.parametrize("given", [{"session": object()}, {"context": None}])
async def test_missing_objects_are_named_before_the_token_is_used(
    scenes: tuple[Scene, Scene], given: dict[str, Any]
) -> None:
    first, second = scenes
    run = await paused(first, context=object(), session=SQLiteSession("s"))
    approval_id = run.interruptions[0].approval_id
    options = RunOptions(sdk=given)
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG") as caught:
        await within(second.runner.approve_and_resume(run.run_id, approval_id, agent=second.agent, options=options))
    missing = [name for name in ("context", "session") if given.get(name) is None]
    assert caught.value.details["missing"] == missing
    token = await second.runner.submit_approval(approval_id, "approve")
    work = second.runner.resume_run(run.run_id, token.token, agent=second.agent, options=options)
    assert await code_of(work) == "AGENTS-E-RUNNER-CONFIG"
    whole = RunOptions(sdk={"context": object(), "session": SQLiteSession("s")})
    result = await within(second.runner.resume_run(run.run_id, token.token, agent=second.agent, options=whole))
    assert (result.output_text, second.ran) == ("all good", ["pay 5"])


class Contexts(RunHooks[Any]):
    """The contexts in which tools were called."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def on_tool_start(self, context: RunContextWrapper[Any], *_: Any) -> None:
        self.seen.append(context.context)


def contents_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_a_context_is_never_stored(scenes: tuple[Scene, Scene], tmp_path: Path) -> None:
    first, second = scenes
    run = await paused(first, context="the caller's own business", conversation_id="conv_1")
    stored = contents_of(tmp_path)
    assert b"conv_1" in stored
    assert b"own business" not in stored
    hooks = Contexts()
    options = RunOptions(sdk={"context": "another", "hooks": hooks})
    approval_id = run.interruptions[0].approval_id
    await within(second.runner.approve_and_resume(run.run_id, approval_id, agent=second.agent, options=options))
    assert hooks.seen == ["another"]


class RecordsConversations(ScriptedModel):
    """Also records the conversation of each request."""

    def __init__(self, *turns: Any) -> None:
        super().__init__(*turns)
        self.conversations: list[str | None] = []

    async def get_response(self, *args: Any, conversation_id: str | None = None, **options: Any) -> ModelResponse:
        self.conversations.append(conversation_id)
        return await super().get_response(*args, **options)


async def test_a_run_resumed_in_another_process_stays_in_its_conversation(scenes: tuple[Scene, Scene]) -> None:
    first, second = scenes
    run = await paused(first, conversation_id="conv_1")
    second.agent.model = model = RecordsConversations("all good")
    approval_id = run.interruptions[0].approval_id
    await within(second.runner.approve_and_resume(run.run_id, approval_id, agent=second.agent))
    assert model.conversations == ["conv_1"]


async def test_objects_passed_to_a_resume_replace_the_first_ones() -> None:
    scene, hooks = Scene(PAY, "all good"), Contexts()
    run = await paused(scene, context="old", hooks=hooks)
    token = await scene.runner.submit_approval(run.interruptions[0].approval_id, "approve")
    resume = RunOptions(extensions=Extensions(resume=ResumeOptions(token.token)), sdk={"context": "new"})
    await within(collected(scene.runner.run_stream(scene.agent, "", resume)))
    assert hooks.seen == ["new"]


# ---------------------------------------------------------------------------------------------------------------------
# Without a token


async def test_a_decision_is_used_up_without_a_token(scenes: tuple[Scene, Scene]) -> None:
    first, second = scenes
    run = await paused(first)
    await first.runner.submit_approval(run.interruptions[0].approval_id, "approve")
    result = await within(second.runner.resume_run(run.run_id, agent=second.agent))
    assert (result.output_text, first.ran, second.ran) == ("all good", [], ["pay 5"])
    assert await code_of(second.runner.resume_run(run.run_id, agent=second.agent)) == "AGENTS-E-RESUME-TOKEN"
    assert second.ran == ["pay 5"]
