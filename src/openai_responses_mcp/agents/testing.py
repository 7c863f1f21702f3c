"""For tests of code that uses this library: a model with scripted replies."""

from openai_responses_mcp.agents.providers.scripted_model import ModelCall, ScriptedCall, ScriptedModel

__all__ = ["ModelCall", "ScriptedCall", "ScriptedModel"]
