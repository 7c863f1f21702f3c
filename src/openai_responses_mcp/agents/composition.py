"""The composition root of the library: the one place where its adapters meet its use cases.

Adapters are imported inside the functions that need them. The SDK takes seconds to import, and a terminal that lists
approvals does not need it.
"""

import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.agents.doctor import Diagnosis
from openai_responses_mcp.agents.providers.settings import ModelList, ProviderName, chosen_provider, settings_from
from openai_responses_mcp.agents.runner import AgentRunner, RunnerParts, TerminalApprover
from openai_responses_mcp.agents.runs.book import PausedRuns, RunBook
from openai_responses_mcp.agents.runs.ledger import RunLedgers
from openai_responses_mcp.agents.runs.resuming import ResumeRun
from openai_responses_mcp.agents.runs.running import FinishRun, StartRun
from openai_responses_mcp.agents.skills.manifests import (
    MOST_SKILLS,
    Skill,
    SkillList,
    SkillManifest,
    SkillMode,
    SkillSummary,
)
from openai_responses_mcp.agents.skills.registry import DetailLevel, SkillRegistry
from openai_responses_mcp.desk.opening import controller_on, open_desk_parts, open_rules, standing_on
from openai_responses_mcp.gate.approvals.controller import OnRequested
from openai_responses_mcp.gate.approvals.decisions import lifetime_seconds
from openai_responses_mcp.gate.approvals.models import ApprovalStore, DecisionBook, StandingStore
from openai_responses_mcp.gate.audit.log import AuditLog, AuditMode
from openai_responses_mcp.gate.audit.records import ExecutionLogStore
from openai_responses_mcp.gate.budgets import BudgetStore
from openai_responses_mcp.gate.calls import GateDecision
from openai_responses_mcp.gate.clock import Clock
from openai_responses_mcp.gate.definitions import DefinitionPins
from openai_responses_mcp.gate.errors import AgentsError, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.policy.rules import PolicyStore
from openai_responses_mcp.gate.safety_gate import Judge, SafetyAgent, SafetyGate
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.secrets.withholding import Withholding
from openai_responses_mcp.gate.stores import RunStateStore, Stores

if TYPE_CHECKING:
    from openai_responses_mcp.agents.providers.compat_model import ProviderHandle
    from openai_responses_mcp.agents.sdk.tool_traits import SdkFunctionTool, SdkTool

LOG_VARIABLE = "AGENTS_LOG_LEVEL"
LOG_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

# ---------------------------------------------------------------------------------------------------------------------
# Runners


