"""What runs are tried on, without the SDK: an agent with a harmless tool and a risky one, its judge, its runner."""

import asyncio
import os
from dataclasses import replace
from typing import Any

from openai_responses_mcp.agents.composition import runner_on
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.runs.book import Sleep
from openai_responses_mcp.agents.runs.models import Extensions, RunOptions
from openai_responses_mcp.gate.approvals.controller import OnRequested
from openai_responses_mcp.gate.approvals.decisions import lifetime_seconds
from openai_responses_mcp.gate.approvals.models import HumanDecision, StandingStore
from openai_responses_mcp.gate.audit.log import AuditMode
from openai_responses_mcp.gate.audit.records import ExecutionLogStore
from openai_responses_mcp.gate.clock import Clock
from openai_responses_mcp.gate.policy.ruling import PolicyRules
from openai_responses_mcp.gate.safety_gate import Judge
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fake_engine import FakeAgent, FakeCall, FakeEngine, FakeTool
from tests.agents.fake_stores import fake_stores
from tests.agents.fakes import FakeClock, FakeJudge, within

AMOUNT = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}},
    "required": ["amount"],
    "additionalProperties": False,
}


class Scene:
    """Two tools that note what they were called with, an agent, a judge and a runner on the fake engine."""

    def __init__(self, *turns: Any, judge: Judge | None = None, **options: Any) -> None:
        self.ran: list[str] = []
        self.judge = FakeJudge()
        self.engine = FakeEngine(*turns)
        self.look = FakeTool("look", self._look, "Look at something.")
        self.pay = FakeTool("pay", self._pay, "Pay somebody.", risk_level=3, parameters=AMOUNT)
        self.agent = FakeAgent("Clerk", [self.look, self.pay])
        self.sleeping: Sleep = asyncio.sleep
        self.runner = fake_runner(self.engine, judge or self.judge, sleep=self._sleep, **options)

    async def _sleep(self, seconds: float) -> None:
        await self.sleeping(seconds)

    def _look(self, what: str = "around") -> str:
        self.ran.append(f"look {what}")
        return f"saw {what}"

    def _pay(self, amount: int) -> str:
        self.ran.append(f"pay {amount}")
        return f"paid {amount}"

    async def go(self, extensions: Extensions | None = None) -> Any:
        return await within(self.runner.run(self.agent, "go", RunOptions(extensions=extensions)))

    async def paused(self) -> Any:
        result = await self.go()
        assert result.interruptions
        return result

    async def decided(self, decision: HumanDecision = "approve", comment: str | None = None, **more: Any) -> Any:
        """The paused run, and the token of the decision on its first call."""
        paused = await self.paused()
        approval_id = paused.interruptions[0].approval_id
        return paused, await self.runner.submit_approval(approval_id, decision, comment, **more)

    async def events(self) -> list[tuple[str, str]]:
        return [(log.event, log.decision) for log in await self.runner.get_execution_logs()]


def fake_runner(
    engine: FakeEngine,
    judge: Judge,
    *,
    store: str | None = None,
    log_store: ExecutionLogStore | None = None,
    clock: Clock | None = None,
    resume_token_ttl_sec: int | None = None,
    audit: AuditMode = "best_effort",
    on_approval_requested: OnRequested | None = None,
    sleep: Sleep = asyncio.sleep,
    rules: PolicyRules | None = None,
    standing: StandingStore | None = None,
) -> AgentRunner:
    """With the URL of a store the stores are real; without, they are fakes too."""
    stores = fake_stores(FakeClock()) if store is None else _real_stores(store)
    stores = replace(
        stores,
        logs=log_store or stores.logs,
        clock=clock or stores.clock,
        standing=standing or stores.standing,
    )
    if log_store is not None:
        stores = replace(stores, head=None)
    lifetime = lifetime_seconds(resume_token_ttl_sec, os.environ)
    return runner_on(
        engine, judge, stores, lifetime, audit, rules=rules, on_approval_requested=on_approval_requested, sleep=sleep
    )


def _real_stores(url: str) -> Stores:
    # Scenes on fakes do without the database, and a test holds them to it.
    from openai_responses_mcp.gate.sql.sql_stores import open_stores

    return open_stores(url)


LOOK = FakeCall("look", {"what": "here"}, "l-1")
PAY = FakeCall("pay", {"amount": 5}, "p-1")
