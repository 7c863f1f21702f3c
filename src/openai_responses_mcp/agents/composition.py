"""The composition root of the library: the one place where its adapters meet its use cases.

`create_runner` comes first. What it shares with the desk and with the guard follows; the guard has a root of its own
(`guard_composition`), because it has to be ready before most of this is loaded.

Adapters are imported inside the functions that need them. The SDK takes seconds to import, and a terminal that lists
approvals does without it.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, cast, get_args

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.approvals.decisions import RecordedFirst
from openai_responses_mcp.agents.approvals.notices import OnRequested
from openai_responses_mcp.agents.approvals.ports import ApprovalStore
from openai_responses_mcp.agents.approvals.standing import StandingApprovals
from openai_responses_mcp.agents.approvals.tokens import lifetime_seconds
from openai_responses_mcp.agents.audit.log import AuditLog, AuditMode
from openai_responses_mcp.agents.audit.ports import ExecutionLogStore
from openai_responses_mcp.agents.clock import Clock
from openai_responses_mcp.agents.desk.desk import Desk
from openai_responses_mcp.agents.desk.entrance import Entrance
from openai_responses_mcp.agents.doctor.diagnosis import Diagnosis
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.ports import Judge
from openai_responses_mcp.agents.gate.replaying import Replay, replay
from openai_responses_mcp.agents.gate.safety_gate import SafetyGate
from openai_responses_mcp.agents.log_level import apply_log_level
from openai_responses_mcp.agents.mcp.models import McpRules
from openai_responses_mcp.agents.policy.checking import PolicyFindings
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.ruling import PolicyRules
from openai_responses_mcp.agents.providers.models import ProviderName
from openai_responses_mcp.agents.providers.ports import ProviderHandle
from openai_responses_mcp.agents.providers.settings import chosen_provider, settings_from, timeout_ms_from
from openai_responses_mcp.agents.runner import AgentRunner, RunnerParts
from openai_responses_mcp.agents.runs.book import RunBook
from openai_responses_mcp.agents.runs.finishing import FinishRun
from openai_responses_mcp.agents.runs.pausing import PauseRun
from openai_responses_mcp.agents.runs.ports import AgentEngine, RunStateStore
from openai_responses_mcp.agents.runs.reading_back import ReadRunBack
from openai_responses_mcp.agents.runs.resuming import ResumeRun
from openai_responses_mcp.agents.runs.run_guards import RunGuards
from openai_responses_mcp.agents.runs.saved_state import SavedStates
from openai_responses_mcp.agents.runs.starting import StartRun
from openai_responses_mcp.agents.runs.watching import Sleep, WatchRuns
from openai_responses_mcp.agents.secrets.masking import Masking
from openai_responses_mcp.agents.secrets.withholding import Withholding
from openai_responses_mcp.agents.skills.models import Skill, SkillList, SkillManifest, SkillMode, SkillSummary
from openai_responses_mcp.agents.skills.registry import DetailLevel, SkillRegistry
from openai_responses_mcp.agents.stores import Stores

if TYPE_CHECKING:
    from openai_responses_mcp.agents.adapters.mcp.hosted_server import HostedMcpServer
    from openai_responses_mcp.agents.adapters.sdk.tool_traits import SdkFunctionTool, SdkTool

# ---------------------------------------------------------------------------------------------------------------------
# Runners


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
    policy_file: str | os.PathLike[str] | None = None,
    on_approval_requested: OnRequested | None = None,
) -> AgentRunner:
    """`store` is the URL of a SQLite or PostgreSQL database, by default one in memory; single stores can be given.

    A `policy_file` that cannot be used is `AGENTS-E-POLICY-INVALID` with everything that is wrong with it.
    `on_approval_requested` is called with every request that a human has to decide, sync or async.
    """
    if safety_agent is None or not callable(getattr(safety_agent, "evaluate", None)):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "create_runner needs a safety_agent, such as SafetyAgent(judge)")
    if audit not in get_args(AuditMode):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "audit is best_effort or required")
    if on_approval_requested is not None and not callable(on_approval_requested):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "on_approval_requested is a callable that takes a request")
    from openai_responses_mcp.agents.adapters.mcp.guarded_tools import guarded_mcp_tools
    from openai_responses_mcp.agents.adapters.sdk.engine import OpenAIAgentsEngine
    from openai_responses_mcp.agents.adapters.stores.given_stores import with_given
    from openai_responses_mcp.agents.adapters.stores.opening import open_stores

    apply_log_level(os.environ)
    rules = None if policy_file is None else open_rules(policy_file)
    if rules and rules.policy.audit == "required":
        audit = "required"
    opened = open_stores(store, audit_head)
    stores = with_given(opened, policy_store, approval_store, run_state_store, log_store)
    return runner_on(
        OpenAIAgentsEngine(partial(guarded_mcp_tools, kept=stores.pins)),
        safety_agent,
        replace(stores, clock=clock or stores.clock),
        lifetime_seconds(resume_token_ttl_sec, os.environ),
        audit,
        rules=rules,
        on_approval_requested=on_approval_requested,
    )


def runner_on(
    engine: AgentEngine,
    judge: Judge,
    stores: Stores,
    token_ttl_seconds: int,
    audit: AuditMode = "best_effort",
    *,
    rules: PolicyRules | None = None,
    on_approval_requested: OnRequested | None = None,
    sleep: Sleep = asyncio.sleep,
) -> AgentRunner:
    """The use cases of a runner around any engine and any stores."""
    masking, clock, policies = Masking(), stores.clock, stores.policies
    log = AuditLog(stores.logs, clock, masking, audit, stores.head)
    approvals = controller_on(stores, log, masking, token_ttl_seconds, on_approval_requested)
    book, states = RunBook(stores.runs, clock), SavedStates(Withholding(masking))
    standing = standing_on(stores, log, masking)
    gate = SafetyGate(judge, policies, masking, rules=rules, standing=standing)
    guards = RunGuards(gate, log, masking, stores.budgets, clock)
    finish = FinishRun(PauseRun(book, approvals, states), book, log, masking, standing)
    read_back = ReadRunBack(engine, book, approvals, guards, states)
    return AgentRunner(
        RunnerParts(
            start=StartRun(engine, book, guards, finish),
            resume=ResumeRun(read_back, approvals, log, book, finish),
            watch=WatchRuns(book, approvals, sleep),
            approvals=approvals,
            audit=log,
            policies=policies,
            book=book,
            engine=engine,
            diagnosis=Diagnosis(os.environ, get_provider, load_skills, policies=policies, verify_log=log.verify),
        )
    )


# ---------------------------------------------------------------------------------------------------------------------
# What a runner, the desk and the guard have in common


def controller_on(
    stores: Stores, audit: AuditLog, masking: Masking, token_ttl_seconds: int, on_requested: OnRequested | None = None
) -> ApprovalController:
    decisions = stores.decisions or RecordedFirst(stores.approvals, stores.logs)
    return ApprovalController(
        stores.approvals, decisions, audit, stores.clock, masking, token_ttl_seconds, on_requested
    )


def standing_on(stores: Stores, audit: AuditLog, masking: Masking) -> StandingApprovals:
    return StandingApprovals(stores.standing, stores.approvals, audit, stores.clock, masking)


def open_rules(policy_file: str | os.PathLike[str]) -> PolicyRules:
    """The rules of a policy file, on this machine's paths. Raises `AGENTS-E-POLICY-INVALID`."""
    from openai_responses_mcp.agents.adapters.linear_patterns import LinearPatterns
    from openai_responses_mcp.agents.adapters.policy_file import PolicyFile
    from openai_responses_mcp.agents.adapters.system_paths import SystemPaths

    return PolicyRules(PolicyFile(policy_file, LinearPatterns()), SystemPaths())


