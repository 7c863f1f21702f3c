"""A dispatcher wired to fakes, and the messages that a client sends it."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from openai_responses_mcp.domain.answering import AnsweringRules, AnswerQuestion, FetchAnswer
from openai_responses_mcp.domain.cancellation import CallsInFlight
from openai_responses_mcp.domain.masking import SecretMask
from openai_responses_mcp.domain.ports import CallObserver, FramingFault, LLMGateway, Logger, Received, WallClock
from openai_responses_mcp.domain.usage import CallerLimits, ProcessUsage
from openai_responses_mcp.server.calling import Caller, CallingRules, ToolCaller, UnfinishedAnswers, caller_with
from openai_responses_mcp.server.dispatch import Dispatcher
from openai_responses_mcp.server.eras import HandOver
from openai_responses_mcp.server.tasks import TaskIds, Tasks
from openai_responses_mcp.server.tool_results import Failures
from tests.fakes import WAIT_SECONDS, FakeClock, FakeGateway, FakeLogger, FakeTransport
from tests.rules import ANSWERING, CALLING

SECRET = "sk-planted-1234567890"
MASK = SecretMask([SECRET])
NO_LIMITS = CallerLimits()
ALL_TOOLS = ("answer", "answer_detailed", "answer_quick", "iris")

REVISION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
ENVELOPE: dict[str, Any] = {REVISION: "2026-07-28", CAPABILITIES: {}}


def request(request_id: Any, method: str, params: Any = None) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def tool_call(request_id: Any, query: str = "Why?", *, tool: str = "answer", meta: Any = None) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "arguments": {"query": query}}
    return request(request_id, "tools/call", params if meta is None else {**params, "_meta": meta})


def cancel(request_id: Any, **more: Any) -> dict[str, Any]:
    params = {"requestId": request_id, **more}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def wired_caller(
    gateway: LLMGateway,
    clock: WallClock,
    logger: Logger,
    rules: CallingRules = CALLING,
    answering: AnsweringRules = ANSWERING,
    mask: Callable[[str], str] = MASK,
    limits: CallerLimits = NO_LIMITS,
    observer: CallObserver | None = None,
) -> Caller:
    """Wired as in the container; `SECRET` signs the task ids."""
    fetching = FetchAnswer(gateway, clock, answering)
    failures = Failures(logger, mask)
    tasks = Tasks(gateway, fetching, clock, TaskIds(SECRET), failures, shows_response_id=rules.shows_response_id)
    tool_caller = ToolCaller(
        AnswerQuestion(gateway, clock, logger, answering),
        fetching,
        UnfinishedAnswers(gateway, clock),
        tasks,
        clock,
        logger,
        failures,
        rules,
    )
    return caller_with(tool_caller, tasks, limits, ProcessUsage(clock), observer)


class Wired:
    def __init__(
        self,
        *,
        gateway: LLMGateway | None = None,
        tools: tuple[str, ...] = ALL_TOOLS,
        rules: CallingRules = CALLING,
        answering: AnsweringRules = ANSWERING,
        is_debugging: bool = False,
        hand_over: HandOver = None,
        limits: CallerLimits = NO_LIMITS,
        observer: CallObserver | None = None,
    ) -> None:
        self.gateway = FakeGateway()
        self.clock = FakeClock()
        self.logger = FakeLogger(is_debugging=is_debugging)
        self.transport = FakeTransport()
        self.caller = wired_caller(
            gateway or self.gateway, self.clock, self.logger, rules, answering, limits=limits, observer=observer
        )
        calls = CallsInFlight(self.logger)
        self.dispatcher = Dispatcher(calls, self.logger, tools, load_caller=self._load, hand_over=hand_over)

    async def _load(self) -> Caller:
        return self.caller

    def handle(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.handle_body(json.dumps(message).encode())

    def handle_body(self, body: bytes | FramingFault) -> None:
        self.dispatcher.handle(Received(body, self.transport))

    async def drained(self) -> list[Any]:
        """Everything sent, once nothing is in flight."""
        async with asyncio.timeout(WAIT_SECONDS):
            await self.dispatcher.drain()
        return self.transport.replies()

    async def reply_to(self, message: dict[str, Any]) -> Any:
        """Wait for the one reply to a message."""
        before = len(self.transport.sent)
        self.handle(message)
        replies = (await self.drained())[before:]
        assert len(replies) == 1
        return replies[0]
