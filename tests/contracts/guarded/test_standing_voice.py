"""What the gate may rely on when it asks for a standing approval."""

import pytest

from openai_responses_mcp.gate.approvals.standing import StandingApprovals
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription
from openai_responses_mcp.gate.ports import StandingVoice
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fake_stores import fake_stores
from tests.agents.fakes import FakeClock, FakeStanding
from tests.contracts.guarded.test_standing_store import a_standing

TOOL = ToolDescription("files/read", "mcp", definition_hash="definition")
CALL = PlannedCall("c1", TOOL, {"path": "a"})


@pytest.fixture(params=["fake", "real"])
async def voice(request: pytest.FixtureRequest, clock: FakeClock) -> StandingVoice:
    if request.param == "fake":
        return FakeStanding({"mcp:files/read": "definition"})
    stores: Stores = fake_stores(clock)
    await stores.standing.create(a_standing())
    masking = Masking({})
    audit = AuditLog(stores.logs, clock, masking)
    return StandingApprovals(stores.standing, stores.approvals, audit, clock, masking)


async def test_it_says_why_a_call_is_allowed(voice: StandingVoice) -> None:
    reason = await voice.answer(CALL, "r1")
    assert reason is not None
    assert (reason.voice, reason.says) == ("standing", "allow")
    assert reason.about["standing_id"]


async def test_the_same_call_can_be_asked_about_again(voice: StandingVoice) -> None:
    assert await voice.answer(CALL, "r1", 1) == await voice.answer(CALL, "r1", 2)


async def test_another_tool_or_another_definition_is_not_allowed(voice: StandingVoice) -> None:
    other = ToolDescription("files/write", "mcp", definition_hash="definition")
    changed = ToolDescription("files/read", "mcp", definition_hash="another")
    assert await voice.answer(PlannedCall("c2", other, {"path": "a"}), "r1") is None
    assert await voice.answer(PlannedCall("c3", changed, {"path": "a"}), "r1") is None


async def test_what_was_allowed_for_another_definition_ends(voice: StandingVoice) -> None:
    await voice.end_others(TOOL, "r1")
    assert await voice.answer(CALL, "r1") is not None
    await voice.end_others(ToolDescription("files/read", "mcp", definition_hash="another"), "r1")
    assert await voice.answer(CALL, "r1") is None
