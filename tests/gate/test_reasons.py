"""Reasons as data: stored and chained as such, said in words last, and never read out of words again."""

import json
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import Connection, TextClause, text

from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.audit.records import ExecutionLog, hash_of
from openai_responses_mcp.gate.audit.verifying import contradictions, verification
from openai_responses_mcp.gate.call_table import RunRecords
from openai_responses_mcp.gate.calls import GateDecision, ToolCallRequest
from openai_responses_mcp.gate.policy.rules import PROFILES
from openai_responses_mcp.gate.reasons import (
    DEFINITION_CHANGED,
    Reason,
    Voice,
    as_text,
    from_text,
    holds,
    in_old_words,
    is_new,
    reason_in_record,
    shown,
)
from openai_responses_mcp.gate.replaying import decided_otherwise
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.agents.fakes import FakeClock
from tests.gate.policy.reading import a_policy
from tests.gate.test_replaying import rules_of

SECRET = "sk-proj-" + "a1B2" * 10
JUDGED = Reason("judge", "needs_human", {"risk": 2, "text": "ask somebody"})


# ---------------------------------------------------------------------------------------------------------------------
# Words are not data


def test_a_judge_whose_words_look_like_a_rule_is_still_the_judge() -> None:
    judged = Reason("judge", "needs_human", {"risk": 2, "text": "fine (policy rule 1)"})
    words = "risk 3 needs a human under the profile balanced"
    log = ExecutionLog(
        "r", "c", "decision", "needs_human", "2026", "files/write", "mcp", 3, reason=words, reasons=(judged,)
    )
    policy = a_policy(rules=[{"tools": ["files/*"], "decide": "allow"}])
    assert decided_otherwise(log, rules_of(policy), PROFILES["balanced"], {}) is None


def test_the_words_of_a_record_do_not_say_which_standing_approval_was_used() -> None:
    words = "a standing approval allows it always, with any arguments (sta_1)"
    used = (Reason("standing", "allow", {"standing_id": "sta_unmade"}),)
    made = ExecutionLog("r", "sta_1", "standing_made", "allow", "2026")
    logs = [made, replace(made, tool_call_id="c", event="standing_used", reason=words, reasons=used)]
    [finding] = contradictions(logs)
    assert "used a standing approval that is not in the log" in finding.problem


def test_a_reason_is_new_unless_the_same_voice_said_the_same() -> None:
    assert not is_new([JUDGED], [JUDGED])
    assert is_new([JUDGED], [Reason("tool", "needs_human", JUDGED.about)])
    assert is_new([JUDGED], [replace(JUDGED, about={"risk": 3, "text": "ask somebody"})])
    assert not is_new([Reason("judge", "allow", {"text": "fine"})], [])


# ---------------------------------------------------------------------------------------------------------------------
# At rest


def _execute(change: TextClause, connection: Connection) -> None:
    connection.execute(change)


async def test_reasons_are_stored_and_chained() -> None:
    database = SqlDatabase()
    store = SqlExecutionLogStore(database)
    log = ExecutionLog("r", "c", "decision", "needs_human", "2026", reasons=(JUDGED, Reason("caller", "needs_human")))
    kept = await store.append(log)
    assert await store.query() == [kept]
    for changed in (
        '[{"voice": "judge", "says": "allow", "about": {"risk": 2, "text": "ask somebody"}}]',
        "not json",
        '[{"voice": "judge", "says": "perhaps", "about": {}}]',
        json.dumps([{**one, "more": 1} for one in json.loads(as_text(log.reasons) or "")]),
    ):
        change = text("UPDATE agents_log SET reasons = :reasons").bindparams(reasons=changed)
        await database.work(partial(_execute, change))
        found = verification(await store.query(), None, "")
        assert found.problem == "record 1 was changed"


def test_a_record_without_reasons_has_the_hash_of_earlier_versions() -> None:
    log = ExecutionLog("r", "c", "decision", "allow", "2026", "t", "mcp", 3, "fine", {"a": 1}, "", 1, "")
    assert hash_of(log) == "74371f46943d7a79243f4b1078bb5795ba5763e2f209eb8a5641285a8cae9c4f"
    assert hash_of(replace(log, reasons=(JUDGED,))) != hash_of(log)


async def test_no_secret_stays_in_a_reason(clock: FakeClock) -> None:
    stores = open_stores()
    audit = AuditLog(stores.logs, clock, Masking({}))
    decision = GateDecision.because("needs_human", 3, replace(JUDGED, about={"risk": 3, "text": f"it has {SECRET}"}))
    request = ToolCallRequest("t", "mcp", {}, run_id="r", tool_call_id="c")
    await audit.record(RunRecords("r", Masking({})).decision(request, decision))
    [log] = await audit.query()
    assert SECRET not in repr(log)
    assert log.reasons[0].about["risk"] == 3


