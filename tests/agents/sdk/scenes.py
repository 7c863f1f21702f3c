"""What runs on the SDK's engine are tried on: an agent with a harmless tool and a risky one, its judge, its runner."""

from typing import Any

from openai_responses_mcp.agents import (
    Agent,
    Extensions,
    RunOptions,
    create_runner,
    tool,
)
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import FakeJudge, within


class Scene:
    """Two tools that note what they were called with, an agent, a judge and a runner."""

    def __init__(self, *turns: Any, **options: Any) -> None:
        self.ran: list[str] = []
        self.judge = FakeJudge()
        self.model = ScriptedModel(*turns)

        @tool
        def look(what: str = "around") -> str:
            """Look at something."""
            self.ran.append(f"look {what}")
            return f"saw {what}"

        @tool(risk_level=3)
        def pay(amount: int) -> str:
            """Pay somebody."""
            self.ran.append(f"pay {amount}")
            return f"paid {amount}"

        self.look, self.pay = look, pay
        self.agent = Agent(name="Clerk", model=self.model, tools=[look, pay])
        self.runner = create_runner(safety_agent=self.judge, **options)

    async def go(self, extensions: Extensions | None = None) -> Any:
        return await within(self.runner.run(self.agent, "go", RunOptions(extensions=extensions)))

    async def paused(self) -> Any:
        result = await self.go()
        assert result.interruptions
        return result

    async def events(self) -> list[tuple[str, str]]:
        return [(log.event, log.decision) for log in await self.runner.get_execution_logs()]


LOOK = ScriptedCall("look", {"what": "here"}, "l-1")
PAY = ScriptedCall("pay", {"amount": 5}, "p-1")
