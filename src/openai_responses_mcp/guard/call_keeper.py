"""The keeper of calls: every `tools/call` is decided here, and passed on, refused, or asked about.

A call is sent only after its decision and its start are in the log. A call that a person approved is sent with exactly
the arguments they were shown, in canonical form. Any failure before that refuses the call.
"""

import asyncio
import itertools
import json
from collections import OrderedDict
from dataclasses import replace

from openai_responses_mcp.domain.jsonrpc import INVALID_PARAMS, Reply
from openai_responses_mcp.gate.audit.log import AuditEntry
from openai_responses_mcp.gate.call_table import HumanAnswer, changed_call
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.errors import LONGEST_ID, AgentsError
from openai_responses_mcp.gate.json_values import canonical
from openai_responses_mcp.gate.reasons import Reason, is_new
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.stores import StartOutcome
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.asking import Asking, Verdict
from openai_responses_mcp.guard.definitions import Defined, Definitions, UnknownTool
from openai_responses_mcp.guard.gatekeeping import Gatekeeper, GuardSession, Judgement, Records
from openai_responses_mcp.guard.messages import JsonObject, JsonValue, object_in
from openai_responses_mcp.guard.peers import Opened, Peer, tool_error
from openai_responses_mcp.guard.questions import (
    ANSWERS,
    ContinuedCalls,
    Intent,
    NotThisCall,
    PendingQuestion,
    Underway,
)

MOST_ATTEMPTS = 10
_MOST_TASKS = 1_000

_TAKEN_BACK = "cancelled before it was sent"


class _Unusable(Exception):
    """The params of the call are invalid."""


