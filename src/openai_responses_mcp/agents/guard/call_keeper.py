"""The keeper of calls: every `tools/call` is decided here, and passed on, refused, or asked about.

A call passes with its decision and its start in the log before it leaves. What was approved by a person is sent from the
seal: the arguments as they were shown, in canonical form. Whatever goes wrong on the way is a refusal.
"""

import asyncio
import itertools
import json
from dataclasses import replace

from openai_responses_mcp.agents.audit.log import AuditEntry
from openai_responses_mcp.agents.calls import PlannedCall, ToolDescription
from openai_responses_mcp.agents.checks import LONGEST_ID
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.call_table import HumanAnswer
from openai_responses_mcp.agents.gate.changing import changed_call
from openai_responses_mcp.agents.guard import messages
from openai_responses_mcp.agents.guard.asking import Asking, Verdict
from openai_responses_mcp.agents.guard.continuing import ANSWERS, ContinuedCalls, Underway
from openai_responses_mcp.agents.guard.definitions import Definitions, UnknownTool
from openai_responses_mcp.agents.guard.gatekeeping import Gatekeeper, GuardSession, Judgement
from openai_responses_mcp.agents.guard.messages import JsonObject, Reply, object_in
from openai_responses_mcp.agents.guard.peers import Opened, Peer
from openai_responses_mcp.agents.guard.pending_questions import NotThisCall, PendingQuestion
from openai_responses_mcp.agents.guard.recording import Records
from openai_responses_mcp.agents.guard.replying import Replying
from openai_responses_mcp.agents.secrets.hashing import canonical
from openai_responses_mcp.agents.secrets.masking import Masking

_TAKEN_BACK = "taken back before it was sent"


class _Unusable(Exception):
    """The call itself makes no sense."""


