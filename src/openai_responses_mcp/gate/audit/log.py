"""The audit log: one appended record per decision, approval and outcome, masked, and each chained to the one before.

A record's hash covers its fields, its number and the hash before it, so that a change shows in every later record.
Everybody who can write to the store can also write a whole new chain; only a head kept outside the log shows that.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeVar

from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.audit.archiving import (
    ArchiveFile,
    archive_verification,
    facts_of_archive,
    older_than,
)
from openai_responses_mcp.gate.audit.records import (
    LOG_ARCHIVED,
    LOSS_ACCEPTED,
    AuditHead,
    ExecutionLog,
    ExecutionLogStore,
    LogVerification,
    fingerprint,
    misfit_of_log,
)
from openai_responses_mcp.gate.audit.verifying import (
    accepted_count,
    facts_to_accept,
    newest_archive,
    statements,
    verification,
)
from openai_responses_mcp.gate.clock import Clock, timestamp
from openai_responses_mcp.gate.errors import (
    LONGEST_ID,
    LONGEST_TEXT,
    DuplicateRecord,
    RecordRefused,
    StoreUnavailable,
    config_error,
    is_text,
)
from openai_responses_mcp.gate.json_values import JsonObject, digest
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.secrets.masking import Masking

AuditMode = Literal["best_effort", "required"]

_T = TypeVar("_T")

NO_HEAD = Sentence("No head is kept outside the log: a cut tail or an old copy put back would not show")

_MOST_LOOKS = 5  # how often the log is read again while others write to it

_logger = logging.getLogger("openai_responses_mcp.agents")


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What is worth recording about one call; secrets may still be in it."""

    run_id: str
    tool_call_id: str
    event: str
    decision: str
    tool_name: str = ""
    tool_kind: str = ""
    risk_level: int | None = None
    reason: str = ""
    arguments: JsonObject | None = None
    comment: str = ""
    reasons: tuple[Reason, ...] = ()
    who: str = ""


