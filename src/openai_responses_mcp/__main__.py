"""`python -m openai_responses_mcp` is the command `openai-responses-mcp`."""

from openai_responses_mcp.cli import entry_point

if __name__ == "__main__":
    entry_point()
