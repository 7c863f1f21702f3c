"""An agent with a file-system MCP server: it reads by itself, a human decides about writing, and `.env` is taboo.

    python docs/examples/guarded_files.py FOLDER "What is in here? Write a summary to summary.md"

The model is the one that the environment names: AGENTS_MODEL_PROVIDER and the variables in docs/providers.md.
"""

# ruff: noqa: T201 - an example talks to whoever runs it

import asyncio
import sys
from pathlib import Path

from openai_responses_mcp.agents import (
    Agent,
    AgentsError,
    GateDecision,
    SafetyAgent,
    create_runner,
    get_provider,
    hosted_mcp_tool,
)

SERVER = Path(__file__).with_name("files_server.py")


def judge(agent, request, policy):
    """Asked before every call. What it refuses never reaches the server."""
    if ".env" in str(request.args.get("name", "")):
        return GateDecision("deny", 5, "files with secrets are not read")
    return GateDecision("allow", 1, "an ordinary file")


async def main(folder: str, task: str) -> None:
    files = hosted_mcp_tool(
        [sys.executable, str(SERVER), folder],
        name="files",
        require_approval=False,  # the risk levels decide: up to 2 it runs alone, 3 and 4 ask a human
        risk_levels={"list_files": 1, "read_file": 1, "write_file": 3},
        repeatable=["list_files", "read_file"],
    )
    agent = Agent(
        name="Archivist",
        instructions="You look after a folder of text files.",
        model=get_provider().get_model(),
        tools=[files],
    )
    runner = create_runner(safety_agent=SafetyAgent(judge))
    async with files:
        result = await runner.run(agent, task)
        while result.interruptions:
            asked = result.interruptions[0]
            print(f"{asked.prompt}\n{dict(asked.arguments)}")
            answer = await asyncio.to_thread(input, "Allow? [y/N] ")
            decision = "approve" if answer.strip().lower() == "y" else "deny"
            result = await runner.approve_and_resume(result.run_id, asked.approval_id, decision=decision)
    print(result.output_text)
    for log in await runner.get_execution_logs(result.run_id):
        print(f"{log.event:<10} {log.decision:<12} {log.tool_name}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        asyncio.run(main(*sys.argv[1:]))
    except AgentsError as exc:
        sys.exit(str(exc))