# ---------------------------------------------------------------------------------------------------------------------
# The desk and the terminal


@dataclass(frozen=True, slots=True)
class DeskParts:
    """What a person decides with, at the desk and in a terminal."""

    approvals: ApprovalController
    audit: AuditLog
    standing: StandingApprovals


def open_desk_parts(store: str, audit_head: str | os.PathLike[str] | None = None) -> DeskParts:
    """On a store that exists, without agents. Raises `AGENTS-E-RUNNER-CONFIG` if it is not a database URL."""
    from openai_responses_mcp.agents.adapters.stores.opening import open_stores

    return _desk_parts(open_stores(store, audit_head, must_exist=True))


def _desk_parts(stores: Stores) -> DeskParts:
    masking = Masking()
    audit = AuditLog(stores.logs, stores.clock, masking, "required", stores.head)
    approvals = controller_on(stores, audit, masking, lifetime_seconds(None, os.environ))
    return DeskParts(approvals, audit, standing_on(stores, audit, masking))


def desk_on(stores: Stores) -> Desk:
    parts = _desk_parts(stores)
    return Desk(parts.approvals, stores.approvals, parts.standing, stores.runs, parts.audit, stores.clock)


async def serve_desk(
    store: str,
    audit_head: str | os.PathLike[str] | None = None,
    *,
    port: int = 0,
    on_listening: Callable[[str], object],
) -> None:
    """The desk as a page on 127.0.0.1, until the process is told to end. `on_listening` is told the link to it.

    Raises `StoreUnavailable` for a store that is missing, and `AGENTS-E-RUNNER-CONFIG` for a port that cannot be used.
    """
    from openai_responses_mcp.agents.adapters.stores.opening import open_stores
    from openai_responses_mcp.agents.adapters.web.serving import serve

    desk = desk_on(open_stores(store, audit_head, must_exist=True))
    # A missing store is reported now, not on the page.
    await desk.waiting()
    await serve(desk, Entrance(), port, on_listening)


