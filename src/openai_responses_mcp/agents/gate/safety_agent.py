"""The judge: the user's callable, and what counts as a verdict. Anything else is an error and refuses the call."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.models import GateDecision, ToolCallRequest
from openai_responses_mcp.agents.gate.ports import Judge
from openai_responses_mcp.agents.policy.profiles import PolicyProfile

DEFAULT_TIMEOUT_SECONDS = 30.0


class JudgeFailed(Exception):
    """A judge raised its `__cause__`. Not everything that a thread raises can be raised again as it is."""


class SafetyAgent(Judge):
    """Wraps `(agent, request, policy) -> verdict`, sync or async. A verdict is a `GateDecision`, or a mapping with
    `decision`, `risk_level` and `reason`. A sync callable runs on a thread, so that a slow one does not block the event loop."""

    def __init__(self, evaluate: Callable[..., object], *, timeout_seconds: float | None = None) -> None:
        if not callable(evaluate):
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", "SafetyAgent takes a callable (agent, request, policy)")
        self._evaluate = evaluate
        self._timeout_seconds = DEFAULT_TIMEOUT_SECONDS if timeout_seconds is None else timeout_seconds

    @classmethod
    def allow_all(cls) -> "SafetyAgent":
        """For tests: every call has risk 1. Profiles, scopes and `require_approval` still hold."""
        return cls(_allow)

    async def evaluate(self, agent: object, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        async with asyncio.timeout(self._timeout_seconds):
            return verdict_from(await self._asked(agent, request, policy))

    async def _asked(self, *question: object) -> object:
        if inspect.iscoroutinefunction(self._evaluate):
            return await self._evaluate(*question)
        verdict = await _on_a_thread_of_its_own(self._evaluate, *question)
        return await verdict if inspect.isawaitable(verdict) else verdict


async def _on_a_thread_of_its_own(judge: Callable[..., object], *args: object) -> object:
    """Not on the loop's own threads: a judge that never returns would keep one of those for good."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[object] = loop.create_future()

    def give(result: object, failure: Exception | None) -> None:
        if answer.done():
            return
        if failure is None:
            answer.set_result(result)
        else:
            answer.set_exception(failure)

    def work() -> None:
        result, failure = None, None
        try:
            result = judge(*args)
        except BaseException as exc:  # foreign code
            failure = JudgeFailed()
            failure.__cause__ = exc
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(give, result, failure)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="agents-judge", daemon=True).start()
    return await answer


async def _allow(agent: object, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
    return GateDecision("allow", 1, "everything is allowed")


def verdict_from(value: object) -> GateDecision:
    """Raises `AGENTS-E-GATE-EVAL` for anything that is not a complete verdict."""
    if isinstance(value, GateDecision):
        return GateDecision(value.decision, value.risk_level, value.reason)
    if not isinstance(value, Mapping):
        raise AgentsError("AGENTS-E-GATE-EVAL", f"The judge returned {type(value).__name__}, not a verdict")
    missing = [name for name in ("decision", "risk_level", "reason") if name not in value]
    if missing:
        raise AgentsError("AGENTS-E-GATE-EVAL", f"The verdict lacks {', '.join(missing)}")
    return GateDecision(value["decision"], value["risk_level"], value["reason"])
