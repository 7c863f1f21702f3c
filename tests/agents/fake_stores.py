"""The stores in plain dictionaries. They keep the same contracts as those on a database."""

from collections.abc import Sequence
from dataclasses import replace

from openai_responses_mcp.agents.approvals.models import StandingApproval
from openai_responses_mcp.agents.approvals.ports import ApprovalChoice, ApprovalRecord, ApprovalStore, StandingStore
from openai_responses_mcp.agents.audit.chain import linked
from openai_responses_mcp.agents.audit.heads import HashAt, Head, announced, confirmed
from openai_responses_mcp.agents.audit.models import LOSS_ACCEPTED, ExecutionLog, Place
from openai_responses_mcp.agents.audit.ports import AuditHead, ExecutionLogStore
from openai_responses_mcp.agents.calls import ToolKind
from openai_responses_mcp.agents.clock import Clock
from openai_responses_mcp.agents.errors import DuplicateRecord, StoreUnavailable
from openai_responses_mcp.agents.gate.ports import BudgetStore
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import PROFILES, PolicyProfile, profile_name
from openai_responses_mcp.agents.runs.models import RunStatus
from openai_responses_mcp.agents.runs.ports import RunRecord, RunStateStore
from openai_responses_mcp.agents.stores import Stores


def fake_stores(clock: Clock) -> Stores:
    return Stores(
        policies=FakePolicyStore(),
        approvals=FakeApprovalStore(),
        runs=FakeRunStateStore(),
        logs=FakeExecutionLogStore(),
        head=None,
        clock=clock,
        standing=FakeStandingStore(),
        budgets=FakeBudgetStore(),
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
        if record is None or record.request.status != "pending" or record.replaced_by is not None:
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

    async def consume(self, pause_id: str, token_hash: str | None, now: str) -> bool:
        pause = await self.list_of_pause(pause_id)
        tokens = [one for one in pause if one.token_hash == token_hash and (one.expires_at or "") > now]
        if token_hash is not None and not tokens:
            return False
        if any(one.used_at or one.request.status == "pending" or _has_expired(one, now) for one in pause):
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
    def __init__(self) -> None:
        self._all: dict[str, StandingApproval] = {}

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


def _identity(log: ExecutionLog) -> tuple[str, str, str]:
    return log.run_id, log.tool_call_id, log.event


class FakeHead(AuditHead):
    """A head in memory."""

    def __init__(self, *, is_sole_writer: bool = True) -> None:
        self.head: Head | None = None
        self.breaks_at_confirming = False
        self._is_sole_writer = is_sole_writer

    @property
    def is_sole_writer(self) -> bool:
        return self._is_sole_writer

    def read(self) -> Head | None:
        return self.head

    def announce(self, before: Place, end: Place, hash_at: HashAt) -> None:
        self.head = announced(self.head, before, end, hash_at, is_sole_writer=self._is_sole_writer)

    def confirm(self, record: ExecutionLog) -> None:
        if self.breaks_at_confirming:
            raise StoreUnavailable("broken on purpose")
        self.head = confirmed(self.head, record, is_accepting=record.event == LOSS_ACCEPTED) or self.head
