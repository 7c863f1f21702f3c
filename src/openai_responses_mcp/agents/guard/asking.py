"""Asking a person whether a call may run: in the client if the client can ask, else at the desk.

Every question is a request in the store, so the desk shows all of them and the log tells of each. The first decision
counts. If nobody decides in time, the answer is unclear or the store fails, the call does not run.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest, Undecided
from openai_responses_mcp.agents.approvals.ports import ApprovalRecord
from openai_responses_mcp.agents.approvals.standing import StandingApprovals, StandingTerms, approve_from_now_on
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.call_table import HumanAnswer, Permit
from openai_responses_mcp.agents.guard import messages
from openai_responses_mcp.agents.guard.client_ways import ClientWays, Way, progress_token_of
from openai_responses_mcp.agents.guard.messages import JsonObject, JsonValue
from openai_responses_mcp.agents.guard.peers import AnsweredWithError, Peer, PeerGone
from openai_responses_mcp.agents.guard.pending_questions import PendingQuestion, PendingQuestions
from openai_responses_mcp.agents.guard.ports import Notices
from openai_responses_mcp.agents.guard.questions import Answer, Choice, answer_in, form_for, short_id
from openai_responses_mcp.agents.policy.rules import Policy

DEFAULT_WAIT_SECONDS = 300.0
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_BETWEEN_SIGNS = 5.0
QUESTION_KEY = "guard-approval"

_TAKEN_BACK, _NOBODY = "the client took the call back", "nobody decided in time"
_REFUSALS: Mapping[str, str] = {"denied": "denied by a human", "expired": "the request has expired"}

# The answers that allow more than this one call.
_TERMS: Mapping[Choice, StandingTerms] = {
    "allow_tool_for_session": StandingTerms(for_session=True),
    "allow_call_for_good": StandingTerms(always=True, same_arguments=True),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a question. `changed` is there where the approver has changed the arguments."""

    is_approved: bool
    reason: str = ""
    comment: str = ""
    changed: HumanAnswer | None = None


@dataclass(frozen=True, slots=True)
class AskingRules:
    """`wait_seconds` of the command line goes before the policy file's."""

    server_name: str
    run_id: str
    wait_seconds: float | None = None


