"""This half's composition root: the one place where its adapters meet its use cases."""

import os
from typing import Any, get_args

from openai_responses_mcp.agents.adapters.openai_agents_engine import OpenAIAgentsEngine
from openai_responses_mcp.agents.approvals import ApprovalController
from openai_responses_mcp.agents.audit import AuditLog, AuditMode
from openai_responses_mcp.agents.configured import configured_runner
from openai_responses_mcp.agents.diagnosis import Diagnosis
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate import SafetyGate
from openai_responses_mcp.agents.log_level import apply_log_level
from openai_responses_mcp.agents.masking import Masking
from openai_responses_mcp.agents.models import RunOptions
from openai_responses_mcp.agents.ports import (
    ApprovalStore,
    Clock,
    ExecutionLogStore,
    Judge,
    PolicyStore,
    RunStateStore,
)
from openai_responses_mcp.agents.results import RunResult
from openai_responses_mcp.agents.runner import AgentRunner, RunnerParts
from openai_responses_mcp.agents.stores import open_stores, ttl_seconds
from openai_responses_mcp.agents.toolbox import get_provider, load_skills


def create_runner(
    *,
    safety_agent: Judge | None = None,
    store: str | None = None,
    policy_store: PolicyStore | None = None,
    approval_store: ApprovalStore | None = None,
    run_state_store: RunStateStore | None = None,
    log_store: ExecutionLogStore | None = None,
    clock: Clock | None = None,
    resume_token_ttl_sec: int | None = None,
    audit: AuditMode = "best_effort",
    audit_head: str | os.PathLike[str] | None = None,
) -> AgentRunner:
    """`store` is the URL of a SQLite or PostgreSQL database, by default one in memory; single stores can be given."""
    if safety_agent is None or not callable(getattr(safety_agent, "evaluate", None)):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "create_runner needs a safety_agent, such as SafetyAgent(judge)")
    if audit not in get_args(AuditMode):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "audit is best_effort or required")
    apply_log_level(os.environ)
    lifetime, stores, masking = ttl_seconds(resume_token_ttl_sec), open_stores(store, audit_head), Masking()
    time = clock or stores.clock
    policies = policy_store or stores.policies
    # A head tells about our own log only; a store that was given keeps its own.
    head = stores.head if log_store is None else None
    log = AuditLog(log_store or stores.logs, time, masking, audit, head)
    return AgentRunner(
        RunnerParts(
            engine=OpenAIAgentsEngine(),
            gate=SafetyGate(safety_agent, policies),
            approvals=ApprovalController(approval_store or stores.approvals, log, time, masking, lifetime),
            audit=log,
            policies=policies,
            runs=run_state_store or stores.runs,
            clock=time,
            masking=masking,
            diagnosis=Diagnosis(os.environ, get_provider, load_skills, policies=policies, log=log),
        )
    )


async def run(
    agent: Any, input: Any, options: RunOptions | None = None, *, runner: AgentRunner | None = None
) -> RunResult:
    """`runner.run(agent, input, options)`, with the configured runner where none is given."""
    return await (runner or configured_runner()).run(agent, input, options)
