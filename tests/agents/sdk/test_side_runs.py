"""Runs that a tool starts on the side, by whatever way: each is taken over by the ledger of the run around it."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import agents as sdk
import pytest
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner

from openai_responses_mcp.agents import Agent, create_runner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import DENY, FakeJudge, code_of, within

QUIET = sdk.RunConfig(tracing_disabled=True)
POOL = ThreadPoolExecutor(1)


def in_a_loop_of_its_own(agent: sdk.Agent[Any]) -> Any:
    return asyncio.run(sdk.Runner.run(agent, "do it", run_config=QUIET)).final_output


async def in_a_thread_without_await(agent: sdk.Agent[Any]) -> Any:
    def run() -> Any:
        asyncio.set_event_loop(loop := asyncio.new_event_loop())
        try:
            return sdk.Runner.run_sync(agent, "do it", run_config=QUIET).final_output
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    return await asyncio.to_thread(run)


async def in_a_thread(agent: sdk.Agent[Any]) -> Any:
    said: list[Any] = []
    thread = threading.Thread(target=lambda: said.append(in_a_loop_of_its_own(agent)))
    # What the thread fails with is printed by the interpreter; the run around it must know by itself.
    threading.excepthook, before = lambda failure: None, threading.excepthook
    try:
        thread.start()
        await asyncio.to_thread(thread.join)
    finally:
        threading.excepthook = before
    return said


async def in_an_executor_that_was_there_before(agent: sdk.Agent[Any]) -> Any:
    return await asyncio.wrap_future(POOL.submit(in_a_loop_of_its_own, agent))


async def through_the_default_runner(agent: sdk.Agent[Any]) -> Any:
    return (await get_default_agent_runner().run(agent, "do it", run_config=QUIET)).final_output


async def through_the_default_runner_streamed(agent: sdk.Agent[Any]) -> Any:
    result = get_default_agent_runner().run_streamed(agent, "do it", run_config=QUIET)
    return [event async for event in result.stream_events()]


async def in_a_thread_of_asyncio(agent: sdk.Agent[Any]) -> Any:
    return await asyncio.to_thread(in_a_loop_of_its_own, agent)


SEEN_ALWAYS: list[Callable[[sdk.Agent[Any]], Any]] = [
    in_a_thread_of_asyncio,
    in_a_thread_without_await,
    through_the_default_runner,
    through_the_default_runner_streamed,
]
SEEN_WHERE_THREADS_ARE_WATCHED: list[Callable[[sdk.Agent[Any]], Any]] = [
    in_a_thread,
    in_an_executor_that_was_there_before,
]
WAYS = SEEN_ALWAYS + SEEN_WHERE_THREADS_ARE_WATCHED


class Scene:
    """An outer agent whose tool starts the inner one in its own way."""

    def __init__(self, way: Callable[[sdk.Agent[Any]], Any]) -> None:
        self.written: list[str] = []
        self.judge = FakeJudge()
        self.runner = create_runner(safety_agent=self.judge, watch_threads=way not in SEEN_ALWAYS)

        @sdk.function_tool
        def write(text: str) -> str:
            """Write something down."""
            self.written.append(text)
            return f"wrote {text}"

        self.inner = sdk.Agent[Any](name="Inner", tools=[write], model=ScriptedModel(*WRITE))

        @sdk.function_tool
        async def sneak() -> str:
            """Start a run on the side."""
            return str(await way(self.inner))

        self.outer = Agent(name="Outer", model=ScriptedModel(ScriptedCall("sneak"), "done"), tools=[sneak])


WRITE = (ScriptedCall("write", {"text": "x"}, "w-1"), "inner done")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_refusal_on_the_side_ends_the_run(way: Callable[[sdk.Agent[Any]], Any]) -> None:
    scene = Scene(way)
    scene.judge.on("write", DENY)
    assert await code_of(scene.runner.run(scene.outer, "go")) == "AGENTS-E-GATE-DENIED"
    assert scene.written == []


@pytest.mark.parametrize(
    "way",
    [in_an_executor_that_was_there_before, through_the_default_runner],
    ids=lambda way: way.__name__,
)
async def test_outside_a_guarded_run_every_way_works_as_in_the_sdk(way: Callable[[sdk.Agent[Any]], Any]) -> None:
    scene = Scene(way)
    await within(scene.runner.run(scene.outer, "go"))
    scene.inner.model = ScriptedModel(ScriptedCall("write", {"text": "plain"}), "done")
    await within(way(scene.inner))
    assert [request.args.get("text") for request in scene.judge.requests] == [None, "x"]
    assert scene.written == ["x", "plain"]


async def test_a_plain_run_next_to_a_guarded_one_is_left_alone() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def wait(agent: sdk.Agent[Any]) -> str:
        started.set()
        await go_on.wait()
        return "waited"

    scene = Scene(wait)
    guarded = asyncio.create_task(scene.runner.run(scene.outer, "go"))
    await within(started.wait())
    await within(sdk.Runner.run(scene.inner, "go", run_config=QUIET))
    go_on.set()
    await within(guarded)
    assert scene.written == ["x"]
    assert [request.tool_name for request in scene.judge.requests] == ["sneak"]


async def test_a_default_runner_of_the_users_own_is_asked_behind_ours() -> None:
    class Counting(AgentRunner):
        runs = 0

        async def run(self, starting_agent: sdk.Agent[Any], input: Any, **options: Any) -> Any:
            self.runs += 1
            return await super().run(starting_agent, input, **options)

    scene, counting = Scene(through_the_default_runner), Counting()
    set_default_agent_runner(counting)
    await within(scene.runner.run(scene.outer, "go"))
    assert counting.runs == 2  # the outer run and the inner one
    assert [request.tool_name for request in scene.judge.requests] == ["sneak", "write"]


LEFT_ALONE = """
import asyncio, concurrent.futures, threading
from agents import Agent, AgentBase, Runner
from agents.run import AgentRunner

OWNERS = (threading.Thread, concurrent.futures.ThreadPoolExecutor, Agent, AgentBase, AgentRunner, Runner)
before = [dict(vars(owner)) for owner in OWNERS]

from openai_responses_mcp.agents import SafetyAgent, configure, create_runner
from openai_responses_mcp.agents.testing import ScriptedModel

runner = create_runner(safety_agent=SafetyAgent.allow_all())
configure(runner)
asyncio.run(runner.run(Agent(name="A", model=ScriptedModel("done")), "go"))
print([owner.__name__ for owner, names in zip(OWNERS, before) if dict(vars(owner)) != names])
"""


def test_a_run_changes_no_class_of_the_sdk_or_of_the_standard_library() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT_ALONE], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "[]\n"
