"""The peer over HTTP: a server made with the official package (MCPServer, which was FastMCP) that asks the API the same.

python -m tests.tools.bench.http_peer PORT
"""

import os
import sys

from mcp.server.mcpserver import MCPServer
from openai import AsyncOpenAI


def main(port: int) -> None:
    server = MCPServer("peer", log_level="ERROR")
    api = AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])

    @server.tool()
    async def answer(query: str) -> str:
        """Answer a question."""
        reply = await api.responses.create(model="gpt-5.2", input=query, tools=[{"type": "web_search"}])
        return reply.output_text

    server.run("streamable-http", port=port)


if __name__ == "__main__":
    main(int(sys.argv[1]))
