"""The gate. `decide` is the whole rule: strictest wins, among scope, risk, verdict and what tool and caller demand.

| from                      | allow                 | needs_human                | deny                    |
| scopes of the profile     | one matches           |                            | none matches            |
| risk level                | up to `allow_up_to`   | in between                 | from `refuse_from`      |
| or a rule's `decide`      | `allow`               | `ask`                      | `deny`                  |
| the judge                 | as it says            | as it says                 | as it says              |
| the tool's own demand     |                       | `require_approval`         |                         |
| doubts about the tool     |                       | one, such as a new definition |                      |
| the caller's demand       |                       | `require_human_approval`   |                         |
| a budget                  |                       | is used up                 |                         |

The risk level is the greater of the tool's own and the verdict's. A rule of the policy file replaces either the vote of
the risk level or the tool's own risk. A standing approval answers for a human where the risk level, a rule's `ask` or
the tool's own demand asks, unless there is a doubt about the tool. It answers nothing else, and lifts no refusal.

`SafetyGate` reads the profile, asks the judge, and fails closed. The judge is shown what a human would be shown: the
call as it will run, with a label for each real secret.
"""

import asyncio
import contextvars
import inspect
import logging
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Protocol

from openai_responses_mcp.domain.texts import one_line
from openai_responses_mcp.gate.approvals.standing import StandingApprovals
from openai_responses_mcp.gate.calls import AMBIGUOUS, GateDecision, PlannedCall, ToolCallRequest, ToolDescription
from openai_responses_mcp.gate.errors import AgentsError, config_error
from openai_responses_mcp.gate.guardrails import FAILURES, NO_GUARDRAILS, AgentGuardrails, is_cancellation
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.policy.argument_names import unclear_name
from openai_responses_mcp.gate.policy.rules import Policy, PolicyProfile, PolicyStore, RuleDecision
from openai_responses_mcp.gate.policy.ruling import PolicyRules, Ruling
from openai_responses_mcp.gate.reasons import DEFINITION_CHANGED, Decision, Reason, Voice
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import Masking

STRICTNESS: dict[Decision, int] = {"allow": 0, "needs_human": 1, "deny": 2}
_CHOICES: dict[RuleDecision, Decision] = {"allow": "allow", "ask": "needs_human", "deny": "deny"}


def is_in_scope(tool: ToolDescription, profile: PolicyProfile) -> bool:
    return any(fnmatchcase(tool.scope_name, scope) for scope in profile.allowed_tool_scopes)


def decide(
    tool: ToolDescription,
    verdict: GateDecision | None,
    profile: PolicyProfile,
    *,
    ruling: Ruling | None = None,
    require_human_approval: bool = False,
    over_budget: Sequence[Reason] = (),
    standing: Reason | None = None,
) -> GateDecision:
    """Allow, deny or ask a human, with the reasons of every voice.

    `verdict` is None if the judge was not asked. `over_budget` names the budgets that are used up, `standing` the
    standing approval that allows the call.
    """
    own_risk = ruling.risk if ruling and ruling.risk else tool.own_risk
    risk = max(own_risk, verdict.risk_level) if verdict else own_risk
    # A judge that allows without a word has nothing to record.
    voices: list[Reason] = []
    if verdict and (verdict.reason or verdict.decision != "allow"):
        voices.append(Reason("judge", verdict.decision, {"risk": verdict.risk_level, "text": verdict.reason}))
    if not is_in_scope(tool, profile):
        voices.append(Reason("scope", "deny", {"tool": tool.scope_name, "profile": profile.name}))
    answerable = [_of_rule(ruling, ruling.decide) if ruling and ruling.decide else _of_profile(risk, profile, ruling)]
    if tool.require_approval and not tool.doubts:
        answerable.append(Reason("tool", "needs_human"))
    voices += [standing if standing and one.says == "needs_human" else one for one in answerable]
    voices += tool.doubts
    if require_human_approval:
        voices.append(Reason("caller", "needs_human"))
    voices += over_budget
    strictest = max((voice.says for voice in voices), key=STRICTNESS.__getitem__)
    once = [voice for place, voice in enumerate(voices) if voice not in voices[:place]]
    return GateDecision.because(strictest, risk, *once)


def _of_rule(ruling: Ruling, choice: RuleDecision) -> Reason:
    about: JsonObject = {"rule": ruling.rule, "text": ruling.text}
    doubt: JsonObject = {"in_doubt": True} if ruling.in_doubt else {}
    return Reason("rule", _CHOICES[choice], {**about, **doubt, **_would_allow(ruling)})


