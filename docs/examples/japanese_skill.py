"""A folder of skills in Japanese: what is in it, and an agent that uses one.

python docs/examples/japanese_skill.py "田中: 来週までに見積もりを出す。"
"""

# ruff: noqa: T201 - an example talks to whoever runs it

import asyncio
import sys
from pathlib import Path

from openai_responses_mcp.agents import (
    Agent,
    AgentsError,
    SafetyAgent,
    create_runner,
    get_provider,
    list_skills,
    load_skills,
    to_introspection_tools,
    to_tools,
)

SKILLS = Path(__file__).with_name("skills")


def judge(agent, request, policy):
    return {"decision": "allow", "risk_level": 1, "reason": "skills of this folder were read by a person"}


async def main(notes: str) -> None:
    skills = await load_skills(SKILLS)
    for problem in skills.problems:
        print(f"left out: {problem}")
    for summary in list_skills(skills):
        print(f"{summary.skill_id}: {summary.overview}")
    agent = Agent(
        name="書記",
        instructions="会議のメモを受け取り、合うスキルがあればそれに従って書く。",
        model=get_provider().get_model(),
        tools=[*to_tools(skills), *to_introspection_tools(skills)],
    )
    runner = create_runner(safety_agent=SafetyAgent(judge))
    result = await runner.run(agent, notes)
    print(result.output_text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        asyncio.run(main(sys.argv[1]))
    except AgentsError as exc:
        sys.exit(str(exc))
