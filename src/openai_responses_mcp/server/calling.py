"""One `tools/call`: arguments to question, question to answer, answer or failure to what the client is sent."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.domain.answering import AnswerQuestion
from openai_responses_mcp.domain.errors import AnsweringError, GatewayError, InvalidArguments
from openai_responses_mcp.domain.models import Answer, Question
from openai_responses_mcp.domain.ports import Clock, Logger
from openai_responses_mcp.server.eras import Era
from openai_responses_mcp.server.jsonrpc import JsonObject, Request, code_of, error_message, result_message
from openai_responses_mcp.server.progress import progress_token_of, reporting
from openai_responses_mcp.server.tool_results import failed_tool_result, tool_result
from openai_responses_mcp.server.tools import Tool, read_question, unknown_arguments

LONGEST_FAILURE_MESSAGE = 400
_LONGEST_MASKED = 4_000


@dataclass(frozen=True, slots=True)
class CallingRules:
    """What the configuration says about calls; the defaults are those of the settings."""

    returns_failures_as_results: bool
    shows_response_id: bool
    keeps_responses: bool


class ToolCaller:
    def __init__(
        self,
        answering: AnswerQuestion,
        clock: Clock,
        logger: Logger,
        mask: Callable[[str], str],
        rules: CallingRules,
    ) -> None:
        self._answering = answering
        self._clock = clock
        self._logger = logger
        self._mask = mask
        self._rules = rules

    async def call(self, tool: Tool, request: Request, era: Era, send: Callable[[JsonObject], None]) -> JsonObject:
        """The reply to the call, failures included; what happens meanwhile goes out through `send`."""
        try:
            answer = await self._answer(self._question(tool, request), request, send)
        except AnsweringError as exc:
            return self._failure(tool, request, era, exc)
        result = tool_result(tool, answer, shows_response_id=self._rules.shows_response_id)
        return result_message(request.id, era.result(result))

    def _question(self, tool: Tool, request: Request) -> Question:
        arguments = request.params.get("arguments")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise InvalidArguments("arguments must be an object")
        self._log_arguments(tool, arguments)
        return read_question(tool, arguments, keeps_responses=self._rules.keeps_responses)

    async def _answer(self, question: Question, request: Request, send: Callable[[JsonObject], None]) -> Answer:
        token = progress_token_of(request.params)
        if token is None:
            return await self._answering.answer(question)
        async with reporting(token, send, self._clock) as listener:
            return await self._answering.answer(question, listener)

    def _failure(self, tool: Tool, request: Request, era: Era, error: AnsweringError) -> JsonObject:
        # Masked before it is cut, so that no half of a key is left, but not all of a text without end: that takes time.
        message = self._mask(str(error)[:_LONGEST_MASKED])[:LONGEST_FAILURE_MESSAGE]
        title = f"{tool.name}: invalid arguments" if isinstance(error, InvalidArguments) else "answer failed"
        if era.returns_failures_as_results or self._rules.returns_failures_as_results:
            return result_message(request.id, era.result(failed_tool_result(f"{title}: {message}")))
        data = {"reason": message} if isinstance(error, InvalidArguments) else self._failure_data(message, error)
        return error_message(request.id, code_of(error), title, data)

    def _failure_data(self, message: str, error: AnsweringError) -> JsonObject:
        data: JsonObject = {"message": message}
        if isinstance(error, GatewayError) and error.retries:
            data["retries"] = error.retries
        if self._logger.is_debugging:
            for name, fact in _facts_of(error).items():
                data[name] = self._mask(fact) if isinstance(fact, str) else fact
        return data

    def _log_arguments(self, tool: Tool, arguments: dict[str, Any]) -> None:
        if not self._logger.is_debugging:
            return
        text = next((arguments.get(argument.name) for argument in tool.arguments if argument.is_required), None)
        length = len(text) if isinstance(text, str) else 0
        self._logger.debug("tools/call", name=tool.name, argsKeys=list(arguments), queryLen=length)
        unknown = unknown_arguments(tool, arguments)
        if unknown:
            self._logger.debug("ignored arguments", name=tool.name, argsKeys=unknown)


def _facts_of(error: AnsweringError) -> JsonObject:
    if not isinstance(error, GatewayError):
        return {"name": type(error).__name__}
    facts = {"status": error.status or error.code, "type": error.kind, "name": error.name}
    return {name: fact for name, fact in facts.items() if fact is not None}