def _of_profile(risk: int, profile: PolicyProfile, ruling: Ruling | None) -> Reason:
    says: Decision = "allow"
    if risk > profile.allow_up_to:
        says = "deny" if risk >= profile.refuse_from else "needs_human"
    rule: JsonObject = {"rule": ruling.rule} if ruling and ruling.rule else {}
    return Reason("profile", says, {"risk": risk, "profile": profile.name, **rule, **_would_allow(ruling)})


def _would_allow(ruling: Ruling | None) -> JsonObject:
    return {"would_allow": ruling.would_allow} if ruling and ruling.would_allow else {}


DEFAULT_TIMEOUT_SECONDS = 30.0


class JudgeFailed(Exception):
    """Wraps what a judge raised on a thread, as its `__cause__`. A future does not take every exception."""


class Judge(Protocol):
    """Anything with this method can be given as `safety_agent`."""

    async def evaluate(self, agent: object, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        """May raise anything. Only a valid verdict counts; anything else is a refusal."""
        ...


class SafetyAgent(Judge):
    """Wraps `(agent, request, policy) -> verdict`, sync or async. A verdict is a `GateDecision`, or a mapping with
    `decision`, `risk_level` and `reason`. A sync callable runs on a thread, so that a slow one does not block the event loop."""

    def __init__(self, evaluate: Callable[..., object], *, timeout_seconds: float | None = None) -> None:
        if not callable(evaluate):
            raise config_error("SafetyAgent takes a callable (agent, request, policy)")
        self._evaluate = evaluate
        self._timeout_seconds = DEFAULT_TIMEOUT_SECONDS if timeout_seconds is None else timeout_seconds

    @classmethod
    def allow_all(cls) -> "SafetyAgent":
        """For tests: every call has risk 1. Profiles, scopes and `require_approval` still hold."""
        return cls(_allow)

    async def evaluate(self, agent: object, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        async with asyncio.timeout(self._timeout_seconds):
            if inspect.iscoroutinefunction(self._evaluate):
                return verdict_from(await self._evaluate(agent, request, policy))
            verdict = await _on_a_thread_of_its_own(self._evaluate, agent, request, policy)
            return verdict_from(await verdict if inspect.isawaitable(verdict) else verdict)


async def _on_a_thread_of_its_own(judge: Callable[..., object], *args: object) -> object:
    """Not in the loop's thread pool: a judge that never returns would occupy a thread there for good."""
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


JUDGE_LIMIT_SECONDS = 120.0
LONGEST_FAILURE = 500

_NO_POLICY = Policy()
_ANY_STANDING = Reason("standing", "allow")

_logger = logging.getLogger("openai_responses_mcp.agents")


@dataclass(frozen=True, slots=True)
class GateContext:
    """The rules that a call is judged by. Without a chosen profile it is the policy file's, else `balanced`.

    `over_budget` names the budgets that are used up.
    """

    policy_profile: str | None = None
    require_human_approval: bool = False
    guardrails: AgentGuardrails = NO_GUARDRAILS
    over_budget: tuple[Reason, ...] = ()


def failed(risk_level: int, error: AgentsError) -> GateDecision:
    """The decision where the gate raised this error."""
    voice: Voice = "guardrail" if error.code == "AGENTS-E-GUARDRAIL-DENIED" else "failure"
    reason = Reason(voice, "deny", {"code": error.code, "message": error.message})
    return GateDecision.because("deny", risk_level, reason)


class SafetyGate:
    """`limit_seconds` bounds judges that set themselves no limit."""

    def __init__(
        self,
        safety_agent: Judge,
        policy_store: PolicyStore,
        masking: Masking | None = None,
        *,
        rules: PolicyRules | None = None,
        standing: StandingApprovals | None = None,
        schemas: SchemaChecker | None = None,
        limit_seconds: float = JUDGE_LIMIT_SECONDS,
    ) -> None:
        self._judge = safety_agent
        self._policies = policy_store
        self._masking = masking or Masking()
        self._rules = rules
        self._standing = standing
        self.schemas = schemas or SchemaChecker()
        self._limit_seconds = limit_seconds

    async def evaluate(self, agent: object, request: ToolCallRequest, context: GateContext) -> GateDecision:
        """Raises `AGENTS-E-GATE-EVAL` without a usable verdict and `AGENTS-E-GUARDRAIL-DENIED` before asking for one."""
        tool = request.target_tool
        if tool is None:
            raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", f"{request.tool_name} is not a tool of this agent")
        if AMBIGUOUS in request.args:
            raise AgentsError("AGENTS-E-GATE-DENIED", "The arguments of the call could be read in more than one way")
        rules, args = self._rules, request.args
        if unclear := rules.unclear_name(tool, args) if rules else unclear_name(args, tool.parameters):
            raise AgentsError("AGENTS-E-GATE-DENIED", f"The name of an argument is not clear: {unclear}")
        profile = await self.profile(context.policy_profile)
        await context.guardrails.check_call(request)
        ruling = self._ruling(tool, args)
        tool = rules.with_doubts(tool, args) if rules else tool
        if not is_in_scope(tool, profile) or (ruling and ruling.decide == "deny"):
            # The call is refused anyway, so the judge is not shown its arguments.
            return decide(tool, None, profile, ruling=ruling)
        if self._standing is not None and DEFINITION_CHANGED in tool.doubts:
            await self._standing.end_others(tool, request.run_id)
        mask = self._masking
        shown = replace(
            request, args=mask.shown(args, tool.parameters), user_intent=mask.shown_text(request.user_intent)
        )
        verdict = await self._verdict(agent, shown, profile)
        decided = partial(
            decide,
            tool,
            verdict,
            profile,
            ruling=ruling,
            require_human_approval=context.require_human_approval,
            over_budget=context.over_budget,
        )
        decision = decided()
        is_answerable = decision.decision == "needs_human" and decided(standing=_ANY_STANDING).decision == "allow"
        if self._standing is None or not is_answerable:
            return decision
        call = PlannedCall(request.tool_call_id, tool, args)
        found = await self._standing.find(call, request.run_id, attempt=request.attempt)
        return decision if found is None else decided(standing=found.reason)

    async def offer(self, tool: ToolDescription, policy_profile: str | None) -> GateDecision:
        """A tool on the provider's side. Its calls cannot be judged one by one, so it is allowed or refused as a whole."""
        profile = await self.profile(policy_profile)
        if not is_in_scope(tool, profile):
            return decide(tool, None, profile)
        if ruling := self._ruling(tool, {}):
            decision = decide(tool, None, profile, ruling=ruling)
            if decision.decision != "allow":
                refusing = (replace(reason, says="deny") for reason in decision.reasons)
                unasked = Reason("provider", "deny", {"profile": profile.name})
                return GateDecision.because("deny", decision.risk_level, *refusing, unasked)
        return GateDecision.because("allow", tool.own_risk, Reason("provider", "allow", {"profile": profile.name}))

    async def denial(self, tool: ToolDescription, args: JsonObject, policy_profile: str | None) -> GateDecision | None:
        """For a call that a human approved: the refusal, if the policy in force by now denies it."""
        profile = await self.profile(policy_profile)
        decision = decide(tool, None, profile, ruling=self._ruling(tool, args))
        return decision if decision.decision == "deny" else None

    async def profile(self, chosen: str | None) -> PolicyProfile:
        """The profile in force, with the scopes of the policy file if that has any."""
        policy = self.policy
        try:
            return policy.scoped(await self._policies.get_profile(policy.profile_name(chosen)))
        except AgentsError as exc:
            if exc.code == "AGENTS-E-POLICY-INVALID":
                raise
            raise AgentsError("AGENTS-E-GATE-EVAL", f"The policy profile cannot be read: {exc.message}") from exc

    @property
    def policy(self) -> Policy:
        """That of the policy file as it is now, else one that says nothing."""
        return self._rules.policy if self._rules else _NO_POLICY

    def _ruling(self, tool: ToolDescription, args: JsonObject) -> Ruling | None:
        return self._rules.ruling(tool, args) if self._rules else None

    async def _verdict(self, agent: object, request: ToolCallRequest, profile: PolicyProfile) -> GateDecision:
        failure: str
        try:
            async with asyncio.timeout(self._limit_seconds):
                return verdict_from(await self._judge.evaluate(agent, request, profile))
        except TimeoutError:
            failure = "The judge took too long"
        except FAILURES as exc:
            if is_cancellation(exc):
                raise
            failure = self._described(exc)
        # Raised outside the `except`, so that the judge's unmasked exception is not attached.
        raise AgentsError("AGENTS-E-GATE-EVAL", failure)

    def _described(self, failure: BaseException) -> str:
        """How the judge failed: all of it in the debug log, its type and message elsewhere."""
        raised = failure.__cause__ if isinstance(failure, JudgeFailed) and failure.__cause__ else failure
        _logger.debug("the judge failed: %s", self._masking.text("".join(traceback.format_exception(raised))))
        if isinstance(raised, AgentsError) and raised.code == "AGENTS-E-GATE-EVAL":
            return self._masking.text(raised.message)
        said = one_line(self._masking.text(str(raised))).strip()
        if len(said) > LONGEST_FAILURE:
            said = f"{said[: LONGEST_FAILURE - 1]}…"
        return f"The judge failed with {type(raised).__name__}{f': {said}' if said else ''}"
