"""A worker that stops where a person has to decide, and goes on when somebody has, in another process.

    python docs/examples/approval_worker.py sqlite:///agents.db "Tell Sato that the parcel is late"

The decision is made by approval_desk.py on the same database, or in a terminal:

    openai-responses-mcp approvals list --store sqlite:///agents.db
    openai-responses-mcp approvals approve APPROVAL --store sqlite:///agents.db

The model is the one that the environment names: AGENTS_MODEL_PROVIDER and the variables in docs/providers.md.
"""

# ruff: noqa: T201 - an example talks to whoever runs it

import asyncio
import sys
from pathlib import Path

from openai_responses_mcp.agents import Agent, AgentsError, SafetyAgent, create_runner, get_provider, tool

OUTBOX = Path("outbox.txt")
LONGEST_WAIT_SECONDS = 3600


@tool(require_approval=True)
def send_letter(to: str, text: str) -> str:
    """Send a letter."""
    with OUTBOX.open("a", encoding="utf-8") as outbox:
        outbox.write(f"{to}: {text}\n")
    return "sent"


def judge(agent, request, policy):
    return {"decision": "allow", "risk_level": 2, "reason": "a person reads every letter first"}


async def main(store: str, task: str) -> None:
    agent = Agent(name="Secretary", model=get_provider().get_model(), tools=[send_letter])
    runner = create_runner(safety_agent=SafetyAgent(judge), store=store)
    result = await runner.run(agent, task)
    while result.interruptions:
        print(f"waiting for a decision: {', '.join(asked.approval_id for asked in result.interruptions)}", flush=True)
        await runner.wait_for_decision(result.run_id, timeout_seconds=LONGEST_WAIT_SECONDS)
        result = await runner.resume_run(result.run_id)
    print(result.output_text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        asyncio.run(main(*sys.argv[1:]))
    except AgentsError as exc:
        sys.exit(str(exc))