class CallKeeper:
    def __init__(
        self,
        session: GuardSession,
        client: Peer,
        server: Peer,
        definitions: Definitions,
        gatekeeper: Gatekeeper,
        records: Records,
        asking: Asking,
        masking: Masking,
    ) -> None:
        self._session = session
        self._server = server
        self._reply = Replying(client, server)
        self._definitions = definitions
        self._gatekeeper = gatekeeper
        self._records = records
        self._asking = asking
        self._masking = masking
        self._numbers = itertools.count(1)
        self._underway: dict[Opened, Underway] = {}
        self._continued = ContinuedCalls()

    # -----------------------------------------------------------------------------------------------------------------
    # Deciding

    async def keep(self, opened: Opened) -> None:
        params = opened.request.params
        try:
            name, args = _name_and_arguments(params)
            if await self._is_answer(opened):
                return
            tool = await self._definitions.find(name, params)
            _check_names(args, tool)
        except (_Unusable, UnknownTool, AgentsError) as exc:
            await self._cannot_decide(opened, exc)
        else:
            await self._decide(opened, tool, args)

    async def _cannot_decide(self, opened: Opened, failure: Exception) -> None:
        if isinstance(failure, AgentsError):
            tool = ToolDescription(self._full_name(opened), "mcp")
            call = PlannedCall(self._next_id(), tool, object_in(opened.request.params.get("arguments")))
            judgement = self._gatekeeper.refused(call, str(failure))
            if self._session.is_observing:
                await self._observe(opened, call, judgement)
            else:
                self._refuse(opened, call, judgement)
        elif self._session.is_observing:
            self._server.release(opened, opened.request.wire)
        else:
            self._reply.error(opened, f"Unknown tool: {failure}" if isinstance(failure, UnknownTool) else str(failure))

    async def _decide(
        self, opened: Opened, tool: ToolDescription, args: JsonObject, *, is_second_look: bool = False
    ) -> None:
        continued = self._continued.take(opened.request.params, tool)
        call = continued.call if continued else PlannedCall(self._next_id(), tool, args)
        async with self._gatekeeper.turn():
            judgement = await self._gatekeeper.judged(call)
            if judgement.says == "deny" and not self._session.is_observing:
                self._refuse(opened, call, judgement)
            elif continued is not None:
                self._go_on(opened, continued)
            elif self._session.is_observing:
                await self._observe(opened, call, judgement)
            elif judgement.says == "allow":
                await self._start(opened, Underway(call), opened.request.wire, judgement.entry)
        if judgement.says == "needs_human" and continued is None and not self._session.is_observing:
            await self._look_and_ask(opened, call, judgement, is_second_look=is_second_look)

    def _refuse(self, opened: Opened, call: PlannedCall, judgement: Judgement) -> None:
        self._records.write_behind(judgement.entry)
        self._reply.refusal(opened, call.tool.name, self._masking.text(judgement.decision.reason))

    async def _observe(self, opened: Opened, call: PlannedCall, judgement: Judgement) -> None:
        """Everything passes, also what cannot be counted or recorded."""
        passed = self._gatekeeper.let_pass(call, judgement.decision.risk_level)
        started = self._gatekeeper.about(call, "started", "started")
        self._records.write_behind(replace(judgement.entry, event="observed"), passed, started)
        try:
            await self._gatekeeper.spend()
        except AgentsError as exc:
            self._records.write_behind(self._gatekeeper.about(call, "uncounted", "unknown", str(exc)))
        self._pass(opened, Underway(call), opened.request.wire)

    # -----------------------------------------------------------------------------------------------------------------
    # Asking

    async def _look_and_ask(
        self, opened: Opened, call: PlannedCall, judgement: Judgement, *, is_second_look: bool
    ) -> None:
        """A person decides on the tool as it is now, not as it was when somebody last listed it."""
        params = opened.request.params
        try:
            tool = (
                call.tool
                if is_second_look
                else await self._definitions.find(str(params["name"]), params, is_fresh=True)
            )
        except (AgentsError, UnknownTool) as exc:
            self._reply.refusal(opened, call.tool.name, f"nobody could be asked: {exc}")
            return
        if tool.definition_hash == call.tool.definition_hash:
            await self._ask(opened, call, judgement, params)
        else:
            await self._decide(opened, tool, dict(call.args), is_second_look=True)

    async def _ask(
        self, opened: Opened, call: PlannedCall, judgement: Judgement, params: JsonObject, attempt: int = 1
    ) -> None:
        question = PendingQuestion(call, json.loads(canonical(params)), judgement, attempt)
        try:
            await self._records.write(judgement.entry)
            opened.waits_for_human = True
            verdict = await self._asking.ask(question)
        except AgentsError as exc:
            self._reply.refusal(opened, call.tool.name, f"nobody could be asked: {exc}")
            return
        finally:
            opened.waits_for_human = False
        if isinstance(verdict, Verdict):
            await self._follow(opened, question, verdict, params)
        else:
            self._reply.result(opened, verdict)

    async def _is_answer(self, opened: Opened) -> bool:
        """Whether the call answers a question of the guard. If so, the answer has been acted on."""
        try:
            question = self._asking.questions.take(opened.request.params)
        except NotThisCall:
            reason = "the question was answered before, is too old, or was about another call"
            self._reply.refusal(opened, self._full_name(opened), reason)
            return True
        if question is None:
            return False
        verdict = await self._asking.answered(question, object_in(opened.request.params.get("inputResponses")))
        # What the server itself had asked for goes to it; the answer to the guard does not.
        own = {key: value for key, value in opened.request.params.items() if key not in ANSWERS}
        kept = {key: value for key, value in question.params.items() if key in ANSWERS}
        await self._follow(opened, question, verdict, {**own, **kept})
        return True

    async def _follow(self, opened: Opened, question: PendingQuestion, verdict: Verdict, params: JsonObject) -> None:
        """Do what a person has decided."""
        call = question.call
        if not verdict.is_approved:
            self._reply.refusal(opened, call.tool.name, verdict.reason, verdict.comment)
            return
        try:
            tool = await self._definitions.find(str(params["name"]), params)
            if tool.definition_hash != call.tool.definition_hash:
                self._reply.refusal(
                    opened, tool.name, "the server changed the tool while it was asked about; call again"
                )
                return
            await self._gatekeeper.go_on(question.judgement.questions)
            if verdict.changed is not None:
                await self._follow_changed(opened, question, verdict.changed, params)
            else:
                await self._start_sealed(opened, call, params)
        except (AgentsError, UnknownTool) as exc:
            self._reply.refusal(opened, call.tool.name, f"it cannot be run any more: {exc}")

    async def _follow_changed(
        self, opened: Opened, question: PendingQuestion, answer: HumanAnswer, params: JsonObject
    ) -> None:
        """A changed call is a new call: the answer counts only for the reasons that were given with the question."""
        changed = await changed_call(question.call, None, answer, self._masking)
        call, attempt = replace(question.call, args=changed.args), question.attempt + 1
        judgement = await self._gatekeeper.judged(call, attempt)
        reasons = set(judgement.decision.reason.split("; "))
        if judgement.says == "deny":
            self._refuse(opened, call, judgement)
        elif judgement.says == "needs_human" and not reasons <= set(question.judgement.decision.reason.split("; ")):
            await self._ask(opened, call, judgement, {**params, "arguments": dict(call.args)}, attempt)
        else:
            opened.note = changed.note
            await self._start_sealed(opened, call, params, judgement.entry)

    # -----------------------------------------------------------------------------------------------------------------
    # The call itself

    async def _start_sealed(self, opened: Opened, call: PlannedCall, params: JsonObject, *before: AuditEntry) -> None:
        wire = _sealed_wire(opened, call, params)
        await self._start(opened, Underway(call, is_sealed=True, note=opened.note), wire, *before)

    async def _start(self, opened: Opened, underway: Underway, wire: bytes, *before: AuditEntry) -> None:
        call = underway.call
        try:
            await self._definitions.let_through(call.tool)
            await self._gatekeeper.spend()
            await self._written_as_started(call, *before)
        except AgentsError as exc:
            self._reply.refusal(opened, call.tool.name, f"it cannot be recorded ({exc.message})")
            return
        self._pass(opened, underway, wire)

    async def _written_as_started(self, call: PlannedCall, *before: AuditEntry) -> None:
        try:
            await self._records.write(*before, self._gatekeeper.about(call, "started", "started"))
        except asyncio.CancelledError:
            # The record of the start is written all the same, so it needs an outcome.
            self._finished(call, "failed", _TAKEN_BACK)
            raise

    def _go_on(self, opened: Opened, continued: Underway) -> None:
        """The same call comes again, with the answer to the server's own question."""
        opened.note = continued.note
        is_sealed, params = continued.is_sealed, opened.request.params
        wire = _sealed_wire(opened, continued.call, params) if is_sealed else opened.request.wire
        self._pass(opened, continued, wire)

    def _pass(self, opened: Opened, underway: Underway, wire: bytes) -> None:
        if self._server.release(opened, wire):
            self._underway[opened] = underway
        else:
            self._finished(underway.call, "failed", _TAKEN_BACK)

    def answered(self, opened: Opened, reply: Reply) -> None:
        underway = self._underway.pop(opened, None)
        if underway is None:
            return
        result = object_in(reply.result)
        if result.get("resultType") == "input_required":
            self._continued.put(underway, opened.request.params, result.get("requestState"))
        elif reply.error is not None:
            self._finished(underway.call, "failed", str(object_in(reply.error).get("message", "")))
        elif result.get("isError") is True:
            self._finished(underway.call, "failed", _text_in(result))
        else:
            self._finished(underway.call, "completed")

    def given_up(self, opened: Opened, reason: str) -> None:
        underway = self._underway.pop(opened, None)
        if underway is not None:
            self._finished(underway.call, "failed", reason)

    async def settle(self) -> None:
        await self._asking.end_session()
        for underway in self._continued.clear():
            self._finished(underway.call, "failed", "the server's own question was never answered")
        await self._records.settle()

    def _finished(self, call: PlannedCall, decision: str, reason: str = "") -> None:
        self._records.write_behind(self._gatekeeper.about(call, "outcome", decision, reason))

    # -----------------------------------------------------------------------------------------------------------------

    def _next_id(self) -> str:
        return f"call_{next(self._numbers)}"

    def _full_name(self, opened: Opened) -> str:
        return f"{self._session.server_name}/{opened.request.params['name']}"


def _name_and_arguments(params: JsonObject) -> tuple[str, JsonObject]:
    name, args = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_ID or not name.isprintable():
        raise _Unusable(f"Invalid params: name must have 1 to {LONGEST_ID} printable characters")
    if not isinstance(args, dict | None):
        raise _Unusable("Invalid params: arguments must be an object")
    return name, args or {}


def _check_names(args: JsonObject, tool: ToolDescription) -> None:
    """A server that ignores the case of names would read another argument than the rules do."""
    known = frozenset(object_in(tool.parameters.get("properties")))
    unclear = messages.look_alike(args, known)
    folded = [key.casefold() for key in args if key not in known]
    if unclear or len(set(folded)) != len(folded):
        what = unclear or "two arguments that differ only in case"
        raise _Unusable(f"Invalid params: some servers read {what} as another argument; write it as the schema does")


def _sealed_wire(opened: Opened, call: PlannedCall, params: JsonObject) -> bytes:
    """The request with the arguments that a person has approved, whatever else the client has sent."""
    arguments = json.loads(canonical(call.args))
    return messages.encode({**opened.request.content, "params": {**params, "arguments": arguments}})


def _text_in(result: JsonObject) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    return " ".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))[:500]
