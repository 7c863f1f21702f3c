"""What runs are tried on: an agent with a harmless tool and a risky one, its scripted model, its judge, its runner."""

from typing import Any

from openai_responses_mcp.agents import Agent, Extensions, RunOptions, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.approvals.models import HumanDecision
from openai_responses_mcp.gate.safety_gate import Judge
from tests.agents.fakes import FakeJudge, within


class Scene:
    """Two tools that note what they were called with. `options` are those of `create_runner`."""

    def __init__(self, *turns: Any, judge: Judge | None = None, pays_by: str = "Pay somebody.", **options: Any) -> None:
        self.ran: list[str] = []
        self.judge = FakeJudge()
        self.model = ScriptedModel(*turns)

        @tool
        async def look(what: str = "around") -> str:
            """Look at something."""
            self.ran.append(f"look {what}")
            return f"saw {what}"

        @tool(risk_level=3, description=pays_by)
        async def pay(amount: int) -> str:
            self.ran.append(f"pay {amount}")
            return f"paid {amount}"

        self.look, self.pay = look, pay
        self.agent = Agent(name="Clerk", model=self.model, tools=[look, pay])
        self.runner = create_runner(safety_agent=judge or self.judge, **options)

    @property
    def heard(self) -> list[Any]:
        """The input of the model, each time that it was asked."""
        return [call.input for call in self.model.calls]

    async def go(self, extensions: Extensions | None = None) -> Any:
        return await within(self.runner.run(self.agent, "go", RunOptions(extensions=extensions)))

    async def paused(self) -> Any:
        result = await self.go()
        assert result.interruptions
        return result

    async def decided(self, decision: HumanDecision = "approve", comment: str | None = None, **more: Any) -> Any:
        """The paused run, and the token of the decision on its first call."""
        paused = await self.paused()
        approval_id = paused.interruptions[0].approval_id
        return paused, await self.runner.submit_approval(approval_id, decision, comment, **more)

    async def events(self) -> list[tuple[str, str]]:
        return [(log.event, log.decision) for log in await self.runner.get_execution_logs()]


LOOK = ScriptedCall("look", {"what": "here"}, "l-1")
PAY = ScriptedCall("pay", {"amount": 5}, "p-1")
