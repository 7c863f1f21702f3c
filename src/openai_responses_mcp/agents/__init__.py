"""Guarded agents: the OpenAI Agents SDK with a gate, human approval and an audit log in front of every tool.

Names are resolved on first use, from `_PLACES` or else from the SDK itself, because the SDK takes seconds to import.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The same names, for type checkers.
    from openai_responses_mcp.agents.adapters.models.compat_providers import CompatModelProvider as CompatModelProvider
    from openai_responses_mcp.agents.adapters.sdk.demo_loop import run_demo_loop as run_demo_loop
    from openai_responses_mcp.agents.adapters.sdk.facade import Agent as Agent
    from openai_responses_mcp.agents.adapters.sdk.facade import Runner as Runner
    from openai_responses_mcp.agents.adapters.sdk.facade import tool as tool
    from openai_responses_mcp.agents.adapters.sdk.model_safety_agent import ModelSafetyAgent as ModelSafetyAgent
    from openai_responses_mcp.agents.adapters.sdk.websocket_sessions import (
        ResponsesWebSocketSession as ResponsesWebSocketSession,
    )
    from openai_responses_mcp.agents.adapters.sdk.websocket_sessions import (
        responses_websocket_session as responses_websocket_session,
    )
    from openai_responses_mcp.agents.approvals.controller import ApprovalController as ApprovalController
    from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest as HumanApprovalRequest
    from openai_responses_mcp.agents.approvals.models import ResumeToken as ResumeToken
    from openai_responses_mcp.agents.approvals.ports import ApprovalStore as ApprovalStore
    from openai_responses_mcp.agents.audit.models import ExecutionLog as ExecutionLog
    from openai_responses_mcp.agents.audit.models import LogVerification as LogVerification
    from openai_responses_mcp.agents.audit.ports import ExecutionLogStore as ExecutionLogStore
    from openai_responses_mcp.agents.calls import ToolCallResult as ToolCallResult
    from openai_responses_mcp.agents.calls import ToolDescription as ToolDescription
    from openai_responses_mcp.agents.clock import Clock as Clock
    from openai_responses_mcp.agents.composition import answer_tool as answer_tool
    from openai_responses_mcp.agents.composition import create_runner as create_runner
    from openai_responses_mcp.agents.composition import describe_skill as describe_skill
    from openai_responses_mcp.agents.composition import get_provider as get_provider
    from openai_responses_mcp.agents.composition import hosted_mcp_tool as hosted_mcp_tool
    from openai_responses_mcp.agents.composition import list_providers as list_providers
    from openai_responses_mcp.agents.composition import list_skills as list_skills
    from openai_responses_mcp.agents.composition import load_skills as load_skills
    from openai_responses_mcp.agents.composition import to_introspection_tools as to_introspection_tools
    from openai_responses_mcp.agents.composition import to_tools as to_tools
    from openai_responses_mcp.agents.configured import configure as configure
    from openai_responses_mcp.agents.configured import run as run
    from openai_responses_mcp.agents.doctor.findings import AgentsStatus as AgentsStatus
    from openai_responses_mcp.agents.doctor.findings import DoctorReport as DoctorReport
    from openai_responses_mcp.agents.doctor.findings import Finding as Finding
    from openai_responses_mcp.agents.errors import AgentsError as AgentsError
    from openai_responses_mcp.agents.gate.guardrails import AgentGuardrails as AgentGuardrails
    from openai_responses_mcp.agents.gate.guardrails import create_guardrails_template as create_guardrails_template
    from openai_responses_mcp.agents.gate.models import AgentCapabilitySnapshot as AgentCapabilitySnapshot
    from openai_responses_mcp.agents.gate.models import GateDecision as GateDecision
    from openai_responses_mcp.agents.gate.models import McpCapabilitySummary as McpCapabilitySummary
    from openai_responses_mcp.agents.gate.models import ToolCallRequest as ToolCallRequest
    from openai_responses_mcp.agents.gate.safety_agent import SafetyAgent as SafetyAgent
    from openai_responses_mcp.agents.gate.safety_gate import SafetyGate as SafetyGate
    from openai_responses_mcp.agents.mcp.gateway import McpGateway as McpGateway
    from openai_responses_mcp.agents.policy.ports import PolicyStore as PolicyStore
    from openai_responses_mcp.agents.policy.profiles import PolicyProfile as PolicyProfile
    from openai_responses_mcp.agents.providers.models import ModelList as ModelList
    from openai_responses_mcp.agents.providers.models import ProviderName as ProviderName
    from openai_responses_mcp.agents.providers.ports import ProviderHandle as ProviderHandle
    from openai_responses_mcp.agents.providers.settings import CompatModelConfig as CompatModelConfig
    from openai_responses_mcp.agents.runner import AgentRunner as AgentRunner
    from openai_responses_mcp.agents.runs.models import Extensions as Extensions
    from openai_responses_mcp.agents.runs.models import RequestedToolCall as RequestedToolCall
    from openai_responses_mcp.agents.runs.models import ResumeOptions as ResumeOptions
    from openai_responses_mcp.agents.runs.models import RunOptions as RunOptions
    from openai_responses_mcp.agents.runs.models import RunSummary as RunSummary
    from openai_responses_mcp.agents.runs.models import UsageStats as UsageStats
    from openai_responses_mcp.agents.runs.ports import RunStateStore as RunStateStore
    from openai_responses_mcp.agents.runs.results import RunEvent as RunEvent
    from openai_responses_mcp.agents.runs.results import RunResult as RunResult
    from openai_responses_mcp.agents.skills.manifests import SkillMetadataExtractor as SkillMetadataExtractor
    from openai_responses_mcp.agents.skills.models import Skill as Skill
    from openai_responses_mcp.agents.skills.models import SkillDescriptor as SkillDescriptor
    from openai_responses_mcp.agents.skills.models import SkillExample as SkillExample
    from openai_responses_mcp.agents.skills.models import SkillList as SkillList
    from openai_responses_mcp.agents.skills.models import SkillManifest as SkillManifest
    from openai_responses_mcp.agents.skills.models import SkillSummary as SkillSummary
    from openai_responses_mcp.agents.skills.registry import SkillRegistry as SkillRegistry

_INSTALL = 'pip install "openai-responses-mcp[agents]"'
_HERE = "openai_responses_mcp.agents"

_PLACES = {
    "adapters.models.compat_providers": ("CompatModelProvider",),
    "adapters.sdk.demo_loop": ("run_demo_loop",),
    "adapters.sdk.facade": (
        "Agent",
        "Runner",
        "tool",
    ),
    "adapters.sdk.model_safety_agent": ("ModelSafetyAgent",),
    "adapters.sdk.websocket_sessions": (
        "ResponsesWebSocketSession",
        "responses_websocket_session",
    ),
    "approvals.controller": ("ApprovalController",),
    "approvals.models": (
        "HumanApprovalRequest",
        "ResumeToken",
    ),
    "approvals.ports": ("ApprovalStore",),
    "audit.models": (
        "ExecutionLog",
        "LogVerification",
    ),
    "audit.ports": ("ExecutionLogStore",),
    "calls": (
        "ToolCallResult",
        "ToolDescription",
    ),
    "clock": ("Clock",),
    "composition": (
        "answer_tool",
        "create_runner",
        "describe_skill",
        "get_provider",
        "hosted_mcp_tool",
        "list_providers",
        "list_skills",
        "load_skills",
        "to_introspection_tools",
        "to_tools",
    ),
    "configured": (
        "configure",
        "run",
    ),
    "doctor.findings": (
        "AgentsStatus",
        "DoctorReport",
        "Finding",
    ),
    "errors": ("AgentsError",),
    "gate.guardrails": (
        "AgentGuardrails",
        "create_guardrails_template",
    ),
    "gate.models": (
        "AgentCapabilitySnapshot",
        "GateDecision",
        "McpCapabilitySummary",
        "ToolCallRequest",
    ),
    "gate.safety_agent": ("SafetyAgent",),
    "gate.safety_gate": ("SafetyGate",),
    "mcp.gateway": ("McpGateway",),
    "policy.ports": ("PolicyStore",),
    "policy.profiles": ("PolicyProfile",),
    "providers.models": (
        "ModelList",
        "ProviderName",
    ),
    "providers.ports": ("ProviderHandle",),
    "providers.settings": ("CompatModelConfig",),
    "runner": ("AgentRunner",),
    "runs.models": (
        "Extensions",
        "RequestedToolCall",
        "ResumeOptions",
        "RunOptions",
        "RunSummary",
        "UsageStats",
    ),
    "runs.ports": ("RunStateStore",),
    "runs.results": (
        "RunEvent",
        "RunResult",
    ),
    "skills.manifests": ("SkillMetadataExtractor",),
    "skills.models": (
        "Skill",
        "SkillDescriptor",
        "SkillExample",
        "SkillList",
        "SkillManifest",
        "SkillSummary",
    ),
    "skills.registry": ("SkillRegistry",),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

# Modules that can be loaded without the SDK and are of no use without it. That it is missing is told at the import.
_NEED_THE_SDK = ("composition", "configured")

# Packages of the SDK whose sessions and pipelines run agents by themselves.
_PAST_THE_GATE = ("realtime", "voice")

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {_HERE!r} has no attribute {name!r}")
    try:
        value = _resolve(name)
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] in ("agents", "mcp", "sqlalchemy", "psycopg"):
            raise ImportError(f"{_HERE}.{name} needs the extra 'agents': {_INSTALL}") from exc
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _resolve(name: str) -> Any:
    if name in _MODULE_OF:
        if _MODULE_OF[name] in _NEED_THE_SDK and find_spec("agents") is None:
            raise ModuleNotFoundError("No module named 'agents'", name="agents")
        return getattr(import_module(f"{_HERE}.{_MODULE_OF[name]}"), name)
    if name in _PAST_THE_GATE:
        message = (
            f"agents.{name} runs agents past the gate, and is not offered here; import it from the SDK if you must"
        )
        raise ImportError(message)
    sdk = import_module("agents")
    if name not in sdk.__all__:
        raise AttributeError(f"module {_HERE!r} has no attribute {name!r}")
    return getattr(sdk, name)
