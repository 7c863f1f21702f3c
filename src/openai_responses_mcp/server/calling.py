"""One `tools/call`: arguments become a question, the question an answer, the answer or failure a reply.

A call may take long: the client gets progress notifications while it waits, or a promise in place of the answer.
Progress rises strictly, with at most four notifications a second and at least one every ten seconds. After a promise the
research continues at the API.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from openai_responses_mcp.domain.answering import AnswerQuestion, FetchAnswer
from openai_responses_mcp.domain.cancellation import has_happened_within
from openai_responses_mcp.domain.errors import AnsweringError, InvalidArguments, StillRunning
from openai_responses_mcp.domain.jsonrpc import JsonObject, Request, is_id
from openai_responses_mcp.domain.models import (
    Answer,
    CallFailure,
    ObservedCall,
    Progress,
    ProgressListener,
    StartListener,
)
from openai_responses_mcp.domain.ports import CallObserver, LLMGateway, Logger, WallClock
from openai_responses_mcp.domain.usage import CallerLimits, OverLimit, UsageBook
from openai_responses_mcp.server.eras import CallingClient
from openai_responses_mcp.server.jsonrpc import notification_message, result_message
from openai_responses_mcp.server.tasks import Tasks
from openai_responses_mcp.server.tool_results import Failures, failed_tool_result, handed_over, tokens_in, tool_result
from openai_responses_mcp.server.tools import RESULT_TOOL, Tool, read_question, read_response_id, unknown_arguments

Send = Callable[[JsonObject], None]


@dataclass(frozen=True, slots=True)
class CallingRules:
    """What the configuration says about calls."""

    returns_failures_as_results: bool
    shows_response_id: bool
    keeps_responses: bool


Call = Callable[[Tool, Request, CallingClient, Send], Awaitable[JsonObject]]
"""Gives the reply to a call, also if it fails. Progress is sent with the last argument."""


class Caller(NamedTuple):
    """Everything that is loaded after the first replies."""

    call: Call
    tasks: Tasks


class ToolCaller:
    def __init__(
        self,
        answering: AnswerQuestion,
        fetching: FetchAnswer,
        unfinished: "UnfinishedAnswers",
        tasks: Tasks,
        clock: WallClock,
        logger: Logger,
        failures: Failures,
        rules: CallingRules,
    ) -> None:
        self._tasks = tasks
        self._answering = answering
        self._fetching = fetching
        self._unfinished = unfinished
        self._clock = clock
        self._logger = logger
        self._failures = failures
        self._rules = rules

    async def call(self, tool: Tool, request: Request, client: CallingClient, send: Send) -> JsonObject:
        try:
            result = await self._result(tool, request, client, send)
        except AnsweringError as exc:
            return self._failure(tool, request, client, exc)
        return result_message(request.id, client.era.result(result))

    async def _result(self, tool: Tool, request: Request, client: CallingClient, send: Send) -> JsonObject:
        arguments = self._arguments(tool, request)
        async with self._reporting(tool, request, client, send) as on_progress:
            if tool.name == RESULT_TOOL:
                outcome = await self._fetched(tool, arguments, client, on_progress)
            else:
                outcome = await self._answered(tool, arguments, client, on_progress)
        if isinstance(outcome, Answer):
            return tool_result(tool, outcome, shows_response_id=self._rules.shows_response_id)
        return outcome

    def _reporting(
        self, tool: Tool, request: Request, client: CallingClient, send: Send
    ) -> AbstractAsyncContextManager[ProgressListener | None]:
        token = progress_token_of(request.params)
        if token is None:
            return nullcontext()
        # Probably: the API may still refuse to run it in the background.
        is_in_background = tool.name != RESULT_TOOL and self._answering.runs_in_background(tool.profile)
        becomes_a_task = client.takes_tasks and is_in_background
        return reporting(token, send, self._clock, begins_at_once=not becomes_a_task)

    async def _answered(
        self, tool: Tool, arguments: JsonObject, client: CallingClient, on_progress: ProgressListener | None
    ) -> Answer | JsonObject:
        question = read_question(tool, arguments, keeps_responses=self._rules.keeps_responses)
        inquire = partial(self._answering.answer, question, on_progress)
        if client.takes_tasks:
            domains = self._answering.allowed_domains(question)
            created = partial(self._tasks.maybe_created, tool, domains)
            return await self._unfinished.answer_or_promise(inquire, 0, created)
        if client.hand_over_seconds is None:
            return await inquire()
        return await self._unfinished.answer_or_promise(inquire, client.hand_over_seconds, partial(handed_over, tool))

    async def _fetched(
        self, tool: Tool, arguments: JsonObject, client: CallingClient, on_progress: ProgressListener | None
    ) -> Answer | JsonObject:
        response_id = read_response_id(tool, arguments)

        async def inquire(on_started: StartListener) -> Answer:
            on_started(response_id)
            return await self._fetching.wait(response_id, on_progress)

        try:
            if client.hand_over_seconds is None:
                return await self._fetching.wait(response_id, on_progress)
            promise = partial(handed_over, tool)
            return await self._unfinished.answer_or_promise(inquire, client.hand_over_seconds, promise, is_asking=False)
        except StillRunning:
            return handed_over(tool, response_id)

    def _arguments(self, tool: Tool, request: Request) -> JsonObject:
        arguments = request.params.get("arguments")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise InvalidArguments("arguments must be an object")
        text = next((arguments.get(argument.name) for argument in tool.arguments if argument.is_required), None)
        length = len(text) if isinstance(text, str) else 0
        self._logger.debug("tools/call", name=tool.name, argsKeys=list(arguments), queryLen=length)
        unknown = unknown_arguments(tool, arguments)
        if unknown:
            self._logger.debug("ignored arguments", name=tool.name, argsKeys=unknown)
        return arguments

    def _failure(self, tool: Tool, request: Request, client: CallingClient, error: AnsweringError) -> JsonObject:
        if client.era.returns_failures_as_results or self._rules.returns_failures_as_results:
            result = self._failures.as_result(tool, error, may_fetch=client.may_fetch)
            return result_message(request.id, client.era.result(result))
        return self._failures.as_error(request.id, tool, error, may_fetch=client.may_fetch)


def observed_call(call: Call, observer: CallObserver) -> Call:
    async def observed(tool: Tool, request: Request, client: CallingClient, send: Send) -> JsonObject:
        meta = request.params.get("_meta")
        named = {key: meta.get(key) for key in ("traceparent", "tracestate")} if isinstance(meta, dict) else {}
        trace = {key: value for key, value in named.items() if isinstance(value, str)}
        seen = ObservedCall(tool.name, request.id, client.era.revision, trace, client.caller)
        with observer.observed(seen) as failed:
            reply = await call(tool, request, client, send)
            error = reply.get("error")
            if error is not None:
                failed(CallFailure(str(error["code"]), error["message"], error["code"]))
            elif reply["result"].get("isError"):
                failed(CallFailure("tool_error"))
            return reply

    return observed


def limited_call(call: Call, limits: CallerLimits, usage: UsageBook) -> Call:
    """A call over a limit gets a tool result, in both eras, because a model reads results."""

    async def limited(tool: Tool, request: Request, client: CallingClient, send: Send) -> JsonObject:
        begun = await usage.begin(client.caller, limits)
        if isinstance(begun, OverLimit):
            return result_message(request.id, client.era.result(failed_tool_result(begun.sentence)))
        tokens = 0
        try:
            reply = await call(tool, request, client, send)
            tokens = tokens_in(reply.get("result") or {})
            return reply
        finally:
            await usage.end(begun, tokens)

    return limited


def caller_with(
    tool_caller: ToolCaller, tasks: Tasks, limits: CallerLimits, usage: UsageBook, observer: CallObserver | None
) -> Caller:
    """Calls are limited or observed only if there are limits or an observer."""
    call: Call = tool_caller.call
    if any(limits):
        call = limited_call(call, limits, usage)
    if observer is not None:
        call = observed_call(call, observer)
    return Caller(call, tasks)


Inquiry = Callable[[StartListener], Coroutine[Any, Any, Answer]]


class UnfinishedAnswers:
    def __init__(self, gateway: LLMGateway, clock: WallClock) -> None:
        self._gateway = gateway
        self._clock = clock
        self._ending: set[asyncio.Task[Answer]] = set()

    async def answer_or_promise(
        self,
        inquire: Inquiry,
        patience_seconds: float,
        make_promise: Callable[[str], JsonObject | None],
        *,
        is_asking: bool = True,
    ) -> Answer | JsonObject:
        """The answer; or, once `patience_seconds` have passed and the response id is known, a promise made from the id.

        If `make_promise` gives None, the answer is waited for. A call that asked the question lets the response go
        before it stops reading (`is_asking`); one that only fetches the response does not.

        Nothing is awaited between letting go and returning. So a cancellation of this call either cancels the response
        too, or comes too late for both.
        """
        given: asyncio.Future[tuple[str, JsonObject]] = asyncio.get_running_loop().create_future()

        def hear(response_id: str) -> None:
            promised = make_promise(response_id)
            if promised is not None:
                given.set_result((response_id, promised))

        async def patient() -> tuple[str, JsonObject]:
            await self._clock.sleep(patience_seconds)
            return await given

        answering = asyncio.create_task(inquire(hear))
        waiting = asyncio.create_task(patient())
        try:
            await asyncio.wait({answering, waiting}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            answering.cancel()
            # The response must be marked as abandoned before this call ends.
            await asyncio.gather(answering, return_exceptions=True)
            raise
        finally:
            waiting.cancel()
        if answering.done():
            return answering.result()
        response_id, promised = waiting.result()
        if is_asking:
            self._gateway.let_go(response_id)
        self._ending.add(answering)
        answering.add_done_callback(self._forget)
        answering.cancel()
        return promised

    def _forget(self, answering: asyncio.Task[Answer]) -> None:
        self._ending.discard(answering)
        if not answering.cancelled():
            answering.exception()  # Retrieved, or asyncio would log a warning.


SHORTEST_GAP_SECONDS = 0.25
LONGEST_GAP_SECONDS = 8.0

ProgressToken = int | str


def progress_token_of(params: JsonObject) -> ProgressToken | None:
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if is_id(token) else None


@asynccontextmanager
async def reporting(
    token: ProgressToken, send: Send, clock: WallClock, *, begins_at_once: bool = True
) -> AsyncIterator[ProgressListener]:
    """Yields the listener for progress. Nothing is sent after the block.

    A call that will be answered with a task sends no progress at once: it would be the only notification.
    """
    message, news, numbers, started = "asking the model", asyncio.Event(), itertools.count(1), clock.monotonic()

    def hear(progress: Progress) -> None:
        nonlocal message
        message = progress.message
        news.set()

    def report(text: str) -> None:
        params = {"progressToken": token, "progress": next(numbers), "message": text}
        send(notification_message("notifications/progress", params))

    async def report_on() -> None:
        if begins_at_once:
            report(message)
        while True:
            await clock.sleep(SHORTEST_GAP_SECONDS)
            if await has_happened_within(news, LONGEST_GAP_SECONDS, clock):
                news.clear()
                report(message)
            else:
                report(f"{message} ({round(clock.monotonic() - started)} s)")

    task = asyncio.create_task(report_on())
    try:
        yield hear
    finally:
        task.cancel()
