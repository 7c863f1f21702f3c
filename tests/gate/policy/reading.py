"""Rules for tests, written as they stand in a file."""

from typing import Any

from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.gate.policy.reading import policy_from
from openai_responses_mcp.gate.policy.rules import Policy, Rule


def a_policy(**said: Any) -> Policy:
    policy, problems = policy_from({"version": 1, **said}, LinearPatterns())
    assert problems == []
    return policy


def a_rule(tools: str | list[str] = "*", **said: Any) -> Rule:
    globs = [tools] if isinstance(tools, str) else tools
    if "risk" not in said:
        said.setdefault("decide", "allow")
    return a_policy(rules=[{"tools": globs, **said}]).rules[0]