def test_a_text_that_holds_no_reasons_is_kept_as_a_refusal() -> None:
    cases: list[str] = [
        *("{", '{"voice": "judge"}', "[" * 100_000),
        '[{"voice": 1, "says": "deny", "about": {}}]',
        '[{"voice": "judge", "says": "perhaps", "about": {}}]',
    ]
    for stored in cases:
        assert from_text(stored) == (Reason("unreadable", "deny", {"text": stored}),)


def test_reasons_are_written_as_in_stores_of_earlier_versions() -> None:
    written = '[{"voice": "judge", "says": "allow", "about": {"text": "はい"}}]'
    assert as_text([Reason("judge", "allow", {"text": "はい"})]) == written
    assert (as_text([]), from_text(None)) == (None, ())


def test_a_voice_of_a_later_version_is_kept() -> None:
    [later] = from_text('[{"voice": "moon", "says": "deny", "about": {"text": "full", "phase": 3}}]')
    assert str(later.voice) == "moon"
    assert shown([later], "deny", "ja") == reason_in_record([later], "deny") == "full"


# ---------------------------------------------------------------------------------------------------------------------
# In words

SAID: list[tuple[Reason, str]] = [
    (
        Reason("profile", "needs_human", {"risk": 3, "profile": "balanced"}),
        "no rule covers this tool, so you are asked",
    ),
    (
        Reason("profile", "needs_human", {"risk": 4, "profile": "balanced", "rule": 2}),
        "rule 2 of the policy file sets risk 4, and the profile balanced asks you for it",
    ),
    (Reason("rule", "needs_human", {"rule": 2, "text": "look {at} it"}), "look {at} it (policy rule 2)"),
    (Reason("rule", "needs_human", {"rule": 2, "text": ""}), "rule 2 of the policy file asks you"),
    (
        Reason("rule", "needs_human", {"rule": 3, "text": "", "would_allow": 1}),
        "rule 1 of the policy file would allow it, but it is not clear which file a path means",
    ),
    (Reason("rule", "needs_human", {"rule": 3, "text": "look", "would_allow": 1}), "look (policy rule 3)"),
    (
        Reason("budget", "needs_human", {"most": 1, "unit": "calls", "per": "day"}),
        "the budget of 1 call per day is used up",
    ),
    (JUDGED, "ask somebody"),
]


def test_a_person_reads_why_they_are_asked() -> None:
    for reason, words in SAID:
        assert shown([reason], "needs_human", "en") == words
        assert shown([reason], "needs_human", "ja")


def test_reasons_stand_in_a_row_and_missing_facts_are_marked() -> None:
    reasons = [Reason("scope", "deny"), Reason("provider", "deny"), Reason("provider", "deny"), DEFINITION_CHANGED]
    assert shown(reasons, "deny", "en") == "? is outside the scopes of the profile ?; the provider runs it unasked"
    assert shown(reasons, "allow", "en") == ""
    changed = "the server has changed what it says about this tool since it was approved"
    assert shown(reasons, "needs_human", "en") == changed


@pytest.mark.parametrize("voice", ["profile", "scope", "rule"])
def test_a_new_file_lifts_what_the_old_one_said(voice: Voice) -> None:
    log = ExecutionLog("r", "c", "decision", "deny", "2026", "files/write", "mcp", 3, reasons=(Reason(voice, "deny"),))
    rules = rules_of(a_policy(rules=[{"tools": ["*"], "decide": "allow"}]))
    found = decided_otherwise(log, rules, PROFILES["balanced"], {})
    assert found is not None
    assert found.decision == "allow"


def test_japanese_words_are_japanese() -> None:
    reasons = [one for one, _ in SAID[:2]] + [
        Reason("budget", "needs_human", {"most": 3, "unit": "calls", "per": "day"})
    ]
    assert shown(reasons, "needs_human", "ja") == (
        "このツールに当てはまるルールがないため、確認が必要です。"
        "ポリシーファイルのルール 2 によるリスク 4 は、プロファイル balanced では確認が必要です。"
        "予算(1 日あたり 3 回)を使い切りました"
    )


def test_reasons_that_were_never_stored_are_shown_in_their_old_words() -> None:
    assert shown([], "needs_human", "ja", otherwise="risk 3 needs a human") == "risk 3 needs a human"


def test_an_allowance_without_words_of_an_earlier_version_has_no_reason() -> None:
    assert list(in_old_words("", "allow")) == []
    assert list(in_old_words("", "deny")) == [Reason("judge", "deny", {"text": ""})]


def test_a_standing_approval_is_read_from_old_words_and_says_how_long_it_holds() -> None:
    old = "a standing approval allows it always, with\nany arguments (sta_1)"
    assert list(in_old_words(old, "allow")) == [Reason("standing", "allow", {"standing_id": "sta_1"})]
    assert holds(Reason("standing", "allow", {"for_session": True})) == "for its session"
    assert holds(Reason("standing", "allow", {"until": "2026-11-18T10:00:00.5"})) == "until 2026-11-18T10:00:00Z"