def create_runner(
    *,
    safety_agent: Judge | None = None,
    store: str | None = None,
    approval_store: ApprovalStore | None = None,
    standing_store: StandingStore | None = None,
    run_state_store: RunStateStore | None = None,
    log_store: ExecutionLogStore | None = None,
    policy_store: PolicyStore | None = None,
    budget_store: BudgetStore | None = None,
    pin_store: DefinitionPins | None = None,
    decision_store: DecisionBook | None = None,
    clock: Clock | None = None,
    resume_token_ttl_sec: int | None = None,
    audit: AuditMode = "best_effort",
    audit_head: str | os.PathLike[str] | None = None,
    policy_file: str | os.PathLike[str] | None = None,
    on_approval_requested: OnRequested | None = None,
    watch_threads: bool = False,
    ask: Literal["terminal"] | None = None,
) -> AgentRunner:
    """`store` is the URL of a SQLite or PostgreSQL database, by default one in memory.

    You may pass your own stores: all eight, or some of them together with `store` for the others.

    An invalid `policy_file` raises `AGENTS-E-POLICY-INVALID`, which lists all its problems. `on_approval_requested`, a
    sync or async function, is called with every request that a human has to decide. With `watch_threads`, a run that a
    tool starts in a thread is guarded too; this replaces two methods of the standard library. With `ask="terminal"`,
    calls that need a human are decided in this terminal. With `ask` or a `policy_file`, the `safety_agent` may be left
    out: then profile and rules decide.
    """
    if ask not in (None, "terminal"):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", 'ask is "terminal" or left out')
    if safety_agent is None and (ask is not None or policy_file is not None):
        safety_agent = SafetyAgent(_no_judge)
    if safety_agent is None or not callable(getattr(safety_agent, "evaluate", None)):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "create_runner needs a safety_agent, such as SafetyAgent(judge)")
    if audit not in get_args(AuditMode):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "audit is best_effort or required")
    if on_approval_requested is not None and not callable(on_approval_requested):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "on_approval_requested is a callable that takes a request")
    from openai_responses_mcp.agents.mcp.guarded_tools import guarded_mcp_tools
    from openai_responses_mcp.agents.sdk.engine import OpenAIAgentsEngine

    apply_log_level(os.environ)
    rules = None if policy_file is None else open_rules(policy_file, store)
    if rules and rules.policy.audit == "required":
        audit = "required"
    own = {
        "approval_store": approval_store,
        "standing_store": standing_store,
        "run_state_store": run_state_store,
        "log_store": log_store,
        "policy_store": policy_store,
        "budget_store": budget_store,
        "pin_store": pin_store,
        "decision_store": decision_store,
    }
    stores = stores_from(store, audit_head, own)
    clock = clock or stores.clock
    stores = replace(stores, clock=clock)
    masking, schemas = Masking(), SchemaChecker(LinearPatterns())
    mcp_tools = partial(guarded_mcp_tools, kept=stores.pins, schemas=schemas)
    engine = OpenAIAgentsEngine(mcp_tools, watches_threads=watch_threads)
    log = AuditLog(stores.logs, clock, masking, audit, stores.head)
    lifetime = lifetime_seconds(resume_token_ttl_sec, os.environ)
    approvals = controller_on(stores, log, masking, lifetime, on_approval_requested)
    book = RunBook(stores.runs, clock)
    standing = standing_on(stores, log, masking)
    gate = SafetyGate(safety_agent, stores.policies, masking, rules=rules, standing=standing, schemas=schemas)
    ledgers = RunLedgers(gate, log, masking, stores.budgets, clock)
    paused = PausedRuns(engine, book, approvals, ledgers, Withholding(masking))
    finish = FinishRun(paused, book, log, masking, standing)
    diagnosis = Diagnosis(os.environ, _list_models, load_skills, policies=stores.policies, verify_log=log.verify)
    return AgentRunner(
        RunnerParts(
            start=StartRun(engine, book, ledgers, finish),
            resume=ResumeRun(paused, approvals, log, book, finish),
            approvals=approvals,
            audit=log,
            policies=stores.policies,
            book=book,
            engine=engine,
            ledgers=ledgers,
            diagnosis=diagnosis,
            standing=standing,
            approver=TerminalApprover() if ask else None,
        )
    )


async def _no_judge(agent: object, request: object, policy: object) -> GateDecision:
    return GateDecision("allow", 1, "no judge is set: profile and rules decide")


def apply_log_level(environ: Mapping[str, str]) -> None:
    """Set the level of the logger `openai_responses_mcp.agents`, if the variable is set.

    Lines go to stderr unless the program has set up logging.
    """
    level = environ.get(LOG_VARIABLE, "").strip().lower()
    if not level:
        return
    if level not in LOG_LEVELS:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", f"{LOG_VARIABLE} is one of {', '.join(LOG_LEVELS)}")
    logger = logging.getLogger("openai_responses_mcp.agents")
    logger.setLevel(LOG_LEVELS[level])
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())


def open_diagnosis(store: str | None = None, audit_head: str | os.PathLike[str] | None = None) -> Diagnosis:
    """Checks that need no runner. The log is checked only if `store` is given."""
    verify_log = open_desk_parts(store, audit_head).audit.verify if store else None
    return Diagnosis(os.environ, _list_models, load_skills, verify_log=verify_log)


# ---------------------------------------------------------------------------------------------------------------------
# Skills


@cache
def skill_registry() -> SkillRegistry:
    from openai_responses_mcp.agents.sdk.skill_tools import introspection_tools, skill_tool

    return SkillRegistry(skill_tool, introspection_tools)


async def load_skills(
    dir: str | os.PathLike[str], mode: SkillMode = "function_tool", *, max_skills: int = MOST_SKILLS
) -> SkillList:
    """Every skill below the folder. `.problems` of the list names those that cannot be used."""
    return await skill_registry().load_from_directory(os.fspath(dir), mode, max_skills)


def list_skills(skills: Sequence[Skill]) -> list[SkillSummary]:
    return skill_registry().list_skills(skills)


def describe_skill(skills: Sequence[Skill], id: str, detail_level: DetailLevel = "summary") -> SkillManifest:
    return skill_registry().describe_skill(skills, id, detail_level)


def to_tools(skills: Sequence[Skill]) -> "list[SdkTool]":
    """One tool of the SDK for each skill."""
    return cast("list[SdkTool]", skill_registry().to_tools(skills))


