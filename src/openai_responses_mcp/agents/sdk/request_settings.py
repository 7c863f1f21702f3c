"""What else in a request could bring in tools: settings that the SDK passes on unchanged, and stored prompts.

The agent's own tools are in its catalogue. A request can also name tools in `extra_body` and its kin, and a prompt that
is stored at the provider can hold some. Those cannot be judged here, so they are refused before the model is asked.
Settings that only steer the model pass. Any other name is checked by scope, as `function:request/<name>`, and recorded.
"""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from agents import Agent, RunConfig
from agents.run import RunOptions

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.agents.sdk.tool_traits import field_of
from openai_responses_mcp.gate.calls import ToolDescription
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import digest

_PASSED_ON = ("extra_body", "extra_args", "extra_query")
_BRING_TOOLS = frozenset(
    (
        "agent", "agents", "assistant_id", "connectors", "container", "data_sources", "enable_search", "functions",
        "google_search", "googlesearch", "mcp", "mcp_servers", "plugins", "prompt", "search", "search_parameters",
        "skills", "tool_config", "tool_resources", "tools", "web_search", "web_search_options",
    )
)  # fmt: skip
_STEER_THE_MODEL = frozenset(
    (
        "cache_prompt", "chat_template_kwargs", "enable_thinking", "frequency_penalty", "keep_alive", "logit_bias",
        "logprobs", "max_completion_tokens", "max_output_tokens", "max_tokens", "metadata", "min_p", "model", "n",
        "num_ctx", "options", "parallel_tool_calls", "presence_penalty", "prompt_cache_key", "provider", "reasoning",
        "reasoning_effort", "repetition_penalty", "response_format", "route", "safety_identifier", "seed",
        "service_tier", "stop", "store", "stream_options", "temperature", "text", "thinking", "timeout", "tool_choice",
        "top_a", "top_k", "top_logprobs", "top_p", "transforms", "truncation", "usage", "user", "verbosity",
    )
)  # fmt: skip


async def check_request(agent: Agent[Any], run_config: object, ledger: RunLedger) -> None:
    if field_of(run_config, "sandbox") is not None:
        raise ledger.refuse(_cannot_tell("run_config has a sandbox, whose shell and files cannot be guarded"))
    if agent.prompt is not None:
        message = f"The prompt of {agent.name} is stored at the provider and may hold tools; give it as instructions"
        raise ledger.refuse(_cannot_tell(message))
    for settings in (agent.model_settings, field_of(run_config, "model_settings")):
        for place, name in _passed_on(settings):
            if name in _BRING_TOOLS:
                message = f"{place} of model_settings has {name}, which can bring in tools; give tools to the agent"
                raise ledger.refuse(_cannot_tell(message))
            if name not in _STEER_THE_MODEL:
                offered = f"request/{name}"
                tool = ToolDescription(offered, "function", definition_hash=digest(offered))
                await ledger.offer_hosted(agent, tool)


def _cannot_tell(message: str) -> AgentsError:
    return AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", message)


def _passed_on(settings: object) -> Iterator[tuple[str, str]]:
    """Every name that the SDK copies into the request, and the setting that holds it."""
    for place in _PASSED_ON:
        given = field_of(settings, place)
        if given is None:
            continue
        if not isinstance(given, Mapping):
            yield place, "tools"  # its content is unknown
            continue
        for name in given:
            if name in _PASSED_ON:
                yield from _passed_on({name: given[name]})
            else:
                yield place, str(name).strip().lower()


def known_options(sdk: Mapping[str, object]) -> dict[str, Any]:
    """The options of a run. The SDK ignores some that it does not know: a misspelt `context` would be noticed late."""
    known = list(RunOptions.__annotations__)
    for name in sdk:
        if name not in known:
            meant = get_close_matches(name, known, 1) or [f"one of {', '.join(known)}"]
            raise AgentsError("AGENTS-E-RUNNER-CONFIG", f"The SDK has no option {name}; did you mean {meant[0]}?")
    return dict(sdk)


SENSITIVE_VARIABLE = "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA"
_YES = ("1", "true", "yes", "on")  # as the SDK reads it


def config_of_run(given: RunConfig | dict[str, Any] | None) -> RunConfig:
    """The configuration of a run, from what its caller gave."""
    return RunConfig(tracing_disabled=True) if given is None else without_texts(given)


def without_texts(given: RunConfig | dict[str, Any] | None) -> RunConfig:
    """The same for a run inside a guarded one; it is part of that one's trace, if there is one."""
    config = RunConfig(**(given or {})) if given is None or isinstance(given, dict) else given
    if os.environ.get(SENSITIVE_VARIABLE, "").strip().lower() in _YES:
        return config
    return dataclasses.replace(config, trace_include_sensitive_data=False)


def for_the_sdk(config: RunConfig, given: RunConfig | dict[str, Any] | None) -> RunConfig | dict[str, Any]:
    """A provider that was not given is made by the SDK itself, which closes what it has made."""
    if isinstance(given, RunConfig) or "model_provider" in (given or {}):
        return config
    return {one.name: getattr(config, one.name) for one in dataclasses.fields(config) if one.name != "model_provider"}
