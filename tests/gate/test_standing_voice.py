"""Standing approvals and budgets among the voices of the gate: what they answer, and what they never loosen."""

from dataclasses import replace
from itertools import product

from openai_responses_mcp.gate.approvals.models import StandingApproval
from openai_responses_mcp.gate.approvals.standing import StandingApprovals
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.calls import GateDecision, ToolCallRequest, ToolDescription
from openai_responses_mcp.gate.errors import StoreUnavailable
from openai_responses_mcp.gate.policy.rules import PROFILES
from openai_responses_mcp.gate.policy.ruling import Ruling
from openai_responses_mcp.gate.reasons import DEFINITION_CHANGED, Decision, Reason
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyGate, decide
from openai_responses_mcp.gate.secrets.masking import Masking
from tests.agents.fake_stores import FakeStandingStore, fake_stores
from tests.agents.fakes import ASK, FakeClock, FakeJudge, code_of

BALANCED = PROFILES["balanced"]
TOOL = ToolDescription("files/write", "mcp", definition_hash="d1")
ALLOW = GateDecision("allow", 1, "fine")
STANDING = Reason("standing", "allow", {"standing_id": "sta_1"})
STANDING_TEXT = "a standing approval allows it always, with any arguments (sta_1)"
BUDGET = (Reason("budget", "needs_human", {"most": 5, "unit": "calls", "per": "run"}),)


def test_it_answers_the_threshold_a_rule_that_asks_and_the_tools_own_demand() -> None:
    cases: list[tuple[ToolDescription, Ruling | None]] = [
        (TOOL, None),
        (replace(TOOL, risk_level=1, require_approval=True), None),
        (TOOL, Ruling("ask", None, 1)),
        (TOOL, Ruling(None, 4, 1)),
    ]
    for tool, ruling in cases:
        assert decide(tool, ALLOW, BALANCED, ruling=ruling).decision == "needs_human"
        answered = decide(tool, ALLOW, BALANCED, ruling=ruling, standing=STANDING)
        assert (answered.decision, answered.reason) == ("allow", f"fine; {STANDING_TEXT}")


def test_it_never_makes_a_decision_stricter_and_never_lifts_a_refusal() -> None:
    order: list[Decision] = ["allow", "needs_human", "deny"]
    doubts, rulings, profiles = (
        ((), (DEFINITION_CHANGED,)),
        (None, Ruling("deny", None, 1)),
        (BALANCED, PROFILES["strict"]),
    )
    cases = product(order, (1, 3, 5), (False, True), ((), BUDGET), doubts, rulings, profiles)
    for verdict, risk, caller, budget, doubt, ruling, profile in cases:
        tool = replace(TOOL, risk_level=risk, doubts=doubt)
        plain, answered = (
            decide(
                tool,
                GateDecision(verdict, 1, ""),
                profile,
                ruling=ruling,
                require_human_approval=caller,
                over_budget=budget,
                standing=standing,
            ).decision
            for standing in (None, STANDING)
        )
        assert order.index(answered) <= order.index(plain)
        assert (answered == "deny") == (plain == "deny")
        if caller or budget or doubt or verdict == "needs_human":
            assert answered == plain


# ---------------------------------------------------------------------------------------------------------------------
# Around the rule


def a_request(tool: ToolDescription = TOOL) -> ToolCallRequest:
    return ToolCallRequest(
        tool.name, tool.kind, {"path": "a"}, target_tool=tool, run_id="r1", tool_call_id="c1", attempt=2
    )


class Room:
    """A gate with standing approvals on fake stores."""

    def __init__(self, store: FakeStandingStore, judge: FakeJudge | None = None) -> None:
        stores, masking = fake_stores(FakeClock()), Masking({})
        self.store = store
        self.audit = AuditLog(stores.logs, stores.clock, masking)
        standing = StandingApprovals(self.store, stores.approvals, self.audit, stores.clock, masking)
        self.gate = SafetyGate(judge or FakeJudge(), stores.policies, standing=standing)


ALWAYS = StandingApproval("sta_1", "mcp", "files/write", "d1", "2026-11-16", "a1", "r0")


async def test_a_standing_approval_answers_for_this_call_and_its_use_is_recorded() -> None:
    room = Room(FakeStandingStore(ALWAYS))
    decision = await room.gate.evaluate(None, a_request(), GateContext())
    assert (decision.decision, decision.reason) == ("allow", f"fine; {STANDING_TEXT}")
    await room.audit.flush()
    [used] = await room.audit.query()
    assert (used.run_id, used.tool_call_id, used.event) == ("r1", "c1", "standing_used:2")
    assert (used.tool_name, used.arguments) == ("files/write", {"path": "a"})


async def test_a_standing_approval_is_not_used_where_it_could_not_answer() -> None:
    room = Room(FakeStandingStore(ALWAYS), FakeJudge(ASK))
    await room.gate.evaluate(None, a_request(), GateContext())
    await room.gate.evaluate(None, a_request(), GateContext(require_human_approval=True))
    await room.gate.evaluate(None, a_request(), GateContext(over_budget=BUDGET))
    await room.gate.evaluate(None, a_request(replace(TOOL, risk_level=1)), GateContext())
    await room.gate.evaluate(None, a_request(replace(TOOL, risk_level=5)), GateContext())
    await room.audit.flush()
    assert await room.audit.query() == []


async def test_a_changed_definition_ends_what_was_allowed_for_another_one() -> None:
    room = Room(FakeStandingStore(ALWAYS))
    other = replace(TOOL, definition_hash="d2")
    await room.gate.evaluate(None, a_request(replace(other, risk_level=1)), GateContext())
    assert await room.store.list_standing() == [ALWAYS]
    changed = replace(other, doubts=(DEFINITION_CHANGED,))
    assert (await room.gate.evaluate(None, a_request(changed), GateContext())).decision == "needs_human"
    assert await room.store.list_standing() == []


async def test_a_store_that_cannot_be_read_allows_nothing() -> None:
    class Broken(FakeStandingStore):
        async def list_standing(self, *_: object) -> list[StandingApproval]:
            raise StoreUnavailable("broken on purpose")

    assert await code_of(Room(Broken()).gate.evaluate(None, a_request(), GateContext())) == "AGENTS-E-LOG-STORE"
