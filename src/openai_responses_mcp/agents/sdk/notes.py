"""A note for the model in front of what a tool gave back."""

from collections.abc import Mapping

from agents import Agent
from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText

_PARTS = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
_KINDS = ("text", "image", "file")


def with_note(output: object, note: str, agent: object) -> object:
    """Where the run ends with the tool's output there is no model to tell, and the output stays as it is."""
    if isinstance(agent, Agent) and agent.tool_use_behavior != "run_llm_again":
        return output
    if _is_part(output):
        return [ToolOutputText(text=note), output]
    if isinstance(output, list) and output and all(map(_is_part, output)):
        return [ToolOutputText(text=note), *output]
    return f"{note}\n\n{output}"


def _is_part(output: object) -> bool:
    """One of the forms that the SDK sends as more than a text."""
    return isinstance(output, _PARTS) or (isinstance(output, Mapping) and output.get("type") in _KINDS)
