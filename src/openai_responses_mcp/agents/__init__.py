"""Guarded agents: the OpenAI Agents SDK with a gate, human approval and an audit log in front of every tool.

Names are resolved on first use, from `_PLACES` or else from the SDK itself, because the SDK takes seconds to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for those who read types instead of running the code
    from openai_responses_mcp.agents.adapters.model_safety_agent import ModelSafetyAgent as ModelSafetyAgent
    from openai_responses_mcp.agents.adapters.sdk_facade import Agent as Agent
    from openai_responses_mcp.agents.adapters.sdk_facade import Runner as Runner
    from openai_responses_mcp.agents.adapters.sdk_facade import tool as tool
    from openai_responses_mcp.agents.composition import create_runner as create_runner
    from openai_responses_mcp.agents.composition import run as run
    from openai_responses_mcp.agents.configured import configure as configure
    from openai_responses_mcp.agents.errors import AgentsError as AgentsError
    from openai_responses_mcp.agents.guardrails import AgentGuardrails as AgentGuardrails
    from openai_responses_mcp.agents.guardrails import create_guardrails_template as create_guardrails_template
    from openai_responses_mcp.agents.models import *  # noqa: F403
    from openai_responses_mcp.agents.results import RunResult as RunResult
    from openai_responses_mcp.agents.runner import AgentRunner as AgentRunner
    from openai_responses_mcp.agents.safety import SafetyAgent as SafetyAgent
    from openai_responses_mcp.agents.skills import SkillList as SkillList
    from openai_responses_mcp.agents.toolbox import answer_tool as answer_tool
    from openai_responses_mcp.agents.toolbox import describe_skill as describe_skill
    from openai_responses_mcp.agents.toolbox import get_provider as get_provider
    from openai_responses_mcp.agents.toolbox import hosted_mcp_tool as hosted_mcp_tool
    from openai_responses_mcp.agents.toolbox import list_providers as list_providers
    from openai_responses_mcp.agents.toolbox import list_skills as list_skills
    from openai_responses_mcp.agents.toolbox import load_skills as load_skills
    from openai_responses_mcp.agents.toolbox import to_introspection_tools as to_introspection_tools
    from openai_responses_mcp.agents.toolbox import to_tools as to_tools

_INSTALL = 'pip install "openai-responses-mcp[agents]"'
_HERE = "openai_responses_mcp.agents"

_PLACES = {
    "composition": ("create_runner", "run"),
    "configured": ("configure",),
    "errors": ("AgentsError",),
    "guardrails": ("AgentGuardrails", "create_guardrails_template"),
    "models": (
        "AgentCapabilitySnapshot",
        "ExecutionLog",
        "Extensions",
        "GateDecision",
        "HumanApprovalRequest",
        "LogVerification",
        "McpCapabilitySummary",
        "PolicyProfile",
        "ProviderHandle",
        "ProviderName",
        "RequestedToolCall",
        "ResumeOptions",
        "ResumeToken",
        "RunEvent",
        "RunOptions",
        "Skill",
        "SkillDescriptor",
        "SkillExample",
        "SkillManifest",
        "SkillSummary",
        "ToolCallRequest",
        "ToolCallResult",
        "ToolDescription",
        "UsageStats",
    ),
    "results": ("RunResult",),
    "runner": ("AgentRunner",),
    "safety": ("SafetyAgent",),
    "diagnosis": ("AgentsStatus", "DoctorReport", "Finding"),
    "mcp_gateway": ("McpGateway",),
    "providers": ("ModelList",),
    "skills": ("SkillList", "SkillMetadataExtractor", "SkillRegistry"),
    "toolbox": (
        "answer_tool",
        "describe_skill",
        "get_provider",
        "hosted_mcp_tool",
        "list_providers",
        "list_skills",
        "load_skills",
        "to_introspection_tools",
        "to_tools",
    ),
    "adapters.model_safety_agent": ("ModelSafetyAgent",),
    "adapters.sdk_facade": ("Agent", "Runner", "tool"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {_HERE!r} has no attribute {name!r}")
    try:
        value = _resolve(name)
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] in ("agents", "jsonschema", "mcp", "sqlalchemy", "psycopg"):
            raise ImportError(f"{_HERE}.{name} needs the extra 'agents': {_INSTALL}") from exc
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _resolve(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"{_HERE}.{_MODULE_OF[name]}"), name)
    sdk = import_module("agents")
    if name not in sdk.__all__:
        raise AttributeError(f"module {_HERE!r} has no attribute {name!r}")
    return getattr(sdk, name)
