"""The rules of answering and calling as the default settings make them."""

from openai_responses_mcp.config.settings import Settings
from openai_responses_mcp.container import answering_rules, calling_rules

ANSWERING = answering_rules(Settings(), "the policy")
CALLING = calling_rules(Settings())
