"""Tasks, for clients that know the extension: the client gets an id instead of an answer, and polls it.

Nothing is stored here. The id names the response at the API, and the API knows its state.
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from openai_responses_mcp.domain.answering import FetchAnswer
from openai_responses_mcp.domain.errors import (
    PASSING_TROUBLE,
    AnsweringError,
    AnswerWithheld,
    ResponseCancelled,
    ResponseLost,
)
from openai_responses_mcp.domain.jsonrpc import INVALID_PARAMS, JsonObject, Request
from openai_responses_mcp.domain.models import Progress
from openai_responses_mcp.domain.ports import LLMGateway, WallClock
from openai_responses_mcp.server.eras import Era
from openai_responses_mcp.server.jsonrpc import ANSWER_FAILED, error_message, result_message
from openai_responses_mcp.server.tool_results import Failures, tool_result
from openai_responses_mcp.server.tools import TOOLS, Tool

LONGEST_ID = 512
_PREFIX = "task_"
_PURPOSE = b"openai-responses-mcp: ids of tasks, version 1"
_SIGNATURE_BYTES = 16


class TaskFacts(NamedTuple):
    """What an id contains. The domains are None if there was no room for them; then the API is asked."""

    response_id: str
    tool: str
    created_ms: int
    domains: tuple[str, ...] | None = ()


class NotATask(ValueError):
    """The id was not made by this server, or not with this API key; `str(error)` says which."""


class TaskIds:
    """Ids that contain everything needed to continue a task.

    They are signed with a key derived from the API key. So none can be forged, and every server with the same API key
    accepts them.
    """

    def __init__(self, api_key: str) -> None:
        # A variable may contain bytes that are not text.
        self._key = hmac.digest(api_key.strip().encode("utf-8", "surrogateescape"), _PURPOSE, hashlib.sha256)

    def maybe_made(self, facts: TaskFacts) -> str | None:
        """The id; None if it would be too long even without the domains."""
        for shorter in (facts, facts._replace(domains=None)):
            task_id = self._signed(json.dumps(shorter, separators=(",", ":")).encode())
            if len(task_id) <= LONGEST_ID:
                return task_id
        return None

    def read(self, task_id: str) -> TaskFacts:
        """Raises `NotATask`."""
        text = task_id.removeprefix(_PREFIX)
        try:
            raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except ValueError:
            raw = b""
        if text == task_id or len(task_id) > LONGEST_ID or len(raw) <= _SIGNATURE_BYTES:
            raise NotATask("no task of this server has such an id")
        signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        # The same bytes can be encoded in several ways; only ours counts.
        if not hmac.compare_digest(signature, self._signature(payload)) or self._signed(payload) != task_id:
            raise NotATask("its id was changed, or made with another API key")
        response_id, tool, created_ms, domains = json.loads(payload)
        return TaskFacts(response_id, tool, created_ms, None if domains is None else tuple(domains))

    def _signed(self, payload: bytes) -> str:
        return _PREFIX + urlsafe_b64encode(self._signature(payload) + payload).decode().rstrip("=")

    def _signature(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, hashlib.sha256)[:_SIGNATURE_BYTES]


# As long as the API keeps a response.
TTL = timedelta(days=30)
POLL_INTERVAL_MS = 5_000


class Tasks:
    def __init__(
        self,
        gateway: LLMGateway,
        fetching: FetchAnswer,
        clock: WallClock,
        ids: TaskIds,
        failures: Failures,
        *,
        shows_response_id: bool,
    ) -> None:
        self._gateway = gateway
        self._fetching = fetching
        self._clock = clock
        self._ids = ids
        self._failures = failures
        self._shows_response_id = shows_response_id

    def maybe_created(self, tool: Tool, domains: tuple[str, ...], response_id: str) -> JsonObject | None:
        """The task that a call returns instead of its result; None if its id would be too long."""
        now_ms = self._now_ms()
        task_id = self._ids.maybe_made(TaskFacts(response_id, tool.name, now_ms, domains))
        if task_id is None:
            return None
        state = {"status": "working", "statusMessage": "The research has begun"}
        return {"resultType": "task", **_task(task_id, now_ms, now_ms), **state}

    async def handle(self, request: Request, era: Era) -> JsonObject:
        """The reply to `tasks/get`, `tasks/cancel` or `tasks/update`."""
        task_id = request.params.get("taskId")
        if not isinstance(task_id, str):
            return error_message(request.id, INVALID_PARAMS, "taskId must be a string")
        try:
            facts = self._ids.read(task_id)
        except NotATask as exc:
            return error_message(request.id, INVALID_PARAMS, f"Unknown task: {exc}")
        payload: JsonObject = {}  # Also for tasks/update: no task ever waits for input.
        try:
            if request.method == "tasks/get":
                state = await self._state(facts, era)
                payload = {**_task(task_id, facts.created_ms, self._now_ms()), **state}
            elif request.method == "tasks/cancel":
                await self._gateway.cancel(facts.response_id)
        except ResponseLost:
            age = timedelta(milliseconds=self._now_ms() - facts.created_ms)
            reason = f"it keeps a response for {TTL.days} days" if age >= TTL else "it was deleted there"
            message = f"The task is gone: the API no longer has its response ({reason})"
            return error_message(request.id, INVALID_PARAMS, message)
        except AnsweringError as exc:
            return error_message(request.id, ANSWER_FAILED, f"{request.method} failed", self._failures.data(exc))
        return result_message(request.id, era.result(payload))

    async def _state(self, facts: TaskFacts, era: Era) -> JsonObject:
        tool = TOOLS.get(facts.tool, TOOLS["answer"])
        try:
            found = await self._fetching.look(facts.response_id, facts.domains)
        except ResponseCancelled as exc:
            return {"status": "cancelled", "statusMessage": self._failures.message(exc)}
        except AnswerWithheld as exc:
            return {"status": "completed", "result": era.result(self._failures.as_result(tool, exc))}
        except PASSING_TROUBLE as exc:
            return {
                "status": "working",
                "statusMessage": f"The API cannot say right now: {self._failures.message(exc)}",
            }
        if isinstance(found, Progress):
            return {"status": "working", "statusMessage": found.message}
        result = tool_result(tool, found, shows_response_id=self._shows_response_id)
        return {"status": "completed", "result": era.result(result)}

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


def _task(task_id: str, created_ms: int, updated_ms: int) -> JsonObject:
    return {
        "taskId": task_id,
        "createdAt": _iso(created_ms),
        "lastUpdatedAt": _iso(updated_ms),
        "ttlMs": TTL // timedelta(milliseconds=1),
        "pollIntervalMs": POLL_INTERVAL_MS,
    }


def _iso(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