def to_introspection_tools(skills: Sequence[Skill]) -> "list[SdkTool]":
    """`skill_list` and `skill_describe`, for a model to find skills."""
    return cast("list[SdkTool]", skill_registry().to_introspection_tools(skills))


# ---------------------------------------------------------------------------------------------------------------------
# Models


def get_provider(name: str | None = None) -> "ProviderHandle":
    """The provider of this name, else the one in AGENTS_MODEL_PROVIDER, with its settings from the environment."""
    settings = settings_from(chosen_provider(name, os.environ), os.environ)
    from openai_responses_mcp.agents.providers.compat_model import ProviderHandle

    return ProviderHandle(settings)


async def _list_models(name: str) -> ModelList:
    return await get_provider(name).list_models()


def list_providers() -> list[ProviderName]:
    return list(get_args(ProviderName))


# ---------------------------------------------------------------------------------------------------------------------
# The answering server


def answer_tool(profile: str = "answer") -> "SdkFunctionTool":
    """The answering server's use case as a tool; `profile` is the name of one of the server's tools."""
    from openai_responses_mcp.agents.sdk.answering_tool import answering_tool

    return answering_tool(profile)


# ---------------------------------------------------------------------------------------------------------------------
# Stores that the user passes in: checked for missing methods, and their errors mapped to named ones. Such a store may
# raise anything. An error about a value concerns one record; any other error means that it cannot be used.

_T = TypeVar("_T")
# For these the ports have default implementations.
_OPTIONAL = ("append_all", "begin", "move_out")
_RECORD_ERRORS = (ValueError, TypeError, OverflowError)  # UnicodeError is a ValueError


# By parameter of `create_runner`: the field of `Stores`, and the port.
_PORTS: Mapping[str, tuple[str, type]] = {
    "policy_store": ("policies", PolicyStore),
    "approval_store": ("approvals", ApprovalStore),
    "run_state_store": ("runs", RunStateStore),
    "log_store": ("logs", ExecutionLogStore),
    "standing_store": ("standing", StandingStore),
    "budget_store": ("budgets", BudgetStore),
    "pin_store": ("pins", DefinitionPins),
    "decision_store": ("decisions", DecisionBook),
}


def stores_from(url: str | None, audit_head: str | os.PathLike[str] | None, own: Mapping[str, object]) -> Stores:
    """The stores of the database, each replaced by the one that was given. Raises as `checked_store` does.

    Without a database all stores must be given: the others would be in memory, and lost with the process.
    """
    chosen = {name: store for name, store in own.items() if store is not None}
    missing = [name for name in _PORTS if name not in chosen]
    if chosen and missing and url is None:
        message = f"Some stores are given and some are not: give store= for the others, or {', '.join(missing)}"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message, details={"missing": missing})
    from openai_responses_mcp.gate.sql.sql_stores import open_stores

    stores = open_stores(url, audit_head)
    made: dict[str, Any] = {
        field: checked_store(chosen[name], port) for name, (field, port) in _PORTS.items() if name in chosen
    }
    if "logs" in made:
        # The head covers our own log only.
        made["head"] = None
    if "decisions" not in made and ("logs" in made or "approvals" in made):
        # One transaction writes a decision and its record only where both are in one database.
        made["decisions"] = None
    return replace(stores, **made)


def checked_store(store: _T, port: type) -> _T:
    """Raises `AGENTS-E-RUNNER-CONFIG` if the store lacks a required method."""
    methods = [name for name, value in vars(port).items() if inspect.isfunction(value) and not name.startswith("_")]
    missing = [name for name in methods if not hasattr(store, name) and name not in _OPTIONAL]
    if missing:
        message = f"{type(store).__name__} is not a complete {port.__name__}: it lacks {', '.join(missing)}"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
    return cast(_T, _CheckedStore(store, port))


class _CheckedStore:
    def __init__(self, store: object, port: type) -> None:
        self._store = store
        self._port = port

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name, None) or getattr(self._port, name).__get__(self)
        return _with_named_errors(method)


def _with_named_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def named(*args: Any, **kwargs: Any) -> Any:
        try:
            return await method(*args, **kwargs)
        except AgentsError:
            raise
        except _RECORD_ERRORS as exc:
            failure: StoreUnavailable = RecordRefused(f"The store does not take this record: {type(exc).__name__}")
        except Exception as exc:  # foreign code
            failure = StoreUnavailable(f"The store failed with {type(exc).__name__}")
        # Raised outside `except`: the store's own error may contain an address or values, and would be attached.
        raise failure

    return named
