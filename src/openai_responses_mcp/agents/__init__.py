"""Guarded agents: the OpenAI Agents SDK with a gate, human approval and an audit log in front of every tool.

Names are resolved on first use, from `_PLACES` or else from the SDK itself, because the SDK takes seconds to import.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openai_responses_mcp.domain.extras import needs_extra

if TYPE_CHECKING:  # The same names, for type checkers.
    from openai_responses_mcp.agents.composition import answer_tool as answer_tool
    from openai_responses_mcp.agents.composition import create_runner as create_runner
    from openai_responses_mcp.agents.composition import describe_skill as describe_skill
    from openai_responses_mcp.agents.composition import get_provider as get_provider
    from openai_responses_mcp.agents.composition import list_providers as list_providers
    from openai_responses_mcp.agents.composition import list_skills as list_skills
    from openai_responses_mcp.agents.composition import load_skills as load_skills
    from openai_responses_mcp.agents.composition import to_introspection_tools as to_introspection_tools
    from openai_responses_mcp.agents.composition import to_tools as to_tools
    from openai_responses_mcp.agents.doctor import AgentsStatus as AgentsStatus
    from openai_responses_mcp.agents.doctor import DoctorReport as DoctorReport
    from openai_responses_mcp.agents.doctor import Finding as Finding
    from openai_responses_mcp.agents.mcp.gateway import McpGateway as McpGateway
    from openai_responses_mcp.agents.mcp.hosted_server import hosted_mcp_tool as hosted_mcp_tool
    from openai_responses_mcp.agents.providers.compat_model import CompatModelProvider as CompatModelProvider
    from openai_responses_mcp.agents.providers.compat_model import ProviderHandle as ProviderHandle
    from openai_responses_mcp.agents.providers.settings import CompatModelConfig as CompatModelConfig
    from openai_responses_mcp.agents.providers.settings import ModelList as ModelList
    from openai_responses_mcp.agents.providers.settings import ProviderName as ProviderName
    from openai_responses_mcp.agents.runner import AgentRunner as AgentRunner
    from openai_responses_mcp.agents.runner import configure as configure
    from openai_responses_mcp.agents.runner import run as run
    from openai_responses_mcp.agents.runs.models import Extensions as Extensions
    from openai_responses_mcp.agents.runs.models import RequestedToolCall as RequestedToolCall
    from openai_responses_mcp.agents.runs.models import ResumeOptions as ResumeOptions
    from openai_responses_mcp.agents.runs.models import RunEvent as RunEvent
    from openai_responses_mcp.agents.runs.models import RunOptions as RunOptions
    from openai_responses_mcp.agents.runs.models import RunResult as RunResult
    from openai_responses_mcp.agents.runs.models import RunSummary as RunSummary
    from openai_responses_mcp.agents.runs.models import UsageStats as UsageStats
    from openai_responses_mcp.agents.sdk.facade import Agent as Agent
    from openai_responses_mcp.agents.sdk.facade import (
        ResponsesWebSocketSession as ResponsesWebSocketSession,
    )
    from openai_responses_mcp.agents.sdk.facade import Runner as Runner
    from openai_responses_mcp.agents.sdk.facade import (
        responses_websocket_session as responses_websocket_session,
    )
    from openai_responses_mcp.agents.sdk.facade import run_demo_loop as run_demo_loop
    from openai_responses_mcp.agents.sdk.facade import tool as tool
    from openai_responses_mcp.agents.sdk.model_safety_agent import ModelSafetyAgent as ModelSafetyAgent
    from openai_responses_mcp.agents.sdk.run_states import RunState as RunState
    from openai_responses_mcp.agents.skills.manifests import Skill as Skill
    from openai_responses_mcp.agents.skills.manifests import SkillDescriptor as SkillDescriptor
    from openai_responses_mcp.agents.skills.manifests import SkillExample as SkillExample
    from openai_responses_mcp.agents.skills.manifests import SkillList as SkillList
    from openai_responses_mcp.agents.skills.manifests import SkillManifest as SkillManifest
    from openai_responses_mcp.agents.skills.manifests import SkillMetadataExtractor as SkillMetadataExtractor
    from openai_responses_mcp.agents.skills.manifests import SkillSummary as SkillSummary
    from openai_responses_mcp.agents.skills.registry import SkillRegistry as SkillRegistry
    from openai_responses_mcp.gate.approvals.controller import ApprovalController as ApprovalController
    from openai_responses_mcp.gate.approvals.models import ApprovalStore as ApprovalStore
    from openai_responses_mcp.gate.approvals.models import DecisionBook as DecisionBook
    from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest as HumanApprovalRequest
    from openai_responses_mcp.gate.approvals.models import ResumeToken as ResumeToken
    from openai_responses_mcp.gate.approvals.models import StandingStore as StandingStore
    from openai_responses_mcp.gate.audit.records import ExecutionLog as ExecutionLog
    from openai_responses_mcp.gate.audit.records import ExecutionLogStore as ExecutionLogStore
    from openai_responses_mcp.gate.audit.records import LogVerification as LogVerification
    from openai_responses_mcp.gate.budgets import BudgetStore as BudgetStore
    from openai_responses_mcp.gate.calls import AgentCapabilitySnapshot as AgentCapabilitySnapshot
    from openai_responses_mcp.gate.calls import GateDecision as GateDecision
    from openai_responses_mcp.gate.calls import McpCapabilitySummary as McpCapabilitySummary
    from openai_responses_mcp.gate.calls import ToolCallRequest as ToolCallRequest
    from openai_responses_mcp.gate.calls import ToolCallResult as ToolCallResult
    from openai_responses_mcp.gate.calls import ToolDescription as ToolDescription
    from openai_responses_mcp.gate.clock import Clock as Clock
    from openai_responses_mcp.gate.definitions import DefinitionPins as DefinitionPins
    from openai_responses_mcp.gate.errors import AgentsError as AgentsError
    from openai_responses_mcp.gate.guardrails import AgentGuardrails as AgentGuardrails
    from openai_responses_mcp.gate.guardrails import create_guardrails_template as create_guardrails_template
    from openai_responses_mcp.gate.policy.rules import PolicyProfile as PolicyProfile
    from openai_responses_mcp.gate.policy.rules import PolicyStore as PolicyStore
    from openai_responses_mcp.gate.safety_gate import SafetyAgent as SafetyAgent
    from openai_responses_mcp.gate.safety_gate import SafetyGate as SafetyGate
    from openai_responses_mcp.gate.stores import RunStateStore as RunStateStore

_HERE = "openai_responses_mcp.agents"

_PLACES = {
    "agents.composition": (
        "answer_tool create_runner describe_skill get_provider "
        "list_providers list_skills load_skills to_introspection_tools to_tools"
    ),
    "agents.doctor": "AgentsStatus DoctorReport Finding",
    "agents.mcp.gateway": "McpGateway",
    "agents.mcp.hosted_server": "hosted_mcp_tool",
    "agents.providers.compat_model": "CompatModelProvider ProviderHandle",
    "agents.providers.settings": "CompatModelConfig ModelList ProviderName",
    "agents.runner": "AgentRunner configure run",
    "agents.runs.models": (
        "Extensions RequestedToolCall ResumeOptions RunEvent RunOptions RunResult RunSummary UsageStats"
    ),
    "agents.sdk.facade": "Agent ResponsesWebSocketSession Runner responses_websocket_session run_demo_loop tool",
    "agents.sdk.model_safety_agent": "ModelSafetyAgent",
    "agents.sdk.run_states": "RunState",
    "agents.skills.manifests": (
        "Skill SkillDescriptor SkillExample SkillList SkillManifest SkillMetadataExtractor SkillSummary"
    ),
    "agents.skills.registry": "SkillRegistry",
    "gate.approvals.controller": "ApprovalController",
    "gate.approvals.models": "ApprovalStore DecisionBook HumanApprovalRequest ResumeToken StandingStore",
    "gate.audit.records": "ExecutionLog ExecutionLogStore LogVerification",
    "gate.budgets": "BudgetStore",
    "gate.calls": (
        "AgentCapabilitySnapshot GateDecision McpCapabilitySummary ToolCallRequest ToolCallResult ToolDescription"
    ),
    "gate.clock": "Clock",
    "gate.definitions": "DefinitionPins",
    "gate.errors": "AgentsError",
    "gate.guardrails": "AgentGuardrails create_guardrails_template",
    "gate.policy.rules": "PolicyProfile PolicyStore",
    "gate.safety_gate": "SafetyAgent SafetyGate",
    "gate.stores": "RunStateStore",
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names.split()}

# These import without the SDK but cannot work without it, so the import fails if it is missing.
_NEED_THE_SDK = {*_PLACES["agents.composition"].split(), "configure", "run"}

# Packages of the SDK that run agents without passing the gate.
_PAST_THE_GATE = ("realtime", "voice")

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {_HERE!r} has no attribute {name!r}")
    try:
        value = _resolve(name)
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] in ("agents", "mcp", "sqlalchemy", "psycopg"):
            raise ImportError(f"{_HERE}.{name}: {needs_extra('agents', exc.name)}") from exc
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _resolve(name: str) -> Any:
    sdk_found = find_spec("agents")
    folders = (sdk_found and sdk_found.submodule_search_locations) or ()
    is_sdk = any(Path(folder, "run_state.py").exists() for folder in folders)
    if sdk_found is not None and sdk_found.origin is not None and not is_sdk:
        # The user's own script or package. Importing it would run it, a script even a second time.
        raise ImportError(f"{sdk_found.origin} hides the OpenAI Agents SDK, which is called agents too; rename it")
    if name in _MODULE_OF:
        if name in _NEED_THE_SDK and sdk_found is None:
            raise ModuleNotFoundError("No module named 'agents'", name="agents")
        return getattr(import_module(f"openai_responses_mcp.{_MODULE_OF[name]}"), name)
    if name in _PAST_THE_GATE:
        message = (
            f"agents.{name} runs agents past the gate, and is not offered here; import it from the SDK if you must"
        )
        raise ImportError(message)
    sdk = import_module("agents")
    if name not in sdk.__all__:
        raise AttributeError(f"module {_HERE!r} has no attribute {name!r}")
    return getattr(sdk, name)
