"""One `tools/call`: arguments to question, question to answer, answer or failure to what the client is sent."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from openai_responses_mcp.domain.answering import AnswerQuestion, FetchAnswer
from openai_responses_mcp.domain.errors import AnsweringError, InvalidArguments, StillRunning
from openai_responses_mcp.domain.jsonrpc import JsonObject, Request
from openai_responses_mcp.domain.models import Answer, CallFailure, ObservedCall, ProgressListener, StartListener
from openai_responses_mcp.domain.ports import CallObserver, Logger, WallClock
from openai_responses_mcp.domain.usage import CallerLimits, OverLimit, UsageBook
from openai_responses_mcp.server.eras import CallingClient
from openai_responses_mcp.server.jsonrpc import result_message
from openai_responses_mcp.server.long_calls import UnfinishedAnswers, progress_token_of, reporting
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
"""Gives the reply to a call, failures included; what happens meanwhile goes out through the last argument."""


class Caller(NamedTuple):
    """`tasks` has what becomes of the calls that are answered with a task."""

    call: Call
    tasks: Tasks


class ToolCaller:
    def __init__(
        self,
        answering: AnswerQuestion,
        fetching: FetchAnswer,
        unfinished: UnfinishedAnswers,
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
        return reporting(token, send, self._clock, begins_at_once=not self._becomes_a_task(tool, client))

    def _becomes_a_task(self, tool: Tool, client: CallingClient) -> bool:
        """Whether the call will probably be answered with a task: the API may still refuse to run it in the background."""
        return client.takes_tasks and tool.name != RESULT_TOOL and self._answering.runs_in_background(tool.profile)

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
        self._log_arguments(tool, arguments)
        return arguments

    def _failure(self, tool: Tool, request: Request, client: CallingClient, error: AnsweringError) -> JsonObject:
        if client.era.returns_failures_as_results or self._rules.returns_failures_as_results:
            result = self._failures.as_result(tool, error, may_fetch=client.may_fetch)
            return result_message(request.id, client.era.result(result))
        return self._failures.as_error(request.id, tool, error, may_fetch=client.may_fetch)

    def _log_arguments(self, tool: Tool, arguments: dict[str, Any]) -> None:
        if not self._logger.is_debugging:
            return
        text = next((arguments.get(argument.name) for argument in tool.arguments if argument.is_required), None)
        length = len(text) if isinstance(text, str) else 0
        self._logger.debug("tools/call", name=tool.name, argsKeys=list(arguments), queryLen=length)
        unknown = unknown_arguments(tool, arguments)
        if unknown:
            self._logger.debug("ignored arguments", name=tool.name, argsKeys=unknown)


# How a client names the trace that its call belongs to.
_TRACE_KEYS = ("traceparent", "tracestate")


class ObservedCaller:
    def __init__(self, call: Call, observer: CallObserver) -> None:
        self._call = call
        self._observer = observer

    async def call(self, tool: Tool, request: Request, client: CallingClient, send: Send) -> JsonObject:
        seen = ObservedCall(tool.name, request.id, client.era.revision, _trace_of(request), client.caller)
        with self._observer.observed(seen) as failed:
            reply = await self._call(tool, request, client, send)
            failure = _failure_in(reply)
            if failure is not None:
                failed(failure)
            return reply


def _trace_of(request: Request) -> dict[str, str]:
    meta = request.params.get("_meta")
    named = {key: meta.get(key) for key in _TRACE_KEYS} if isinstance(meta, dict) else {}
    return {key: value for key, value in named.items() if isinstance(value, str)}


def _failure_in(reply: JsonObject) -> CallFailure | None:
    error = reply.get("error")
    if error is not None:
        return CallFailure(str(error["code"]), error["message"], error["code"])
    return CallFailure("tool_error") if reply["result"].get("isError") else None


class LimitedCaller:
    """A call over a limit gets a result, in every era, because a model reads results."""

    def __init__(self, call: Call, limits: CallerLimits, usage: UsageBook) -> None:
        self._call = call
        self._limits = limits
        self._usage = usage

    async def call(self, tool: Tool, request: Request, client: CallingClient, send: Send) -> JsonObject:
        begun = await self._usage.begin(client.caller, self._limits)
        if isinstance(begun, OverLimit):
            return result_message(request.id, client.era.result(failed_tool_result(begun.sentence)))
        tokens = 0
        try:
            reply = await self._call(tool, request, client, send)
            tokens = tokens_in(reply.get("result") or {})
            return reply
        finally:
            await self._usage.end(begun, tokens)


def caller_with(
    tool_caller: ToolCaller, tasks: Tasks, limits: CallerLimits, usage: UsageBook, observer: CallObserver | None
) -> Caller:
    """Only where there are limits, or something that observes, is anything put around the calls."""
    call: Call = tool_caller.call
    if any(limits):
        call = LimitedCaller(call, limits, usage).call
    if observer is not None:
        call = ObservedCaller(call, observer).call
    return Caller(call, tasks)