class Asking:
    def __init__(
        self,
        rules: AskingRules,
        policy: Callable[[], Policy],
        approvals: ApprovalController,
        standing: StandingApprovals,
        client: Peer,
        ways: ClientWays,
        notices: Notices,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rules = rules
        self._policy = policy
        self._approvals = approvals
        self._standing = standing
        self._client = client
        self._ways = ways
        self._notices = notices
        self._sleep = sleep
        self.questions = PendingQuestions()
        self._waiting: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._expiring: set[asyncio.Task[None]] = set()

    async def ask(self, question: PendingQuestion) -> Verdict | JsonObject:
        """The decision, or the result that asks the client to repeat the call with an answer. Raises `AgentsError`."""
        request = await self._requested(question)
        self._waiting.add(request.approval_id)
        way = self._way(question.params)
        if way == "input_required":
            return self._come_again(request, question)
        try:
            async with asyncio.timeout(self._wait_seconds), self._signs_of_life(question.params, request):
                return await self._decided(request, way)
        except TimeoutError:
            return await self._expired(request.approval_id)
        except asyncio.CancelledError:
            await asyncio.shield(self._abandon(request.approval_id, "withdrawn", _TAKEN_BACK))
            raise
        finally:
            self._waiting.discard(request.approval_id)

    async def _requested(self, question: PendingQuestion) -> HumanApprovalRequest:
        """A call that is taken back meanwhile leaves no request behind: the store may have it already."""
        asking = self._approvals.create_approval_request(
            self._rules.run_id, question.judgement.decision, call=question.call, attempt=question.attempt
        )
        requested = asyncio.create_task(asking)
        try:
            return await asyncio.shield(requested)
        except asyncio.CancelledError:
            with suppress(AgentsError):
                await self._abandon((await requested).approval_id, "withdrawn", _TAKEN_BACK)
            raise

    async def answered(self, question: PendingQuestion, responses: JsonObject) -> Verdict:
        """The client has repeated the call with its answer."""
        self._timers.pop(question.approval_id).cancel()
        self._waiting.discard(question.approval_id)
        refusal = await self._submitted(question.approval_id, answer_in(responses.get(QUESTION_KEY)))
        return refusal or await self._used_up(question.approval_id)

    async def end_session(self) -> None:
        """Nobody has to answer any more, and what was allowed for the session ends."""
        for timer in self._timers.values():
            timer.cancel()
        left, self._waiting = list(self._waiting), set()
        for approval_id in left:
            await self._abandon(approval_id, "withdrawn", "the session is over")
        with suppress(AgentsError):
            await self._standing.end_session(self._rules.run_id)

    # -----------------------------------------------------------------------------------------------------------------
    # Ways to ask

    def _way(self, params: JsonObject) -> Way:
        return "desk" if self._policy().ask == "desk" else self._ways.way_for(params)

    @property
    def _wait_seconds(self) -> float:
        given = self._rules.wait_seconds
        return given if given is not None else self._policy().wait_seconds or DEFAULT_WAIT_SECONDS

    async def _decided(self, request: HumanApprovalRequest, way: Way) -> Verdict:
        asked: set[asyncio.Task[Verdict | None]] = {asyncio.create_task(self._at_desk(request.approval_id))}
        if way == "elicitation":
            asked.add(asyncio.create_task(self._in_client(request)))
        try:
            done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            refusals = [refusal for task in done if (refusal := task.result()) is not None]
        finally:
            for task in asked:
                task.cancel()
            await asyncio.wait(asked)
        return refusals[0] if refusals else await self._used_up(request.approval_id)

    async def _in_client(self, request: HumanApprovalRequest) -> Verdict | None:
        try:
            answer = answer_in(await self._client.ask("elicitation/create", form_for(request, self._rules.server_name)))
        except AnsweredWithError as exc:
            answer = Answer("deny", f"the client could not ask ({exc})")
        except PeerGone:
            answer = Answer("deny", "the client is gone")
        return await self._submitted(request.approval_id, answer)

    async def _at_desk(self, approval_id: str) -> Verdict | None:
        while (await self._approvals.get(approval_id)).request.status == "pending":
            await self._sleep(SECONDS_BETWEEN_LOOKS)
        return None

    def _come_again(self, request: HumanApprovalRequest, question: PendingQuestion) -> JsonObject:
        state = self.questions.put(replace(question, approval_id=request.approval_id))
        loop = asyncio.get_running_loop()
        self._timers[request.approval_id] = loop.call_later(
            self._wait_seconds, self._too_late, state, request.approval_id
        )
        asked = {
            "method": "elicitation/create",
            "params": {"mode": "form", **form_for(request, self._rules.server_name)},
        }
        return {"resultType": "input_required", "inputRequests": {QUESTION_KEY: asked}, "requestState": state}

    def _too_late(self, state: str, approval_id: str) -> None:
        self.questions.forget(state)
        del self._timers[approval_id]
        task = asyncio.create_task(self._expire(approval_id))
        self._expiring.add(task)
        task.add_done_callback(self._expiring.discard)

    # -----------------------------------------------------------------------------------------------------------------
    # Decisions

    async def _submitted(self, approval_id: str, answer: Answer) -> Verdict | None:
        """A refusal if the person in the client said no. A yes counts only once the store has it."""
        with suppress(AgentsError):
            await self._submit(approval_id, answer)
        if answer.is_yes:
            return None
        await self._drop(approval_id)
        return Verdict(False, "denied in the client", answer.comment)

    async def _submit(self, approval_id: str, answer: Answer) -> None:
        terms = _TERMS.get(answer.choice)
        if terms is None:
            await self._approvals.submit_decision(approval_id, "approve" if answer.is_yes else "deny", answer.comment)
        else:
            await approve_from_now_on(self._approvals, self._standing, approval_id, terms=terms, comment=answer.comment)

    async def _used_up(self, approval_id: str) -> Verdict:
        """What the store says. This uses an approval up."""
        record = await self._approvals.get(approval_id)
        status, comment = record.request.status, record.request.comment or ""
        if status == "approved":
            await self._approvals.consume(None, record)
            return Verdict(True, comment=comment, changed=_changes_in(record))
        return Verdict(False, _REFUSALS.get(status, "the decision could not be recorded"), comment)

    async def _expired(self, approval_id: str) -> Verdict:
        """The time is over. Somebody may have decided in the last moment."""
        await self._close(approval_id, "expired", _NOBODY)
        found = await self._used_up(approval_id)
        return found if found.is_approved else Verdict(False, f"nobody decided within {self._wait_seconds:g} s")

    async def _expire(self, approval_id: str) -> None:
        self._waiting.discard(approval_id)
        await self._abandon(approval_id, "expired", _NOBODY)

    async def _abandon(self, approval_id: str, status: Undecided, comment: str) -> None:
        """Nobody waits for the decision any more."""
        await self._close(approval_id, status, comment)
        await self._drop(approval_id)

    async def _drop(self, approval_id: str) -> None:
        """A yes at the desk that came too late is used up. Left over, it would be asked for again when it expires."""
        with suppress(AgentsError):
            await self._used_up(approval_id)

    async def _close(self, approval_id: str, status: Undecided, comment: str) -> None:
        with suppress(AgentsError):
            await self._approvals.close_undecided(approval_id, status, comment)

    # -----------------------------------------------------------------------------------------------------------------
    # Signs of life

    @asynccontextmanager
    async def _signs_of_life(self, params: JsonObject, request: HumanApprovalRequest) -> AsyncIterator[None]:
        """A client gives up on a call that is silent for too long."""
        short = short_id(request.approval_id)
        text = f"waiting for approval {short}…: agents approvals show {short}"
        self._notices.tell(f"{request.tool_name}: {text}")
        token = progress_token_of(params)
        signs = None if token is None else asyncio.create_task(self._progress(token, text))
        try:
            yield
        finally:
            if signs is not None:
                signs.cancel()

    async def _progress(self, token: JsonValue, text: str) -> None:
        began, wait_seconds = time.monotonic(), self._wait_seconds
        while True:
            # At most one, so that the server may go on counting from there.
            waited = min((time.monotonic() - began) / wait_seconds, 1.0) if wait_seconds else 0.0
            told = {"progressToken": token, "progress": round(waited, 6), "message": text}
            self._client.send(messages.notification("notifications/progress", told))
            await self._sleep(SECONDS_BETWEEN_SIGNS)


def _changes_in(record: ApprovalRecord) -> HumanAnswer | None:
    request = record.request
    if request.changed_arguments is None:
        return None
    permit = Permit(request.tool_call_id, record.arguments_hash, record.definition_hash)
    return HumanAnswer(permit, request.reason, record.attempt, None, request.changed_arguments, request.arguments)
