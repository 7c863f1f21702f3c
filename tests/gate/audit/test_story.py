"""Contradictions between records, and what an acceptance covers."""

import pytest

from openai_responses_mcp.gate.audit.records import (
    LOSS_ACCEPTED,
    ExecutionLog,
    LogFinding,
    LogVerification,
    fingerprint,
    linked,
)
from openai_responses_mcp.gate.audit.verifying import contradictions, facts_to_accept, unfinished, verification


def story(*events: str, call: str = "c1") -> list[ExecutionLog]:
    """Events of one call, each as `event decision`."""
    logs: list[ExecutionLog] = []
    for one in events:
        event, _, decision = one.partition(" ")
        log = ExecutionLog("r1", call, event, decision, "2026", tool_name="pay", tool_kind="function")
        logs.append(linked(log, logs[-1] if logs else None))
    return logs


def test_a_story_that_can_be_true_has_no_finding() -> None:
    cases: list[tuple[str, ...]] = [
        ("decision allow", "started", "outcome completed"),
        ("decision needs_human", "approval_requested pending", "approval approved", "started", "outcome failed"),
        ("decision needs_human", "approval approved", "approval_requested:2 pending", "approval:2 approved", "started"),
        ("decision needs_human", f"approval:{'9' * 5000} approved", "started"),
        # Somebody in another process was quicker than the record of the request.
        ("decision needs_human", "approval approved", "approval_requested pending", "started"),
        ("decision allow", "started"),
    ]
    for events in cases:
        assert list(contradictions(story(*events))) == []


def test_a_story_that_cannot_be_true_is_named() -> None:
    cases: list[tuple[tuple[str, ...], int, str]] = [
        (("started", "decision allow"), 1, "started, and no decision was recorded"),
        (("decision deny", "started"), 2, "started, and the gate had refused it"),
        (("decision needs_human", "started"), 2, "started, and needed a human, and no approval was recorded"),
        (("decision needs_human", "approval denied", "started"), 3, "started, and a human had denied it"),
        (
            ("decision needs_human", "approval approved", "approval:2 denied", "started"),
            4,
            "started, and a human had denied it",
        ),
        (
            ("decision needs_human", "approval approved", "approval_requested:2 pending", "started"),
            4,
            "started, and needed a human, and no approval was recorded",
        ),
        (("decision allow", "outcome completed"), 2, "has an outcome, and never started"),
    ]
    for events, number, words in cases:
        (finding,) = contradictions(story(*events))
        assert finding == LogFinding(number, f"call c1 of r1 (function pay) {words}")


def test_calls_are_known_by_run_and_id() -> None:
    logs = [
        ExecutionLog("r1", "c1", "decision", "allow", "2026", sequence=1),
        ExecutionLog("r2", "c1", "started", "started", "2026", sequence=2),
        ExecutionLog("r1", "c2", "started", "started", "2026", sequence=3),
    ]
    assert [finding.sequence for finding in contradictions(logs)] == [2, 3]


def test_calls_without_an_outcome_are_named() -> None:
    def log(call: str, event: str) -> ExecutionLog:
        return ExecutionLog("r1", call, event, "", "")

    logs = [log("a", "started"), log("b", "started"), log("b", "outcome"), log("c", "decision")]
    assert unfinished(logs) == [logs[0]]


def test_all_findings_are_listed_and_the_first_is_the_problem() -> None:
    found = verification(story("started", "outcome completed", "decision deny"), None, "not covered")
    assert (found.is_intact, found.first_bad, found.uncovered) == (False, 1, "not covered")
    assert found.findings == (found.problem,)
    logs = [*story("decision deny"), *story("started", call="c2")]
    found = verification(logs, None, "")
    assert len(found.findings) == 2
    assert found.problem == found.findings[0] == "a record was inserted after record 1"


def accepted(logs: list[ExecutionLog], **changed: object) -> list[ExecutionLog]:
    facts = {**facts_to_accept(logs, verification(logs, None, "")), **changed}
    record = ExecutionLog("log", "loss_1", LOSS_ACCEPTED, "accepted", "2026", arguments=facts)
    return [*logs, linked(record, logs[-1] if logs else None)]


def test_an_acceptance_covers_a_story_and_none_that_comes_later() -> None:
    logs = accepted(story("started"))
    assert verification(logs, None, "").is_intact
    later = linked(ExecutionLog("r1", "c1", "outcome", "completed", "2026"), logs[-1])
    assert verification([*logs, later], None, "").is_intact
    stranger = linked(ExecutionLog("r1", "c9", "started", "started", "2026"), later)
    assert verification([*logs, later, stranger], None, "").first_bad == 4


@pytest.mark.parametrize("changed", [{"records": "1"}, {"records": 7}, {"fingerprint": "x"}, {"records": None}])
def test_an_acceptance_that_fits_no_log_covers_nothing(changed: dict[str, object]) -> None:
    assert not verification(accepted(story("started"), **changed), None, "").is_intact


def test_records_that_were_changed_after_they_were_accepted_are_found() -> None:
    logs = accepted(story("decision allow", "outcome completed"))
    assert verification(logs, None, "").is_intact
    object.__setattr__(logs[0], "reason", "another")
    assert verification(logs, None, "").first_bad == 1
    gone = accepted(story("decision allow", "outcome completed"))
    assert verification([gone[0], gone[2]], None, "").first_bad == 2
    rewritten = story("decision allow", "approval_requested pending")
    assert (
        verification([*rewritten, gone[2]], None, "").findings[0]
        == "records were changed after record 3 accepted them as they were"
    )


def test_verification_reports_an_accepted_loss() -> None:
    logs = story("started")
    found = verification(logs, None, "")
    facts = facts_to_accept(logs, found)
    assert facts == {"records": 1, "fingerprint": fingerprint(logs), "findings": list(found.findings)}
    record = ExecutionLog(
        "log", "loss_1", LOSS_ACCEPTED, "accepted", "2026", reason="an old copy", comment="mari", arguments=facts
    )
    assert LogVerification(True, 1) == verification(story("decision allow"), None, "")
    after = verification([*logs, linked(record, logs[-1])], None, "not covered")
    assert after == LogVerification(
        is_intact=True,
        records=2,
        first_bad=None,
        problem="",
        uncovered="not covered",
        findings=(),
        accepted=("an old copy; accepted in record 2: mari",),
    )


def test_an_acceptance_that_counts_itself_is_a_finding_and_hides_no_later_one() -> None:
    logs = accepted(story("started"), records=2)
    later = linked(ExecutionLog("r2", "c2", "started", "started", "2026"), logs[-1])
    assert len(verification(logs, None, "").findings) == 1
    assert len(verification([*logs, later], None, "").findings) == 2


STANDING = "a standing approval allows it always, with any arguments (sta_1)"


def about_standing(event: str, call: str, reason: str = STANDING) -> ExecutionLog:
    return ExecutionLog("r1", call, event, "allow", "2026", tool_name="pay", tool_kind="function", reason=reason)


@pytest.mark.parametrize(
    "logs",
    [
        [about_standing("standing_used", "c1")],
        [about_standing("standing_made", "sta_2"), about_standing("standing_used", "c1")],
        [about_standing("standing_made", "sta_1"), about_standing("standing_used", "c1", "(sta_1) or so")],
        [about_standing("standing_used", "c1"), about_standing("standing_made", "sta_1")],
    ],
)
def test_a_standing_approval_that_was_never_made_is_named(logs: list[ExecutionLog]) -> None:
    (finding,) = contradictions(logs)
    assert "call c1 of r1 (function pay) used a standing approval that is not in the log" in finding