class CallKeeper:
    def __init__(
        self,
        session: GuardSession,
        server: Peer,
        definitions: Definitions,
        gatekeeper: Gatekeeper,
        records: Records,
        asking: Asking,
        masking: Masking,
    ) -> None:
        self._session = session
        self._server = server
        self._definitions = definitions
        self._gatekeeper = gatekeeper
        self._records = records
        self._asking = asking
        self._masking = masking
        self._numbers = itertools.count(1)
        self._underway: dict[Opened, Underway] = {}
        self._continued = ContinuedCalls()
        self._of_tasks: OrderedDict[str, PlannedCall] = OrderedDict()

    # -----------------------------------------------------------------------------------------------------------------
    # Deciding

    async def keep(self, opened: Opened) -> None:
        params = opened.request.params
        try:
            name, args = _name_and_arguments(params)
            if await self._is_answer(opened):
                return
            defined = await self._definitions.find(name, params)
        except AgentsError as exc:
            call = PlannedCall(self._next_id(), ToolDescription(self._full_name(opened), "mcp"), args)
            judgement = self._gatekeeper.refused(call, exc)
            if self._session.options.observe:
                await self._observe(opened, call, judgement)
            else:
                self._refuse(opened, call, judgement)
        except (_Unusable, UnknownTool) as exc:
            if self._session.options.observe:
                self._server.release(opened, opened.request.wire)
            else:
                text = f"Unknown tool: {exc}" if isinstance(exc, UnknownTool) else str(exc)
                self._server.refuse(opened, INVALID_PARAMS, text)
        else:
            await self._decide(opened, defined, args)

    async def _decide(self, opened: Opened, defined: Defined, args: JsonObject) -> None:
        tool = defined.tool
        continued = self._continued.take(opened.request.params, tool)
        call = continued.call if continued else PlannedCall(self._next_id(), tool, args)
        # A call that comes again has a decision in the log already.
        judgement = await self._gatekeeper.judged(call, MOST_ATTEMPTS + 1 if continued else 1)
        if continued is not None and (judgement.says != "deny" or self._session.options.observe):
            # The same call comes again, with the answer to the server's own question.
            opened.note = continued.note
            is_sealed, params = continued.is_sealed, opened.request.params
            self._pass(opened, continued, _sealed_wire(opened, call, params) if is_sealed else opened.request.wire)
        elif continued is not None:
            self._refuse(opened, call, judgement)
            self._finished(call, "failed", "refused when it came again")
        elif self._session.options.observe:
            await self._observe(opened, call, judgement)
        elif judgement.says == "needs_human":
            await self._look_and_ask(opened, Intent(call, defined), judgement)
        else:
            await self._act(opened, Intent(call, defined), judgement)

    async def _act(self, opened: Opened, intent: Intent, judgement: Judgement) -> None:
        if judgement.says == "deny":
            self._refuse(opened, intent.call, judgement)
        elif judgement.says == "allow":
            await self._start(opened, intent, judgement.entry)
        else:
            await self._ask(opened, intent, judgement)

    async def _decide_again(self, opened: Opened, intent: Intent) -> None:
        """The tool or its budget changed meanwhile, through this guard or another one."""
        if intent.attempt >= MOST_ATTEMPTS:
            self._say_no(opened, intent.call.tool.name, "its definition or its budget keeps changing; call again")
            return
        try:
            defined = await self._definitions.find(intent.defined.name, opened.request.params)
        except (AgentsError, UnknownTool) as exc:
            self._say_no(opened, intent.call.tool.name, f"it cannot be run any more: {exc}")
            return
        call = replace(intent.call, tool=defined.tool)
        again = intent._replace(call=call, defined=defined, attempt=intent.attempt + 1)
        await self._act(opened, again, await self._gatekeeper.judged(call, again.attempt))

    def _refuse(self, opened: Opened, call: PlannedCall, judgement: Judgement) -> None:
        self._records.write_behind(judgement.entry)
        self._say_no(opened, call.tool.name, self._masking.text(judgement.decision.reason))

    def _say_no(self, opened: Opened, tool_name: str, reason: str, comment: str = "") -> None:
        said = f". The approver says: {comment}" if comment else ""
        text = f"The guard did not run {tool_name}: {reason}{said}"
        if "task" in opened.request.params:
            # A client that asked for a task expects one, or an error.
            self._server.refuse(opened, INVALID_PARAMS, text)
        else:
            self._server.answer(opened, tool_error(opened.request.params, text))

    async def _observe(self, opened: Opened, call: PlannedCall, judgement: Judgement) -> None:
        """Let the call pass, even if it cannot be counted or recorded."""
        passed = self._gatekeeper.let_pass(call, judgement.decision.risk_level)
        started = self._gatekeeper.about(call, "started", "started")
        self._records.write_behind(replace(judgement.entry, event="observed"), passed, started)
        try:
            await self._gatekeeper.budget.spend(calls=1)
        except AgentsError as exc:
            self._records.write_behind(self._gatekeeper.about(call, "uncounted", "unknown", str(exc)))
        self._pass(opened, Underway(call), opened.request.wire)

    # -----------------------------------------------------------------------------------------------------------------
    # Asking

    async def _look_and_ask(self, opened: Opened, intent: Intent, judgement: Judgement) -> None:
        """A person decides on the tool as it is now, not as it was when it was last listed."""
        call = intent.call
        try:
            defined = await self._definitions.look_again(intent.defined, opened.request.params)
        except (AgentsError, UnknownTool) as exc:
            self._say_no(opened, call.tool.name, f"no person could be asked: {exc}")
            return
        if defined.tool != call.tool:
            call = replace(call, tool=defined.tool)
            judgement = await self._gatekeeper.judged(call, intent.attempt)
        await self._act(opened, intent._replace(call=call, defined=defined), judgement)

    async def _ask(self, opened: Opened, intent: Intent, judgement: Judgement) -> None:
        params = opened.request.params if intent.params is None else intent.params
        call, sealed = intent.call, intent._replace(params=json.loads(canonical(params)))
        reading = self._definitions.reading(intent.defined)
        question = PendingQuestion(sealed, judgement, opened.channel, reading=reading)
        try:
            await self._records.write(judgement.entry)
            opened.waits_for_human = True
            verdict = await self._asking.ask(question)
        except AgentsError as exc:
            self._say_no(opened, call.tool.name, f"no person could be asked: {exc}")
            return
        finally:
            opened.waits_for_human = False
        if isinstance(verdict, Verdict):
            await self._follow(opened, question, verdict, params)
        else:
            self._server.answer(opened, verdict)

    async def _is_answer(self, opened: Opened) -> bool:
        """Whether the call answers a question of the guard. If so, the answer has been acted on."""
        try:
            question = self._asking.questions.take(opened.request.params)
        except NotThisCall:
            reason = "the question was answered before, is too old, or was about another call"
            self._say_no(opened, self._full_name(opened), reason)
            return True
        if question is None:
            return False
        question = replace(question, channel=opened.channel)
        verdict = await self._asking.answered(question, object_in(opened.request.params.get("inputResponses")))
        # Answers to the server's own questions are passed on; the answer to the guard is not.
        own = {key: value for key, value in opened.request.params.items() if key not in ANSWERS}
        kept = {key: value for key, value in (question.intent.params or {}).items() if key in ANSWERS}
        await self._follow(opened, question, verdict, {**own, **kept})
        return True

    async def _follow(self, opened: Opened, question: PendingQuestion, verdict: Verdict, params: JsonObject) -> None:
        """Do what a person has decided."""
        call = question.intent.call
        if not verdict.is_approved:
            self._say_no(opened, call.tool.name, verdict.reason, verdict.comment)
            return
        try:
            defined = await self._definitions.find(question.intent.defined.name, params)
            if defined.tool.definition_hash != call.tool.definition_hash:
                self._say_no(opened, call.tool.name, "the server changed the tool while it was asked about; call again")
                return
            if verdict.changed is not None:
                await self._follow_changed(opened, question, verdict.changed, params)
            elif denial := await self._gatekeeper.denial(call, question.intent.attempt + 1):
                self._refuse(opened, call, denial)
            else:
                await self._gatekeeper.budget.go_on(question.judgement.questions)
                await self._start(opened, question.intent._replace(params=params))
        except (AgentsError, UnknownTool) as exc:
            self._say_no(opened, call.tool.name, f"it cannot be run any more: {exc}")

    async def _follow_changed(
        self, opened: Opened, question: PendingQuestion, answer: HumanAnswer, params: JsonObject
    ) -> None:
        """A changed call is a new call: the answer counts only for the reasons that were given with the question."""
        await self._gatekeeper.budget.go_on(question.judgement.questions)
        asked = question.intent
        changed = await changed_call(asked.call, None, answer, self._masking, self._gatekeeper.schemas)
        call, attempt = replace(asked.call, args=changed.args), asked.attempt + 1
        judgement = await self._gatekeeper.judged(call, attempt)
        intent = asked._replace(call=call, params=params, attempt=attempt)
        before, now = question.judgement.decision.reasons, judgement.decision.reasons
        if judgement.says == "deny":
            self._refuse(opened, call, judgement)
        elif judgement.says == "needs_human" and is_new(now, before):
            await self._ask(opened, intent._replace(params={**params, "arguments": dict(call.args)}), judgement)
        else:
            opened.note = changed.note
            await self._start(opened, intent, judgement.entry)

    # -----------------------------------------------------------------------------------------------------------------
    # The call itself

    async def _start(self, opened: Opened, intent: Intent, *before: AuditEntry) -> None:
        """Change pin, budget and records in one step of the store. Then send the call, or decide on it again."""
        call, defined = intent.call, intent.defined
        outcome: StartOutcome = "changed"
        try:
            if self._definitions.is_current(defined):
                started = self._gatekeeper.about(call, "started", "started")
                start = self._definitions.start_of(defined, self._gatekeeper.budget.spendings())
                outcome = await self._records.write(*before, started, start=start)
        except asyncio.CancelledError:
            # The record of the start is written all the same, so it needs an outcome.
            self._finished(call, "failed", _TAKEN_BACK)
            raise
        except AgentsError as exc:
            self._say_no(opened, call.tool.name, f"it cannot be recorded ({exc.message})")
            return
        if outcome != "started":
            self._records.write_behind(*before)
            await self._decide_again(opened, intent)
        elif not self._definitions.is_current(defined):
            reason = "the server changed the tool before it was sent; call again"
            self._finished(call, "failed", reason)
            self._say_no(opened, call.tool.name, reason)
        elif intent.params is None:
            self._pass(opened, Underway(call), opened.request.wire)
        else:
            wire = _sealed_wire(opened, call, intent.params)
            self._pass(opened, Underway(call, is_sealed=True, note=opened.note), wire)

    def _pass(self, opened: Opened, underway: Underway, wire: bytes) -> None:
        if self._server.release(opened, wire):
            self._underway[opened] = underway
        else:
            self._finished(underway.call, "failed", _TAKEN_BACK)

    def answered(self, opened: Opened, reply: Reply, about_result: Reason | None = None) -> None:
        """`about_result` says what was withheld from the reply."""
        underway = self._underway.pop(opened, None)
        if underway is None:
            return
        result, kept_back = object_in(reply.result), () if about_result is None else (about_result,)
        if isinstance(task_id := object_in(result.get("task")).get("taskId", result.get("taskId")), str):
            self._of_tasks[task_id] = underway.call
            while len(self._of_tasks) > _MOST_TASKS:
                self._of_tasks.popitem(last=False)
        if result.get("resultType") == "input_required":
            self._continued.put(underway, opened.request.params, result.get("requestState"))
        elif reply.error is not None:
            self._finished(underway.call, "failed", str(object_in(reply.error).get("message", "")), *kept_back)
        elif result.get("isError") is True:
            self._finished(underway.call, "failed", _text_in(result), *kept_back)
        else:
            self._finished(underway.call, "completed", "", *kept_back)

    def task_answered(self, task_id: JsonValue, about_result: Reason) -> None:
        """Record once what was withheld from a task's result, which clients may fetch many times."""
        call = self._of_tasks.pop(task_id, None) if isinstance(task_id, str) else None
        if call is not None:
            self._records.write_behind(self._gatekeeper.about(call, "result", "completed", "", about_result))

    def given_up(self, opened: Opened, reason: str) -> None:
        underway = self._underway.pop(opened, None)
        if underway is not None:
            self._finished(underway.call, "failed", reason)

    async def settle(self) -> None:
        await self._asking.end_session()
        for underway in self._continued.clear():
            self._finished(underway.call, "failed", "the server's own question was never answered")
        await self._records.settle()

    def _finished(self, call: PlannedCall, decision: str, reason: str, *reasons: Reason) -> None:
        self._records.write_behind(self._gatekeeper.about(call, "outcome", decision, reason, *reasons))

    # -----------------------------------------------------------------------------------------------------------------

    def _next_id(self) -> str:
        return f"call_{next(self._numbers)}"

    def _full_name(self, opened: Opened) -> str:
        return f"{self._session.options.name}/{opened.request.params['name']}"


def _name_and_arguments(params: JsonObject) -> tuple[str, JsonObject]:
    name, args = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_ID or not name.isprintable():
        raise _Unusable(f"Invalid params: name must have 1 to {LONGEST_ID} printable characters")
    if not isinstance(args, dict | None):
        raise _Unusable("Invalid params: arguments must be an object")
    if messages.is_deeper_than(messages.MOST_LEVELS, args):
        raise _Unusable(f"Invalid params: arguments are nested more than {messages.MOST_LEVELS} levels deep")
    return name, args or {}


def _sealed_wire(opened: Opened, call: PlannedCall, params: JsonObject) -> bytes:
    """The request with the approved arguments in place of those that the client sent."""
    arguments = json.loads(canonical(call.args))
    return messages.encode({**opened.request.content, "params": {**params, "arguments": arguments}})


def _text_in(result: JsonObject) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    return " ".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))[:500]
