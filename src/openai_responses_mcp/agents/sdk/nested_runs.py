"""Runs inside runs: an agent as a tool, or a tool that starts a run of the SDK by itself.

The SDK's `Runner` asks a default runner, which can be set. Ours wraps the one that was set before. Inside a guarded run,
it takes the agent over for that run's ledger. Outside, an agent of this library goes through the configured runner.

Python passes context variables on to tasks and to `asyncio.to_thread`, but not to other threads. A run that a tool
starts in such a thread is not guarded, unless threads are watched: then each thread that is started inside a guarded run
gets the context variables of that run.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import Any, TypeVar

from agents import Agent, RunResult
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner

from openai_responses_mcp.agents.runner import is_configured
from openai_responses_mcp.agents.sdk.guarded_calls import running_calls
from openai_responses_mcp.agents.sdk.request_settings import for_the_sdk, without_texts
from openai_responses_mcp.agents.sdk.takeover import current_takeover
from openai_responses_mcp.agents.sdk.turns import TurnHooks

T = TypeVar("T")

_plain_start, _plain_submit = Thread.start, ThreadPoolExecutor.submit


class NestingRunner(AgentRunner):
    """In front of another runner of the SDK: runs inside a guarded run are taken over."""

    def __init__(self, behind: AgentRunner) -> None:
        self.behind = behind

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> Any:
        runner, agent, given = self._taken_over(starting_agent, options)
        return await runner.run(agent, input, **given)

    def run_sync(self, starting_agent: Agent[Any], input: Any, **options: Any) -> Any:
        runner, agent, given = self._taken_over(starting_agent, options)
        return runner.run_sync(agent, input, **given)

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **options: Any) -> Any:
        runner, agent, given = self._taken_over(starting_agent, options)
        return runner.run_streamed(agent, input, **given)

    def _taken_over(self, agent: Agent[Any], options: dict[str, Any]) -> tuple[Any, Agent[Any], dict[str, Any]]:
        """The runner for this run, with the agent and the options that it gets."""
        takeover = current_takeover.get()
        if takeover is not None:
            given = options.get("run_config")
            config = without_texts(given)
            hooks = TurnHooks(takeover, options.get("hooks"), config)
            guarded = {**options, "hooks": hooks, "run_config": for_the_sdk(config, given)}
            return self.behind, takeover.double_of(agent), guarded
        # Outside of any guarded run, such as that of an agent whose tool is called by hand.
        swapped = getattr(agent, "swapped_runner", None) if is_configured() else None
        if swapped is None:
            return self.behind, agent, options
        # Without the defaults that the SDK's `Runner` adds.
        added = {"error_handlers": None, "auto_previous_response_id": False}
        asked = {name: value for name, value in options.items() if name not in added or value is not added[name]}
        return swapped, agent, asked


def runner_of_the_sdk() -> AgentRunner:
    """The SDK's default runner, with ours in front of it from now on."""
    runner = get_default_agent_runner()
    if not isinstance(runner, NestingRunner):
        runner = NestingRunner(runner)
        set_default_agent_runner(runner)
    return runner.behind


async def run_unguarded(agent: Agent[Any], input: str, **options: Any) -> RunResult:
    """For the agent of a judge, which has no tools."""
    return await AgentRunner().run(agent, input, **options)


# ---------------------------------------------------------------------------------------------------------------------
# Threads


def watch_threads() -> None:
    """Replaces `Thread.start` and `ThreadPoolExecutor.submit` for the whole process; once is enough."""
    if Thread.start is not _start:
        Thread.start = _start  # type: ignore[method-assign]
    if ThreadPoolExecutor.submit is not _submit:
        ThreadPoolExecutor.submit = _submit  # type: ignore[assignment, method-assign]


def _start(self: Thread) -> None:
    if _is_watched():
        self.run = _inside(self.run)  # type: ignore[method-assign]
    _plain_start(self)


def _submit(self: ThreadPoolExecutor, fn: Callable[..., T], /, *args: Any, **options: Any) -> Future[T]:
    if not _is_watched():
        return _plain_submit(self, fn, *args, **options)
    carried = _inside(fn)
    # A thread that the executor starts now will also work for others later: it must not belong to this run.
    outside = current_takeover.set(None)
    try:
        return _plain_submit(self, carried, *args, **options)
    finally:
        current_takeover.reset(outside)


def _is_watched() -> bool:
    takeover = current_takeover.get()
    return takeover is not None and takeover.watches_threads


def _inside(work: Callable[..., T]) -> Callable[..., T]:
    """The same work, inside the run that is going on right now."""
    takeover, calls = current_takeover.get(), running_calls.get()

    def carried(*args: Any, **options: Any) -> T:
        taken, running = current_takeover.set(takeover), running_calls.set(calls)
        try:
            return work(*args, **options)
        finally:
            running_calls.reset(running)
            current_takeover.reset(taken)

    return carried
