"""The keeper of calls between two ends in memory, on stores in dictionaries; a person answers at once or not at all."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Self

from openai_responses_mcp.gate.approvals.controller import ApprovalController, RecordedFirst
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.approvals.standing import StandingApprovals
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.budgets import SessionBudget, limits_of
from openai_responses_mcp.gate.calls import GuardedServer
from openai_responses_mcp.gate.policy.rules import Policy
from openai_responses_mcp.gate.policy.ruling import PolicyRules
from openai_responses_mcp.gate.safety_gate import SafetyGate
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.stores import Stores
from openai_responses_mcp.guard.asking import READING_SECONDS, Asking
from openai_responses_mcp.guard.call_keeper import CallKeeper
from openai_responses_mcp.guard.definitions import Definitions
from openai_responses_mcp.guard.gatekeeping import Gatekeeper, GuardSession, NoJudge, Records
from openai_responses_mcp.guard.given_replies import GivenReplies
from openai_responses_mcp.guard.relay import Relay
from openai_responses_mcp.guard.servers import GuardOptions
from tests.agents.fake_policy import FakePaths, FakePolicySource
from tests.agents.fake_stores import FakeBudgetStore, FakeStartBook, fake_stores
from tests.agents.fakes import BreakableLogStore, FakeClock
from tests.fakes import PAUSE_SECONDS, WAIT_SECONDS, FakeTransport
from tests.guard.fake_process import FakeNotices

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
SECRET = {"type": "object", "properties": {"text": {"type": "string"}, "password": {"type": "string"}}}


def entry(name: str, **changes: Any) -> dict[str, Any]:
    return {"name": name, "description": f"does {name}", "inputSchema": SECRET, **changes}


class GuardScene:
    """`server_lists` is what `tools/list` is answered with; calls are answered with their arguments.

    With `beside` it is a second guard of the same server on the stores of the first.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        profile: str = "balanced",
        observes: bool = False,
        wait_seconds: float | None = None,
        beside: "GuardScene | None" = None,
    ) -> None:
        self.client, self.server, self.notices = FakeTransport(), FakeTransport(), FakeNotices()
        self.clock: FakeClock = beside.clock if beside else FakeClock()
        self.budgets: FakeBudgetStore = beside.budgets if beside else FakeBudgetStore()
        self.stores: Stores = beside.stores if beside else replace(fake_stores(self.clock), budgets=self.budgets)
        self.logs: BreakableLogStore = beside.logs if beside else BreakableLogStore(self.stores.logs)
        self.starts: FakeStartBook = beside.starts if beside else FakeStartBook(self.logs, self.budgets)
        run_id = "guard_2" if beside else "guard_1"
        self.policy = policy or Policy()
        self.server_lists: list[Any] = [entry("echo"), entry("other")]
        self.pages: dict[str | None, Any] = {}
        self.sleeps: list[float] = []
        self.notified: list[tuple[HumanApprovalRequest, str]] = []
        self.is_desk_open, self.reading_seconds, self._moment = False, READING_SECONDS, 1000.0
        masking = Masking({"MY_SECRET_KEY": "planted-secret-value"})
        self.source = FakePolicySource()
        self.source.policy = self.policy
        rules = PolicyRules(self.source, FakePaths())
        replies = GivenReplies(rules, "small", masking, is_observing=observes)
        self.relay = Relay(self.client, self.server, self._loaded, self.notices.tell, replies)
        audit = AuditLog(self.logs, self.stores.clock, masking, "required")
        decisions = RecordedFirst(self.stores.approvals, self.logs)
        self.approvals = ApprovalController(
            self.stores.approvals, decisions, audit, self.stores.clock, masking, 900, presence=self.stores.presence
        )
        self.standing = standing = StandingApprovals(
            self.stores.standing, self.stores.approvals, audit, self.stores.clock, masking
        )
        options = GuardOptions(("small",), "small", profile=profile, observe=observes, wait_seconds=wait_seconds)
        session = GuardSession(options, run_id, "", "en")
        self.guarded = GuardedServer("small", "fingerprint", "python small.py")
        gate = SafetyGate(NoJudge(), self.stores.policies, masking, rules=rules, standing=standing)
        budget = SessionBudget(
            self.stores.budgets, self.stores.clock, run_id, lambda: limits_of(self.policy.budget, "small")
        )
        self.asking = Asking(
            session,
            lambda: self.policy,
            self.approvals,
            standing,
            self.relay.client,
            self.relay.ways,
            self.notices.tell,
            self._is_desk_open,
            self._sleep,
            self._monotonic,
            lambda *asked: self.notified.append(asked),
        )
        self.keeper = CallKeeper(
            session,
            self.relay.server,
            Definitions(
                self.guarded,
                self.relay.listings,
                self.relay.server,
                self.starts,
                lambda *one: self.source.policy.stable_entry(*one),
            ),
            Gatekeeper(session, gate, budget, masking),
            Records(audit, self.starts),
            self.asking,
            masking,
        )
        self._readers: list[asyncio.Task[None]] = []
        self._answered = 0

    async def _loaded(self, _: Relay) -> CallKeeper:
        return self.keeper

    async def _is_desk_open(self) -> bool:
        return self.is_desk_open

    def _monotonic(self) -> float:
        """Whoever answers has taken `reading_seconds` for it."""
        self._moment += self.reading_seconds
        return self._moment

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await asyncio.sleep(PAUSE_SECONDS)

    async def __aenter__(self) -> Self:
        self._readers = [
            asyncio.create_task(one) for one in (self.relay.read_client(), self.relay.read_server(), self._serve())
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.relay.finish("over")
        self.client.end()
        self.server.end()
        self._readers[2].cancel()
        await asyncio.wait(self._readers, timeout=WAIT_SECONDS)

    async def _serve(self) -> None:
        """The server: lists its tools, and answers every call but those of `hang`."""
        while True:
            for message in (await self.server.wait_for_sent(self._answered + 1))[self._answered :]:
                self._answered += 1
                if message.get("method") == "tools/list":
                    page = self.pages.get(message["params"].get("cursor"), {"tools": self.server_lists})
                    self.server.enqueue(
                        {"jsonrpc": "2.0", "id": message["id"], **(page if "error" in page else {"result": page})}
                    )
                elif message.get("method") == "tools/call" and message["params"]["name"] != "hang":
                    self.server.enqueue({"jsonrpc": "2.0", "id": message["id"], "result": self.result_of(message)})

    def result_of(self, message: dict[str, Any]) -> Any:
        return {"content": [], "structuredContent": message["params"].get("arguments")}

    def declare(self, *, elicitation: bool) -> None:
        capabilities: dict[str, Any] = {"elicitation": {}} if elicitation else {}
        params = {"protocolVersion": "2025-06-18", "capabilities": capabilities}
        self.client.enqueue({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})
        self.server.enqueue({"jsonrpc": "2.0", "id": "init", "result": {"protocolVersion": "2025-06-18"}})

    def start(self, call_id: int | str = 1, name: Any = "echo", arguments: Any = None, **others: Any) -> None:
        params = {"name": name, "arguments": {"text": "hi"} if arguments is None else arguments, **others}
        self.client.enqueue({"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params})

    async def call(self, call_id: int | str = 1, name: Any = "echo", arguments: Any = None, **others: Any) -> Any:
        self.start(call_id, name, arguments, **others)
        return await self.reply(call_id)

    async def reply(self, call_id: int | str = 1) -> Any:
        return await self.to_client(lambda message: message.get("id") == call_id and "method" not in message)

    def cancel(self, call_id: int | str = 1) -> None:
        params = {"requestId": call_id}
        self.client.enqueue({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def to_client(self, is_it: Callable[[Any], bool]) -> Any:
        """The first message to the client that is the one looked for."""
        count = 0
        while True:
            messages = await self.client.wait_for_sent(count + 1)
            found = [message for message in messages if is_it(message)]
            if found:
                return found[0]
            count = len(messages)

    async def list_changed(self) -> None:
        """The server says that its tools have changed, and the guard has heard it."""
        changed = "notifications/tools/list_changed"
        self.server.enqueue({"jsonrpc": "2.0", "method": changed})
        await self.to_client(lambda message: message.get("method") == changed)

    async def asked_in_client(self, call_id: int | str = 1, name: str = "echo", arguments: Any = None) -> Any:
        """The question about a call, from a guard whose client can ask."""
        self.declare(elicitation=True)
        self.start(call_id, name, arguments)
        return await self.question()

    async def question(self) -> Any:
        return await self.to_client(lambda message: message.get("method") == "elicitation/create")

    def answer(self, question: Any, decision: str, comment: str = "") -> None:
        result = {"action": "accept", "content": {"decision": decision, "comment": comment}}
        self.client.enqueue({"jsonrpc": "2.0", "id": question["id"], "result": result})

    async def until(self, look: Callable[[], Awaitable[Any]]) -> Any:
        async with asyncio.timeout(WAIT_SECONDS):
            found = await look()
            while not found:
                await asyncio.sleep(PAUSE_SECONDS)
                found = await look()
        return found

    async def asked(self) -> str:
        """The id of the request that somebody has to decide."""

        async def look() -> str:
            waiting = await self.approvals.pending()
            return waiting[0].approval_id if waiting else ""

        found: str = await self.until(look)
        return found

    async def until_status(self, approval_id: str, status: str) -> None:
        async def look() -> bool:
            return (await self.approvals.get(approval_id)).request.status == status

        await self.until(look)

    async def until_pending(self, count: int) -> list[HumanApprovalRequest]:
        async def look() -> bool:
            return len(await self.approvals.pending()) == count

        await self.until(look)
        return await self.approvals.pending()

    async def events(self) -> list[tuple[str, str, str]]:
        await self.keeper._records.settle()
        return [(log.tool_call_id, log.event, log.decision) for log in await self.stores.logs.query()]

    def calls_at_server(self) -> list[Any]:
        return [message["params"] for message in self.server.replies() if message.get("method") == "tools/call"]


def refusal_in(reply: Any) -> str:
    assert reply["result"]["isError"] is True
    return str(reply["result"]["content"][0]["text"]).removeprefix("The guard did not run small/")
