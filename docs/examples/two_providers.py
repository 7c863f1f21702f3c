"""The same agent on a model of Ollama and on one of OpenAI; one that is not set up says what it lacks.

AGENTS_OLLAMA_MODEL=llama3.2 OPENAI_API_KEY=... python docs/examples/two_providers.py "How far is it from Osaka to Tokyo?"
"""

# ruff: noqa: T201 - an example talks to whoever runs it

import asyncio
import sys

from openai_responses_mcp.agents import Agent, AgentsError, SafetyAgent, create_runner, get_provider, tool

PROVIDERS = ("ollama", "openai")


@tool
def kilometres(start: str, end: str) -> int:
    """The distance between two cities by rail."""
    return {("Osaka", "Tokyo"): 515, ("Tokyo", "Osaka"): 515}.get((start, end), -1)


def judge(agent, request, policy):
    return {"decision": "allow", "risk_level": 1, "reason": "looks a number up"}


async def main(question: str) -> None:
    runner = create_runner(safety_agent=SafetyAgent(judge))
    for name in PROVIDERS:
        try:
            model = get_provider(name).get_model()
            agent = Agent(name="Guide", instructions="Answer in one sentence.", model=model, tools=[kilometres])
            result = await runner.run(agent, question)
            print(f"{name} ({model.model}): {result.output_text}")
        except AgentsError as exc:
            print(f"{name}: {exc}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1]))
