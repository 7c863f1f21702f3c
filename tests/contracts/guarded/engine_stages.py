"""Where engines are tried: the same tools, agents and scripts for the fake and for the SDK's."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import agents as sdk

from openai_responses_mcp.agents.mcp.guarded_tools import guarded_mcp_tools
from openai_responses_mcp.agents.runs.ports import AgentEngine
from openai_responses_mcp.agents.sdk.engine import OpenAIAgentsEngine
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fake_engine import FakeAgent, FakeCall, FakeEngine, FakeTool


class Stage(Protocol):
    """All agents of a stage speak from one script, in the order in which they are asked."""

    engine: AgentEngine

    def enqueue(self, *turns: Any) -> None: ...

    def change_engine(self) -> None:
        """Another engine takes over, as in another process; the script goes on."""
        ...

    @property
    def heard(self) -> list[str]:
        """What the models got, one text for each time that one was asked."""
        ...

    def agent(self, name: str, tools: Sequence[Any] = (), handoffs: Sequence[Any] = ()) -> Any: ...

    def tool(self, name: str, work: Callable[..., Any], description: str = "") -> Any: ...

    def agent_tool(self, name: str, agent: Any) -> Any:
        """The agent as a tool of another."""
        ...


class FakeStage(Stage):
    def __init__(self) -> None:
        self._fake = FakeEngine()
        self.engine = self._fake
        self._heard_before: list[list[Any]] = []

    def enqueue(self, *turns: Any) -> None:
        self._fake.enqueue(*turns)

    def change_engine(self) -> None:
        self._heard_before += self._fake.heard
        self._fake = FakeEngine(*self._fake.turns_left)
        self.engine = self._fake

    @property
    def heard(self) -> list[str]:
        return [json.dumps(said, default=str) for said in [*self._heard_before, *self._fake.heard]]

    def agent(self, name: str, tools: Sequence[Any] = (), handoffs: Sequence[Any] = ()) -> Any:
        return FakeAgent(name, list(tools), list(handoffs))

    def tool(self, name: str, work: Callable[..., Any], description: str = "") -> Any:
        return FakeTool(name, work, description)

    def agent_tool(self, name: str, agent: Any) -> Any:
        return FakeTool(name, agent=agent)


class SdkStage(Stage):
    def __init__(self) -> None:
        self._model = ScriptedModel()
        self._handoffs: set[str] = set()
        self.change_engine()

    def enqueue(self, *turns: Any) -> None:
        self._model.enqueue(*(self._scripted(turn) for turn in turns))

    def change_engine(self) -> None:
        self.engine = OpenAIAgentsEngine(guarded_mcp_tools)

    @property
    def heard(self) -> list[str]:
        return [json.dumps(call.input, default=str) for call in self._model.calls]

    def agent(self, name: str, tools: Sequence[Any] = (), handoffs: Sequence[Any] = ()) -> Any:
        self._handoffs |= {one.name for one in handoffs}
        return sdk.Agent[Any](name=name, model=self._model, tools=list(tools), handoffs=list(handoffs))

    def tool(self, name: str, work: Callable[..., Any], description: str = "") -> Any:
        async def invoke(context: Any, arguments: str) -> Any:
            return work(**json.loads(arguments))

        schema = {"type": "object", "properties": {}, "additionalProperties": True}
        return sdk.FunctionTool(name, description, schema, invoke, strict_json_schema=False)

    def agent_tool(self, name: str, agent: Any) -> Any:
        return agent.as_tool(name, "Ask somebody else.")

    def _scripted(self, turn: Any) -> Any:
        if isinstance(turn, list):
            return [self._scripted(part) for part in turn]
        if not isinstance(turn, FakeCall):
            return turn
        name = f"transfer_to_{turn.name.lower()}" if turn.name in self._handoffs else turn.name
        return ScriptedCall(name, turn.args, turn.call_id)
