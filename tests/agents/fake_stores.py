"""The stores in plain dictionaries, with the same contracts as those on a database."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from openai_responses_mcp.gate.approvals.models import (
    KEPT_SECONDS,
    USED_WITHIN_SECONDS,
    ApprovalChoice,
    ApprovalRecord,
    ApprovalStore,
    StandingApproval,
    StandingStore,
)
from openai_responses_mcp.gate.audit.records import (
    LOSS_ACCEPTED,
    AuditHead,
    ExecutionLog,
    ExecutionLogStore,
    HashAt,
    Head,
    LogPlace,
    announced,
    confirmed,
    linked,
)
from openai_responses_mcp.gate.budgets import BudgetStore
from openai_responses_mcp.gate.calls import GuardedServer, ToolKind
from openai_responses_mcp.gate.clock import Clock, Presence, PresenceKind, PresenceStore, later
from openai_responses_mcp.gate.errors import DuplicateRecord, StoreUnavailable
from openai_responses_mcp.gate.policy.rules import PROFILES, PolicyProfile, PolicyStore, profile_name
from openai_responses_mcp.gate.stores import (
    CallStart,
    KnownTool,
    RunRecord,
    RunStateStore,
    RunStatus,
    StartBook,
    StartOutcome,
    Stores,
    is_free_to_start,
)


def fake_stores(clock: Clock) -> Stores:
    logs, budgets = FakeExecutionLogStore(), FakeBudgetStore()
    return Stores(
        policies=FakePolicyStore(),
        approvals=FakeApprovalStore(),
        runs=FakeRunStateStore(),
        logs=logs,
        head=None,
        clock=clock,
        standing=FakeStandingStore(),
        budgets=budgets,
        starts=FakeStartBook(logs, budgets),
        presence=FakePresenceStore(),
    )


class FakePolicyStore(PolicyStore):
    def __init__(self) -> None:
        self.profiles = dict(PROFILES)

    async def get_profile(self, name: str) -> PolicyProfile:
        return self.profiles[profile_name(name)]

    async def set_profile(self, profile: PolicyProfile) -> None:
        self.profiles[profile.name] = profile


class FakeRunStateStore(RunStateStore):
    def __init__(self) -> None:
        self._records: dict[str, RunRecord] = {}

    async def save(self, record: RunRecord) -> None:
        known = self._records.get(record.run_id, record)
        self._records[record.run_id] = replace(record, created_at=known.created_at)

    async def get(self, run_id: str) -> RunRecord | None:
        return self._records.get(run_id)

    async def list_runs(self, status: RunStatus | None = None) -> list[RunRecord]:
        return [record for record in self._records.values() if status in (None, record.status)]


class FakeApprovalStore(ApprovalStore):
    def __init__(self) -> None:
        self._records: dict[str, ApprovalRecord] = {}
        self._latest = ""

    async def latest_moment(self, now: str) -> str:
        self._latest = max(self._latest, now)
        return self._latest

    async def create(self, records: Sequence[ApprovalRecord]) -> None:
        if any(record.request.approval_id in self._records for record in records):
            raise StoreUnavailable("This approval is there already")
        self._records.update((record.request.approval_id, record) for record in records)
        await self.latest_moment(max(record.request.created_at for record in records))

    async def get(self, approval_id: str) -> ApprovalRecord | None:
        return self._records.get(approval_id)

    async def ids_beginning(self, start: str) -> list[str]:
        return sorted(one for one in self._records if one.startswith(start))[:3]

    async def find_by_token(self, token_hash: str) -> ApprovalRecord | None:
        return next((record for record in self._records.values() if record.token_hash == token_hash), None)

    async def list_pending(self, run_id: str | None = None) -> list[ApprovalRecord]:
        return [one for one in self._counting(run_id) if one.request.status == "pending"]

    async def list_expired(self, now: str, run_id: str | None = None) -> list[ApprovalRecord]:
        return [one for one in self._counting(run_id) if one.used_at is None and _has_expired(one, now)]

    async def list_of_pause(self, pause_id: str) -> list[ApprovalRecord]:
        return [one for one in self._counting() if one.pause_id == pause_id]

    async def list_newest_pause(self, run_id: str) -> list[ApprovalRecord]:
        pauses = [one.pause_id for one in self._records.values() if one.request.run_id == run_id]
        return await self.list_of_pause(pauses[-1]) if pauses else []

    async def decide(self, choice: ApprovalChoice) -> bool:
        record = self._records.get(choice.approval_id)
        before = ("withdrawn", "approved") if choice.status == "kept" else ("pending",)
        if record is None or record.request.status not in before or record.replaced_by or record.used_at:
            return False
        request = replace(
            record.request,
            status=choice.status,
            comment=choice.comment,
            decided_at=choice.decided_at,
            tell_model=choice.tell_model,
            changed_arguments=choice.changed_arguments,
        )
        self._put(
            replace(
                record,
                request=request,
                token_hash=choice.token_hash,
                binding=choice.binding,
                expires_at=choice.expires_at,
            )
        )
        return True

    async def find_kept(self, like: ApprovalRecord, now: str) -> ApprovalRecord | None:
        def key(one: ApprovalRecord) -> tuple[object, ...]:
            tool = (one.request.caller, one.request.tool_kind, one.request.tool_name)
            return (*tool, one.arguments_hash, one.definition_hash, one.origin)

        for one in self._counting():
            is_left_by_killed_guard = (
                one.request.status == "approved"
                and one.waits_until is not None
                and one.request.changed_arguments is None
                and later(now, -KEPT_SECONDS) < (one.request.decided_at or "") <= later(now, -USED_WITHIN_SECONDS)
            )
            if (
                (one.request.status == "kept" or is_left_by_killed_guard)
                and not one.used_at
                and (one.expires_at or "") > now
                and key(one) == key(like)
            ):
                return one
        return None

    async def consume(self, pause_id: str, token_hash: str | None, now: str) -> bool:
        pause = await self.list_of_pause(pause_id)
        tokens = [one for one in pause if one.token_hash == token_hash and (one.expires_at or "") > now]
        if token_hash is not None and not tokens:
            return False
        if any(one.used_at or one.request.status == "pending" or _has_expired(one, now) for one in pause):
            return False
        if any(one.request.status == "kept" and (one.expires_at or "") <= now for one in pause):
            return False
        for one in pause:
            self._put(replace(one, used_at=one.used_at or now))
        return True

    async def replace(self, approval_id: str, record: ApprovalRecord) -> bool:
        old = self._records[approval_id]
        if old.replaced_by is not None or old.used_at is not None:
            return False
        self._put(replace(old, replaced_by=record.request.approval_id))
        self._put(record)
        return True

    async def respond(self, approval_id: str, human_response: str) -> None:
        self._put(replace(self._records[approval_id], human_response=human_response))

    def _counting(self, run_id: str | None = None) -> list[ApprovalRecord]:
        records = [record for record in self._records.values() if record.replaced_by is None]
        return [record for record in records if run_id in (None, record.request.run_id)]

    def _put(self, record: ApprovalRecord) -> None:
        self._records[record.request.approval_id] = record


def _has_expired(record: ApprovalRecord, now: str) -> bool:
    return record.request.status == "approved" and (record.expires_at or "") <= now


class FakeStandingStore(StandingStore):
    def __init__(self, *made: StandingApproval) -> None:
        self._all = {one.standing_id: one for one in made}

    async def create(self, standing: StandingApproval) -> None:
        if standing.standing_id in self._all:
            raise StoreUnavailable("This standing approval is there already")
        self._all[standing.standing_id] = standing

    async def get(self, standing_id: str) -> StandingApproval | None:
        return self._all.get(standing_id)

    async def list_standing(
        self, tool_kind: ToolKind | None = None, tool_name: str | None = None
    ) -> list[StandingApproval]:
        holding = [one for one in self._all.values() if one.ended_at is None]
        return [one for one in holding if tool_name is None or (one.tool_kind, one.tool_name) == (tool_kind, tool_name)]

    async def end(self, standing_id: str, ended_at: str, because: str) -> bool:
        known = self._all.get(standing_id)
        if known is None or known.ended_at is not None:
            return False
        self._all[standing_id] = replace(known, ended_at=ended_at, ended_because=because)
        return True


class FakeBudgetStore(BudgetStore):
    def __init__(self) -> None:
        self.is_broken = False
        self._used: dict[str, int] = {}
        self._allowed_to: dict[str, int] = {}

    async def read(self, window: str) -> tuple[int, int]:
        if self.is_broken:
            raise StoreUnavailable("broken on purpose")
        return self._used.get(window, 0), self._allowed_to.get(window, 0)

    async def spend(self, window: str, amount: int) -> None:
        if self.is_broken:
            raise StoreUnavailable("broken on purpose")
        self._used[window] = self._used.get(window, 0) + amount

    async def allow_to(self, window: str, amount: int) -> None:
        self._allowed_to[window] = max(self._allowed_to.get(window, 0), amount)


class FakeExecutionLogStore(ExecutionLogStore):
    def __init__(self) -> None:
        self._logs: list[ExecutionLog] = []

    async def append(self, log: ExecutionLog) -> ExecutionLog:
        if any(_identity(one) == _identity(log) for one in self._logs):
            raise DuplicateRecord(f"{log.event} of this call is recorded already")
        self._logs.append(linked(log, self._logs[-1] if self._logs else None))
        return self._logs[-1]

    async def query(self, run_id: str | None = None, since: str | None = None) -> list[ExecutionLog]:
        logs = [log for log in self._logs if run_id in (None, log.run_id)]
        return [log for log in logs if since is None or log.timestamp >= since]

    async def move_out(self, moved: Sequence[ExecutionLog], record: ExecutionLog) -> ExecutionLog | None:
        if self._logs[: len(moved)] != list(moved):
            return None
        appended = await self.append(record)
        del self._logs[: len(moved)]
        return appended


def _identity(log: ExecutionLog) -> tuple[str, str, str]:
    return log.run_id, log.tool_call_id, log.event


class FakeHead(AuditHead):
    def __init__(self, *, is_sole_writer: bool = True) -> None:
        self.head: Head | None = None
        self.breaks_at_confirming = False
        self._is_sole_writer = is_sole_writer

    @property
    def is_sole_writer(self) -> bool:
        return self._is_sole_writer

    def read(self) -> Head | None:
        return self.head

    def announce(self, before: LogPlace, end: LogPlace, hash_at: HashAt, archived_to: int = 0) -> None:
        is_sole = self._is_sole_writer
        self.head = announced(self.head, before, end, hash_at, is_sole_writer=is_sole, archived_to=archived_to)

    def confirm(self, record: ExecutionLog) -> None:
        if self.breaks_at_confirming:
            raise StoreUnavailable("broken on purpose")
        self.head = confirmed(self.head, record, is_accepting=record.event == LOSS_ACCEPTED) or self.head


class FakePresenceStore(PresenceStore):
    def __init__(self) -> None:
        self._all: dict[str, Presence] = {}

    async def renew(self, presence: Presence) -> None:
        self._all[presence.presence_id] = presence

    async def leave(self, presence_id: str) -> None:
        self._all.pop(presence_id, None)

    async def renewed_since(self, moment: str, kind: PresenceKind | None = None) -> list[Presence]:
        found = [one for one in self._all.values() if one.renewed_at >= moment and kind in (None, one.kind)]
        return sorted(found, key=lambda one: (one.since, one.presence_id))


class FakeStartBook(StartBook):
    def __init__(self, logs: ExecutionLogStore, budgets: "FakeBudgetStore") -> None:
        self.pins: dict[tuple[str, str], str] = {}
        self.servers: dict[tuple[str, str], str] = {}
        self._logs = logs
        self._budgets = budgets

    async def known(self, server: GuardedServer, tool: str) -> KnownTool:
        others = tuple(command for (name, _), command in self.servers.items() if name == server.name)
        is_known = (server.name, server.fingerprint) in self.servers
        return KnownTool(self.pins.get((tool, server.fingerprint)), () if is_known else others)

    async def start(self, before: Sequence[ExecutionLog], starts: Sequence[CallStart]) -> list[StartOutcome]:
        pins, spent = dict(self.pins), Counter[str]()
        outcomes: list[StartOutcome] = [await self._outcome(start, pins, spent) for start in starts]
        started = [start for start, outcome in zip(starts, outcomes, strict=True) if outcome == "started"]
        await self._logs.append_all([*before, *(record for start in started for record in start.records)])
        self.pins = pins
        self.servers |= {(one.server.name, one.server.fingerprint): one.server.command for one in started}
        for window, amount in spent.items():
            await self._budgets.spend(window, amount)
        return outcomes

    async def _outcome(self, start: CallStart, pins: dict[tuple[str, str], str], spent: Counter[str]) -> StartOutcome:
        if not is_free_to_start(pins.get((start.tool, start.server.fingerprint)), start):
            return "changed"
        for one in start.spends:
            used, allowed_to = await self._budgets.read(one.window)
            if used + spent[one.window] >= max(one.most, allowed_to):
                return "over_budget"
        spent.update(one.window for one in start.spends)
        pins[(start.tool, start.server.fingerprint)] = start.pin
        return "started"