class AuditLog:
    """Masks, timestamps and appends. With `best_effort` a store that fails is warned about and written to later.

    A `mode` that may change, as in a policy file, is asked for with every record.
    """

    def __init__(
        self,
        store: ExecutionLogStore,
        clock: Clock,
        masking: Masking,
        mode: AuditMode | Callable[[], AuditMode] = "best_effort",
        head: AuditHead | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._masking = masking
        self._mode = mode
        self._head = head
        self._noted: dict[str, list[ExecutionLog]] = {}
        self._unwritten: list[ExecutionLog] = []
        self._refused: list[ExecutionLog] = []
        # Writes that also flush older records, by run id.
        self._under_way: dict[asyncio.Future[None], set[str]] = {}

    @property
    def is_required(self) -> bool:
        mode = self._mode() if callable(self._mode) else self._mode
        return mode == "required"

    @property
    def unwritten(self) -> tuple[ExecutionLog, ...]:
        """Records that no store has taken yet."""
        return (*self._refused, *self._unwritten)

    # -----------------------------------------------------------------------------------------------------------------
    # Writing

    async def record(self, *entries: AuditEntry) -> None:
        """Write the entries after the noted ones of their runs, in one step.

        Raises `DuplicateRecord`, and `StoreUnavailable` only when the audit is `required`.
        """
        await self._record([self.masked(entry) for entry in entries], {entry.run_id for entry in entries})

    def note(self, entry: AuditEntry) -> None:
        """For records that can wait: they are written with the next record of their run, or when the run ends."""
        self._noted.setdefault(entry.run_id, []).append(self.masked(entry))

    async def settle(self, run_id: str) -> None:
        """Write the noted records of the run that still wait. Raises as `record` does."""
        if run_id in self._noted:
            await self._record([], {run_id})

    def keep(self, problem: str, *entries: AuditEntry) -> None:
        """The call ran; record it when the store is back, before the next record, in both modes."""
        self._unwritten += map(self.masked, entries)
        self._warn_of_unwritten(problem, {entry.run_id for entry in entries})

    async def prepared(self, entry: AuditEntry) -> ExecutionLog:
        """The masked record, for the caller to store together with its subject. Earlier records are written first.

        Raises `StoreUnavailable` in both modes.
        """
        await self._after_earlier({entry.run_id})
        await self._write_backlog()
        return self.masked(entry)

    async def record_for_sure(self, entry: AuditEntry) -> None:
        """For what must not happen without its record: raises `StoreUnavailable` in both modes."""
        await self._store.append(await self.prepared(entry))

    async def write_with(self, write: Callable[[list[ExecutionLog]], Awaitable[_T]], run_ids: set[str]) -> _T:
        """Call `write` with the noted records of the runs; it stores them together with its own. Raises in both modes."""
        await self._after_earlier(run_ids)
        noted = [log for run_id in run_ids for log in self._noted.pop(run_id, ())]
        with self._carrying(noted):
            try:
                await self._write_backlog()
                return await write(noted)
            except BaseException:
                self._unwritten += noted
                raise

    async def flush(self) -> None:
        """Retry the unwritten records. A store that is still unreachable is not reported again."""
        try:
            await self._write_backlog()
        except StoreUnavailable:
            return

    async def _record(self, logs: list[ExecutionLog], run_ids: set[str]) -> None:
        try:
            await self.write_with(lambda noted: self._store.append_all([*noted, *logs]), run_ids)
        except StoreUnavailable as exc:
            if self.is_required:
                raise
            self._unwritten += logs
            self._warn_of_unwritten(exc.message, run_ids)

    def _warn_of_unwritten(self, problem: str, run_ids: set[str]) -> None:
        facts = {"unwritten": len(self.unwritten), "runs": sorted(run_ids)}
        _logger.warning("AGENTS-E-LOG-STORE: %s; the record is kept in memory %s", problem, facts)

    async def _after_earlier(self, run_ids: set[str]) -> None:
        """The decisions of a turn are written with the start of one of its calls. The starts of the others come after."""
        loop = asyncio.get_running_loop()
        while earlier := [
            write for write, runs in self._under_way.items() if runs & run_ids and write.get_loop() is loop
        ]:
            await asyncio.shield(earlier[0])

    @contextmanager
    def _carrying(self, logs: Sequence[ExecutionLog]) -> Iterator[None]:
        if not logs:
            yield
            return
        write = asyncio.get_running_loop().create_future()
        self._under_way[write] = {log.run_id for log in logs}
        try:
            yield
        finally:
            del self._under_way[write]
            write.set_result(None)

    async def _write_backlog(self) -> None:
        """Oldest first. One that the store refuses is put aside, so that the others get through."""
        if not self._unwritten:
            return
        waiting, self._unwritten = self._unwritten, []
        with self._carrying(waiting):
            try:
                while waiting:
                    await self._write_one(waiting[0])
                    waiting.pop(0)
            finally:
                self._unwritten = waiting + self._unwritten

    async def _write_one(self, log: ExecutionLog) -> None:
        try:
            await self._store.append(log)
        except DuplicateRecord:
            # It did arrive when the store seemed to fail. The first record of its kind stands.
            _logger.warning("an audit record was there already: %s %s", log.run_id, log.event)
        except RecordRefused as exc:
            _logger.warning("AGENTS-E-LOG-STORE: %s; %s of %s is not written", exc.message, log.event, log.run_id)
            self._refused.append(log)

    def masked(self, entry: AuditEntry) -> ExecutionLog:
        """The record as it is stored."""
        mask = self._masking
        return ExecutionLog(
            run_id=entry.run_id,
            tool_call_id=_shown_id(entry.tool_call_id, mask.text(entry.tool_call_id)),
            event=entry.event,
            decision=entry.decision,
            timestamp=self._now(),
            tool_name=mask.text(entry.tool_name),
            tool_kind=entry.tool_kind,
            risk_level=entry.risk_level,
            reason=mask.text(entry.reason),
            reasons=tuple(one.masked(mask.text) for one in entry.reasons),
            arguments=mask.mapping(entry.arguments or {}),
            comment=mask.text(entry.comment),
            who=mask.text(entry.who),
        )

    def _now(self) -> str:
        return timestamp(self._clock.now())

    # -----------------------------------------------------------------------------------------------------------------
    # Reading

    async def query(self, run_id: str | None = None, since: str | datetime | None = None) -> list[ExecutionLog]:
        moment = _moment(since)
        for noted in list(self._noted):
            await self.settle(noted)
        await self._write_backlog()
        return await self._store.query(run_id, moment)

    async def verify(self) -> LogVerification:
        return (await self._look())[1]

    async def accept_loss(self, reason: str, by: str = "") -> ExecutionLog:
        """A named person accepts the log as it is. That is a record itself."""
        if not is_text(reason) or not reason.strip() or len(reason) > LONGEST_TEXT:
            message = Sentence("Say in 1 to {most} characters why the loss is accepted", most=LONGEST_TEXT)
            raise config_error(message)
        logs, found = await self._look()
        if found.is_intact:
            raise config_error(Sentence("The log is intact: there is no loss to accept"))
        return await self._store.append(
            ExecutionLog(
                run_id="log",
                tool_call_id=f"loss_{uuid.uuid4().hex}",
                event=LOSS_ACCEPTED,
                decision="accepted",
                timestamp=self._now(),
                reason=found.problem,
                arguments={**facts_to_accept(logs, found), "by": self._masking.text(by)},
                comment=self._masking.text(reason),
            )
        )

    async def archive(self, before: str | datetime, file: ArchiveFile, by: str = "") -> ExecutionLog:
        """Move records from before this moment into the file. The record that takes their place says so.

        If the file exists and the log begins with its records, an earlier try was interrupted, and this one goes on.
        """
        moment = _moment(before) or ""
        logs, found = await self._look()
        if not found.is_intact:
            raise config_error(Sentence("The log is not intact, so nothing is moved out of it"))
        kept = file.read()
        moved = older_than(moment, logs) if kept is None else kept
        if not moved:
            message = Sentence("No record from before {moment} can be moved out of the log", moment=moment)
            raise config_error(message)
        if fingerprint(moved) != fingerprint(logs[: len(moved)]):
            found = archive_verification(moved, logs, log_is_intact=True)
            is_complete = found.is_intact and not found.uncovered
            raise config_error(
                Sentence("{name} is complete: its records have been moved out of this log before", name=file.name)
                if is_complete
                else Sentence("{name} is there already: choose another file", name=file.name),
            )
        if kept is None:
            file.write(moved)
        stated = statements(logs, None)
        facts = facts_of_archive(logs, moved, newest_archive(stated), accepted_count(stated[-1] if stated else None))
        record = await self._store.move_out(
            moved,
            ExecutionLog(
                run_id="log",
                tool_call_id=f"archive_{uuid.uuid4().hex}",
                event=LOG_ARCHIVED,
                decision="archived",
                timestamp=self._now(),
                reason=f"the records {moved[0].sequence} to {moved[-1].sequence} were moved to {file.name}",
                arguments={**facts, "by": self._masking.text(by)},
            ),
        )
        if record is None:
            raise config_error(Sentence("Others have moved these records out at the same time"))
        return record

    async def verify_archive(self, records: Sequence[ExecutionLog]) -> LogVerification:
        """Whether these are the records that were moved out of this log."""
        logs, found = await self._look()
        return archive_verification(records, logs, found.is_intact)

    async def _look(self) -> tuple[list[ExecutionLog], LogVerification]:
        """The log, verified. While others write, log and head are read again until they belong together."""
        head = self._head
        if head is None:
            logs = await self.query()
            return logs, verification(logs, None, NO_HEAD)
        for _ in range(_MOST_LOOKS):
            known, logs = head.read(), await self.query()
            is_quiet = head.read() == known
            if is_quiet:
                break
        # If the log has grown since the head was read, it must still contain what the head says.
        finding = misfit_of_log(known, logs, is_sole_writer=is_quiet and head.is_sole_writer)
        return logs, verification(logs, finding, "", known)


def _shown_id(call_id: str, masked: str) -> str:
    """Models choose ids. One that is masked, or too long for an index, is identified by its hash."""
    is_itself = masked == call_id and len(call_id) <= LONGEST_ID
    return call_id if is_itself else f"{masked[:LONGEST_ID]}…{digest(call_id)}"


def _moment(since: str | datetime | None) -> str | None:
    if since is None:
        return None
    try:
        moment = since if isinstance(since, datetime) else datetime.fromisoformat(since)
        return timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, TypeError, OverflowError) as exc:
        raise config_error(Sentence("since is a time such as 2026-11-16T09:00:00+09:00")) from exc
