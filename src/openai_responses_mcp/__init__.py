"""An MCP stdio server that answers questions through the OpenAI Responses API and web search."""

__version__ = "0.9.0"