def open_diagnosis(store: str | None = None, audit_head: str | os.PathLike[str] | None = None) -> Diagnosis:
    """For a look without a runner; the log is checked where a store is named."""
    verify_log = open_desk_parts(store, audit_head).audit.verify if store else None
    return Diagnosis(os.environ, get_provider, load_skills, verify_log=verify_log)


def check_policy(policy_file: str) -> PolicyFindings:
    """Raises `AGENTS-E-POLICY-INVALID` for a file that cannot be read at all."""
    from openai_responses_mcp.agents.adapters.linear_patterns import LinearPatterns
    from openai_responses_mcp.agents.adapters.policy_file import check_policy_file
    from openai_responses_mcp.agents.adapters.system_paths import SystemPaths

    return check_policy_file(policy_file, LinearPatterns(), SystemPaths())


async def replay_policy(policy_file: str, store: str) -> Replay:
    """Calls in the log of a store that the file would decide otherwise. Raises `AGENTS-E-POLICY-INVALID`."""
    from openai_responses_mcp.agents.adapters.stores.opening import open_stores
    from openai_responses_mcp.agents.adapters.system_paths import SystemPaths

    policy, stores = open_rules(policy_file).policy, open_stores(store, must_exist=True)
    return await replay(policy, stores.policies, stores.logs, SystemPaths())


# ---------------------------------------------------------------------------------------------------------------------
# Skills


@cache
def skill_registry() -> SkillRegistry:
    from openai_responses_mcp.agents.adapters.skills.front_matter import YamlFrontMatter
    from openai_responses_mcp.agents.adapters.skills.skill_files import SkillFiles
    from openai_responses_mcp.agents.adapters.skills.skill_tools import SdkSkillTools

    folder = SkillFiles()
    return SkillRegistry(folder, YamlFrontMatter(), SdkSkillTools(folder))


async def load_skills(dir: str | os.PathLike[str], mode: SkillMode = "function_tool") -> SkillList:
    """Every skill below the folder; `.problems` of the list names those that cannot be used."""
    return await skill_registry().load_from_directory(os.fspath(dir), mode)


def list_skills(skills: Sequence[Skill]) -> list[SkillSummary]:
    return skill_registry().list_skills(skills)


def describe_skill(skills: Sequence[Skill], id: str, detail_level: DetailLevel = "summary") -> SkillManifest:
    return skill_registry().describe_skill(skills, id, detail_level)


def to_tools(skills: Sequence[Skill]) -> "list[SdkTool]":
    """One tool of the SDK for each skill."""
    return cast("list[SdkTool]", skill_registry().to_tools(skills))


def to_introspection_tools(skills: Sequence[Skill]) -> "list[SdkTool]":
    """`skill_list` and `skill_describe`, which tell a model about the skills."""
    return cast("list[SdkTool]", skill_registry().to_introspection_tools(skills))


# ---------------------------------------------------------------------------------------------------------------------
# Models


def get_provider(name: str | None = None) -> ProviderHandle:
    """The provider of this name, else the one in AGENTS_MODEL_PROVIDER, with its settings from the environment."""
    settings = settings_from(chosen_provider(name, os.environ), os.environ)
    from openai_responses_mcp.agents.adapters.models.compat_providers import EnvironmentProvider

    return EnvironmentProvider(settings)


def list_providers() -> list[ProviderName]:
    return list(get_args(ProviderName))


# ---------------------------------------------------------------------------------------------------------------------
# MCP servers, and the answering server


def hosted_mcp_tool(
    server: object,
    *,
    require_approval: bool = True,
    risk_levels: Mapping[str, int] | None = None,
    repeatable: Iterable[str] = (),
    name: str | None = None,
    pins: str | os.PathLike[str] | None = None,
) -> "HostedMcpServer":
    """An MCP server for an agent's `mcp_servers` or `tools`, each of its tools behind the gate.

    `server` is a stdio command, an https URL, a mapping with either, or a server object of the SDK. `name` is what scopes
    call it. Definitions that were approved are remembered in the file `pins`, else in the runner's store if that outlives
    the process, else for as long as the process lives.
    """
    from openai_responses_mcp.agents.adapters.mcp.hosted_server import hosted_server
    from openai_responses_mcp.agents.adapters.mcp.pin_file import PinFile

    rules = McpRules(require_approval, risk_levels or {}, repeatable)
    file = None if pins is None else PinFile(pins)
    return hosted_server(server, name, rules, file, timeout_ms_from(os.environ))


def answer_tool(profile: str = "answer") -> "SdkFunctionTool":
    """The answering server's use case as a tool; `profile` is the name of one of the server's tools."""
    from openai_responses_mcp.agents.adapters.sdk.answering_tool import answering_tool

    return answering_tool(profile)
