"""For tests of code that uses this library: a model that says what it is told to say."""

from openai_responses_mcp.agents.providers.scripted_model import ModelCall, ScriptedCall, ScriptedModel

__all__ = ["ModelCall", "ScriptedCall", "ScriptedModel"]
