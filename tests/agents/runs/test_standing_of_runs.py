"""Standing approvals in runs: they answer for the human, and those for a session end with it."""

import pytest

from openai_responses_mcp.agents.testing import ScriptedCall
from openai_responses_mcp.desk.opening import open_desk_parts
from openai_responses_mcp.gate.approvals.standing import StandingTerms, approve_from_now_on
from openai_responses_mcp.gate.errors import StoreUnavailable
from tests.agents.fake_stores import FakeStandingStore
from tests.agents.fakes import ASK, DENY, code_of, within
from tests.agents.scenes import PAY, Scene

PAY_MORE = ScriptedCall("pay", {"amount": 7}, "p-2")


async def allowed(scene: Scene, url: str, terms: StandingTerms) -> str:
    """The id of a run whose first payment was allowed from now on."""
    run = await scene.paused()
    desk = open_desk_parts(url)
    await approve_from_now_on(desk.approvals, desk.standing, run.interruptions[0].approval_id, terms=terms)
    return str(run.run_id)


async def test_an_approval_for_the_session_ends_with_its_run(sqlite_url: str) -> None:
    scene = Scene(PAY, PAY_MORE, "done", store=sqlite_url)
    run_id = await allowed(scene, sqlite_url, StandingTerms(for_session=True))
    assert (await within(scene.runner.resume_run(run_id))).output_text == "done"
    assert scene.ran == ["pay 5", "pay 7"]
    desk = open_desk_parts(sqlite_url)
    assert await desk.standing.list() == []
    ended = [(log.event, log.decision) for log in await desk.audit.query() if log.event.startswith("standing")]
    assert ended == [("standing_made", "allow"), ("standing_used", "allow"), ("standing_ended", "session over")]
    assert (await desk.audit.verify()).is_intact


@pytest.mark.parametrize("end", ["refused by the gate", "denied by a human"])
async def test_standing_approvals_of_a_session_end_when_its_run_is_refused(sqlite_url: str, end: str) -> None:
    scene = Scene(PAY, ScriptedCall("look", {"what": "x"}, "l-1"), "never said", store=sqlite_url)
    run_id = await allowed(scene, sqlite_url, StandingTerms(for_session=True))
    scene.judge.on("look", DENY if end == "refused by the gate" else ASK)
    if end == "refused by the gate":
        assert await code_of(scene.runner.resume_run(run_id)) == "AGENTS-E-GATE-DENIED"
    else:
        run = await within(scene.runner.resume_run(run_id))
        assert await open_desk_parts(sqlite_url).standing.list() != []
        denied = scene.runner.approve_and_resume(run_id, run.interruptions[0].approval_id, decision="deny")
        assert await code_of(denied) == "AGENTS-E-GATE-DENIED"
    assert await open_desk_parts(sqlite_url).standing.list() == []


async def test_a_result_is_returned_even_if_the_session_cannot_be_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(FakeStandingStore):
        async def list_standing(self, *tool: object) -> list[object]:  # type: ignore[override]
            if not tool:
                raise StoreUnavailable("broken on purpose")
            return []

    scene = Scene(PAY, "done", store="sqlite://", standing_store=Broken())
    run = await scene.paused()
    result = await within(scene.runner.approve_and_resume(run.run_id, run.interruptions[0].approval_id))
    assert result.output_text == "done"
    assert "could not be ended" in caplog.text
