from openai_responses_mcp.__main__ import entry_point

entry_point()
