"""Asking a person whether a call may run: in the client if the client can ask, else at the desk.

Every question is a request in the store, so the desk shows all of them and the log records each. The first decision
counts. Without a decision in time, with an unclear answer or a failing store, the call does not run.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial

from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.models import (
    ApprovalRecord,
    DecisionNews,
    HumanApprovalRequest,
    HumanDecision,
    Undecided,
)
from openai_responses_mcp.gate.approvals.standing import StandingApprovals, StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.call_table import HumanAnswer, Permit
from openai_responses_mcp.gate.clock import later
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.rules import Policy
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.gatekeeping import GuardSession
from openai_responses_mcp.guard.messages import ClientWays, JsonObject, JsonValue, progress_token_of
from openai_responses_mcp.guard.peers import AnsweredWithError, Peer, PeerGone
from openai_responses_mcp.guard.questions import (
    FormChoice,
    PendingQuestion,
    PendingQuestions,
    PersonAnswer,
    answer_in,
    form_for,
    short_id,
)

DEFAULT_WAIT_SECONDS = 300.0
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_BETWEEN_SIGNS = 5.0
QUESTION_KEY = "guard-approval"
READING_SECONDS = 0.5
"""An answer that comes sooner is a program's. Some clients without a person declare that they can ask, and decline."""

_TAKEN_BACK, _NOBODY = "the client cancelled the call", "nobody decided in time"
_GONE = "the client is gone"
_UNASKED = (
    "nobody was asked: the client answered by itself, faster than a person could read;"
    " start the guard with --ask desk to decide with openai-responses-mcp approvals"
)
_BY_CLIENT = "given by the client, faster than a person could read"

