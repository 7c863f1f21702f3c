"""Where a person decides what a worker may do, in a process of its own.

    python docs/examples/approval_desk.py sqlite:///agents.db

Shows everything that waits in the database and asks about each. See approval_worker.py for the other side.
"""

# ruff: noqa: T201 - an example talks to whoever runs it

import asyncio
import sys

from openai_responses_mcp.agents import AgentsError, SafetyAgent, create_runner


def judge(agent, request, policy):
    return {"decision": "deny", "risk_level": 5, "reason": "nothing runs at this desk"}


async def main(store: str) -> None:
    runner = create_runner(safety_agent=SafetyAgent(judge), store=store)
    for asked in await runner.get_pending_approvals():
        print(f"{asked.prompt}\n{dict(asked.arguments)}")
        answer = await asyncio.to_thread(input, "Allow? [y/N] ")
        decision = "approve" if answer.strip().lower() == "y" else "deny"
        await runner.submit_approval(asked.approval_id, decision, comment="decided at the desk")
        print(f"{decision}: {asked.approval_id}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        asyncio.run(main(sys.argv[1]))
    except AgentsError as exc:
        sys.exit(str(exc))
