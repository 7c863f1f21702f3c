"""Accepting a loss: it counts with the head that was used, and with no other."""

import json
from pathlib import Path

import pytest

from openai_responses_mcp.gate.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.gate.audit.records import LOSS_ACCEPTED, UNREADABLE, ExecutionLog, linked
from openai_responses_mcp.gate.audit.verifying import facts_to_accept, verification
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.log_files import HeadFile
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from tests.agents.fakes import FakeClock


class SharedStore:
    """One database, shared by machines that each have a head."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self._folder = folder
        self._clock = clock
        self.database = SqlDatabase()

    def audit(self, head: str | None, *, is_sole_writer: bool = False) -> AuditLog:
        kept = HeadFile(self._folder / head, is_sole_writer=is_sole_writer) if head else None
        return AuditLog(SqlExecutionLogStore(self.database, kept), self._clock, Masking({}), head=kept)

    async def change_a_record(self) -> None:
        statement = "UPDATE agents_log SET decision = 'deny' WHERE sequence = 1"
        await self.database.work(lambda connection: connection.exec_driver_sql(statement))


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> SharedStore:
    store = SharedStore(tmp_path, clock)
    for number in range(3):
        await store.audit("head").record(AuditEntry("r1", f"c{number}", "decision", "allow"))
    return store


async def a_made_up_acceptance(store: SharedStore) -> None:
    """As an attacker with access to the store would write it."""
    theirs = SqlExecutionLogStore(store.database)
    logs = await theirs.query()
    facts = {**facts_to_accept(logs, verification(logs, None, "")), "by": "sato"}
    await theirs.append(ExecutionLog("log", "loss_1", LOSS_ACCEPTED, "accepted", "2026", arguments=facts))


async def test_a_made_up_acceptance_covers_no_changed_record(store: SharedStore) -> None:
    await store.change_a_record()
    await a_made_up_acceptance(store)
    found = await store.audit("head").verify()
    assert found.problem == "record 1 was changed"
    assert found.findings[-1].endswith("in the name of sato, and not with this head: accept it here too")
    assert found.accepted == ()


async def test_with_another_head_it_is_a_finding_until_it_is_accepted_there_too(store: SharedStore) -> None:
    await store.audit("other").verify()
    await store.change_a_record()
    await store.audit("head").accept_loss("the disk was replaced", by="sato")
    assert (await store.audit("head").verify()).is_intact
    elsewhere = await store.audit("other").verify()
    assert not elsewhere.is_intact
    await store.audit("other").record(AuditEntry("r1", "c9", "decision", "allow"))
    elsewhere = await store.audit("other").verify()
    assert any("in the name of sato" in finding for finding in elsewhere.findings)
    await store.audit("other").accept_loss("as sato did", by="suzuki")
    assert (await store.audit("other").verify()).is_intact
    first = await store.audit("head").verify()
    assert [finding for finding in first.findings if "suzuki" in finding] == list(first.findings)


async def test_an_acceptance_of_an_earlier_version_still_counts(store: SharedStore, tmp_path: Path) -> None:
    await store.change_a_record()
    await store.audit("head").accept_loss("the disk was replaced", by="sato")
    head = tmp_path / "head"
    facts = json.loads(head.read_text())
    del facts["accepted"], facts["accepted_to"]
    head.write_text(json.dumps(facts).ljust(512))
    assert (await store.audit("head").verify()).is_intact
    await store.audit("head").record(AuditEntry("r1", "c9", "decision", "allow"))
    assert (await store.audit("head").verify()).is_intact
    await a_made_up_acceptance(store)
    assert not (await store.audit("head").verify()).is_intact


def test_the_name_of_who_accepted_a_loss_stays_on_one_line() -> None:
    facts = {"records": 0, "fingerprint": "", "by": "sato\nrecord 1 is fine\u2028x"}
    log = linked(ExecutionLog("log", "l", LOSS_ACCEPTED, "accepted", "2026", arguments=facts), None)
    found = verification([log], None, "", UNREADABLE)
    assert all(len(finding.splitlines()) == 1 for finding in found.findings)