# The answers that allow more than this one call.
_TERMS: Mapping[FormChoice, StandingTerms] = {
    "allow_tool_for_session": StandingTerms(for_session=True),
    "allow_tool_for_good": StandingTerms(always=True),
    "allow_reads_for_good": StandingTerms(always=True, reads=True),
    "allow_call_for_good": StandingTerms(always=True, same_arguments=True),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a question. `reason` and `comment` are for a refusal, `changed` for arguments that the approver
    changed."""

    is_approved: bool
    reason: str = ""
    comment: str = ""
    changed: HumanAnswer | None = None


class Asking:
    def __init__(
        self,
        session: GuardSession,
        policy: Callable[[], Policy],
        approvals: ApprovalController,
        standing: StandingApprovals,
        client: Peer,
        ways: ClientWays,
        tell: Callable[[str], object],
        is_desk_open: Callable[[], Awaitable[bool]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        on_asked: Callable[[HumanApprovalRequest, str], object] = lambda request, expires_at: None,
        news: DecisionNews | None = None,
    ) -> None:
        self._session = session
        self._policy = policy
        self._approvals = approvals
        self._standing = standing
        self._client = client
        self._ways = ways
        self._tell = tell
        self._is_desk_open = is_desk_open
        self._news = news
        self._sleep = sleep
        self._monotonic = monotonic
        self._on_asked = on_asked
        self.questions = PendingQuestions()
        self._waiting: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._asked_since: dict[str, float] = {}
        self._working: set[asyncio.Task[None]] = set()

    async def ask(self, question: PendingQuestion) -> Verdict | JsonObject:
        """The decision, or the result that asks the client to repeat the call with an answer. Raises `AgentsError`."""
        asked_at = self._session.options.ask or self._policy().ask
        way = "desk" if asked_at == "desk" else self._ways.way_for(question.params)
        if way == "desk" and asked_at == "client":
            return Verdict(False, "a person is to be asked in the client, and this client cannot ask")
        session, intent, decision = self._session, question.intent, question.judgement.decision
        # A yes to the identical call that came after the client had given up on it.
        if await self._approvals.take_kept(session.run_id, decision, intent.call, intent.attempt, session.caller):
            return Verdict(True)
        request = await self._requested(question)
        self._waiting.add(request.approval_id)
        self._on_asked(request, later(request.created_at, self._wait_seconds))
        if way == "input_required":
            return self._come_again(request, question)
        return await self._wait_for(request, question, in_client=way == "elicitation")

    async def _wait_for(self, request: HumanApprovalRequest, question: PendingQuestion, *, in_client: bool) -> Verdict:
        short = short_id(request.approval_id)
        text = f"waiting for approval {short}…: openai-responses-mcp approvals show {short}"
        self._tell(f"{request.tool_name}: {text}")
        progress = asyncio.create_task(self._progress(question, text))
        try:
            async with asyncio.timeout(self._wait_seconds):
                return await self._decided(request, question, in_client)
        except TimeoutError:
            return await self._expired(request.approval_id)
        except asyncio.CancelledError:
            await asyncio.shield(self._withdraw(request.approval_id))
            raise
        finally:
            progress.cancel()
            self._waiting.discard(request.approval_id)

    async def _progress(self, question: PendingQuestion, text: str) -> None:
        """A client gives up on a call that is silent for too long."""
        began, wait_seconds = self._monotonic(), self._wait_seconds
        while (token := progress_token_of(question.params)) is not None:
            # At most one, so that the server may go on counting from there.
            waited = min((self._monotonic() - began) / wait_seconds, 1.0) if wait_seconds else 0.0
            params: JsonObject = {"progressToken": token, "progress": round(waited, 6), "message": text}
            question.channel.send(messages.notification("notifications/progress", params))
            await self._sleep(SECONDS_BETWEEN_SIGNS)

    async def _requested(self, question: PendingQuestion) -> HumanApprovalRequest:
        """A call that is cancelled meanwhile leaves no request behind: the store may have it already."""
        asking = self._approvals.create_approval_request(
            self._session.run_id,
            question.judgement.decision,
            call=question.intent.call,
            attempt=question.intent.attempt,
            wait_seconds=self._wait_seconds,
            caller=self._session.caller,
            reading=question.reading,
        )
        requested = asyncio.create_task(asking)
        try:
            return await asyncio.shield(requested)
        except asyncio.CancelledError:
            with suppress(AgentsError):
                await self._withdraw((await requested).approval_id)
            raise

    async def answered(self, question: PendingQuestion, responses: JsonObject) -> Verdict:
        """The client has repeated the call with its answer."""
        self._timers.pop(question.approval_id).cancel()
        answer = answer_in(responses.get(QUESTION_KEY), reads=bool(question.reading))
        is_quick = self._monotonic() - self._asked_since.pop(question.approval_id) < READING_SECONDS
        if is_quick and not answer.is_yes and await self._is_desk_open():
            request = (await self._approvals.get(question.approval_id)).request
            return await self._wait_for(request, question, in_client=False)
        self._waiting.discard(question.approval_id)
        refusal = await self._submitted(question.approval_id, answer, is_quick=is_quick)
        return refusal or await self._used_up(question.approval_id)

    async def end_session(self) -> None:
        """Withdraw the open questions, and end the approvals for this session."""
        for timer in self._timers.values():
            timer.cancel()
        left, self._waiting = list(self._waiting), set()
        for approval_id in left:
            await self._withdraw(approval_id, "the session is over")
        with suppress(AgentsError):
            await self._standing.end_session(self._session.run_id)

    # -----------------------------------------------------------------------------------------------------------------
    # Ways to ask

    @property
    def _wait_seconds(self) -> float:
        given = self._session.options.wait_seconds
        return given if given is not None else self._policy().wait_seconds or DEFAULT_WAIT_SECONDS

    async def _decided(self, request: HumanApprovalRequest, question: PendingQuestion, in_client: bool) -> Verdict:
        asked: set[asyncio.Task[Verdict | None]] = {asyncio.create_task(self._at_desk(request.approval_id))}
        if in_client:
            asked.add(asyncio.create_task(self._in_client(request, question)))
        try:
            done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            refusals = [refusal for task in done if (refusal := task.result()) is not None]
        finally:
            for task in asked:
                task.cancel()
            await asyncio.wait(asked)
        return refusals[0] if refusals else await self._used_up(request.approval_id)

    async def _in_client(self, request: HumanApprovalRequest, question: PendingQuestion) -> Verdict | None:
        """A refusal. None once the store has the decision."""
        began, reads = self._monotonic(), bool(question.reading)
        form = self._form(request, question)
        try:
            late = partial(self._answered_late, request.approval_id, began, reads)
            result = await self._client.ask("elicitation/create", form, question.channel, late)
            answer = answer_in(result, reads=reads)
        except AnsweredWithError as exc:
            self._tell(f"the client cannot ask ({exc}); from now on the desk is asked")
            self._ways.note_failure()
            return await self._at_desk(request.approval_id)
        except PeerGone:
            await self._withdraw(request.approval_id, _GONE)
            return Verdict(False, _GONE)
        is_quick = self._monotonic() - began < READING_SECONDS
        if is_quick and not answer.is_yes and await self._is_desk_open():
            return await self._at_desk(request.approval_id)
        return await self._submitted(request.approval_id, answer, is_quick=is_quick)

    def _form(self, request: HumanApprovalRequest, question: PendingQuestion) -> JsonObject:
        session, reads = self._session, bool(question.reading)
        return form_for(request, session.options.name, reads=reads, language=session.language)

    def _answered_late(self, approval_id: str, began: float, reads: bool, result: JsonValue) -> None:
        """Some clients give up on a call and leave its question open. A yes there counts like one at the desk."""

        async def submit_if_open() -> None:
            with suppress(AgentsError):
                await self._submit(approval_id, answer)

        answer = answer_in(result, reads=reads)
        if answer.is_yes and self._monotonic() - began >= READING_SECONDS:
            self._in_background(submit_if_open())

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _at_desk(self, approval_id: str) -> Verdict | None:
        with nullcontext() if self._news is None else self._news.about(approval_id) as rung:
            while (await self._approvals.get(approval_id)).request.status == "pending":
                await (rung or self._sleep)(SECONDS_BETWEEN_LOOKS)
        return None

    def _come_again(self, request: HumanApprovalRequest, question: PendingQuestion) -> JsonObject:
        state = self.questions.put(replace(question, approval_id=request.approval_id))
        self._asked_since[request.approval_id] = self._monotonic()
        loop = asyncio.get_running_loop()
        self._timers[request.approval_id] = loop.call_later(
            self._wait_seconds, self._too_late, state, request.approval_id
        )
        asked = {
            "method": "elicitation/create",
            "params": {"mode": "form", **self._form(request, question)},
        }
        return {"resultType": "input_required", "inputRequests": {QUESTION_KEY: asked}, "requestState": state}

    def _too_late(self, state: str, approval_id: str) -> None:
        self.questions.forget(state)
        del self._timers[approval_id], self._asked_since[approval_id]
        self._waiting.discard(approval_id)
        self._in_background(self._abandon(approval_id, "expired", _NOBODY))

    # -----------------------------------------------------------------------------------------------------------------
    # Decisions

    async def _submitted(self, approval_id: str, answer: PersonAnswer, *, is_quick: bool) -> Verdict | None:
        """A refusal if the person in the client said no. A yes counts only once the store has it.

        A quick answer is a program's: its yes counts for this one call, and its no is not recorded as a denial by a person.
        """
        if is_quick and not answer.is_yes:
            await self._abandon(approval_id, "unasked", _UNASKED)
            return Verdict(False, _UNASKED)
        with suppress(AgentsError):
            await self._submit(approval_id, PersonAnswer("allow_once", _BY_CLIENT) if is_quick else answer)
        if answer.is_yes:
            return None
        await self._drop(approval_id)
        return Verdict(False, "denied in the client", answer.comment)

    async def _submit(self, approval_id: str, answer: PersonAnswer) -> None:
        terms = _TERMS.get(answer.choice)
        if terms is None:
            decision: HumanDecision = "approve" if answer.is_yes else "deny"
            await self._approvals.submit_decision(approval_id, decision, answer.comment, who=self._session.caller)
        else:
            *_, released = await approve_from_now_on(
                self._approvals,
                self._standing,
                approval_id,
                terms=terms,
                comment=answer.comment,
                who=self._session.caller,
            )
            if released:
                self._tell(f"waiting calls that are allowed with it and run now: {released}")

    async def _used_up(self, approval_id: str) -> Verdict:
        """The decision in the store. An approval is used up by this."""
        record = await self._approvals.get(approval_id)
        status = record.request.status
        # It is kept if the desk took this guard for gone, for example after the machine slept.
        if status in ("approved", "kept"):
            await self._approvals.consume(None, record)
            return Verdict(True, changed=_changes_in(record))
        if status == "denied":
            return Verdict(False, "denied by a human", record.request.comment or "")
        return Verdict(
            False, "the request has expired" if status == "expired" else "the decision could not be recorded"
        )

    async def _expired(self, approval_id: str) -> Verdict:
        """A decision at the last moment still counts."""
        await self._close(approval_id, "expired", _NOBODY)
        found = await self._used_up(approval_id)
        return found if found.is_approved else Verdict(False, f"nobody decided within {self._wait_seconds:g} s")

    async def _abandon(self, approval_id: str, status: Undecided, comment: str) -> None:
        """Stop waiting for a decision."""
        await self._close(approval_id, status, comment)
        await self._drop(approval_id)

    async def _withdraw(self, approval_id: str, comment: str = _TAKEN_BACK) -> None:
        """The client has given up on the call. A yes that came in the same moment is kept for when it calls again."""
        await self._close(approval_id, "withdrawn", comment)
        with suppress(AgentsError):
            record = await self._approvals.get(approval_id)
            if record.request.status == "approved" and record.request.changed_arguments is None:
                await self._approvals.keep(record, record.request.comment or "")
            elif record.request.status == "approved":
                await self._used_up(approval_id)

    async def _drop(self, approval_id: str) -> None:
        """A yes at the desk that came too late is used up. Left over, it would be asked for again when it expires."""
        with suppress(AgentsError):
            await self._used_up(approval_id)

    async def _close(self, approval_id: str, status: Undecided, comment: str) -> None:
        with suppress(AgentsError):
            await self._approvals.close_undecided(approval_id, status, comment)


def _changes_in(record: ApprovalRecord) -> HumanAnswer | None:
    request = record.request
    if request.changed_arguments is None:
        return None
    permit = Permit(request.tool_call_id, record.arguments_hash, record.definition_hash)
    return HumanAnswer(permit, request.reasons, record.attempt, None, request.changed_arguments, request.arguments)
