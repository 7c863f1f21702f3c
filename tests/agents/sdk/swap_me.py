"""Code written for the SDK. The tests run it as it is and with its one import swapped."""

from typing import Any

from agents import Agent, ModelSettings, RunContextWrapper, RunHooks, Runner, function_tool, handoff, trace


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@function_tool
async def greet(context: RunContextWrapper[Any], name: str) -> str:
    """Greet somebody in the caller's way."""
    return f"{context.context['greeting']} {name}"


class Counting(RunHooks[Any]):
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
        self.seen.append(f"{agent.name} used {tool.name}: {result}")


def agents(first: Any, second: Any) -> Agent[Any]:
    helper: Agent[Any] = Agent(name="Helper", instructions="Help.", model=second, tools=[greet])
    settings = ModelSettings(temperature=0.5)
    return Agent(name="Main", model=first, tools=[add], handoffs=[handoff(helper)], model_settings=settings)


async def ask(first: Any, second: Any) -> tuple[Any, ...]:
    hooks = Counting()
    with trace("a workflow"):
        result = await Runner.run(agents(first, second), "go", context={"greeting": "Hello"}, hooks=hooks, max_turns=6)
    names = [type(item).__name__ for item in result.new_items]
    return result.final_output, result.last_agent.name, names, hooks.seen, len(result.raw_responses)


def ask_sync(first: Any, second: Any) -> Any:
    return Runner.run_sync(agents(first, second), "go", context={"greeting": "Hi"}).final_output


async def ask_streamed(first: Any, second: Any) -> tuple[Any, ...]:
    result = Runner.run_streamed(agents(first, second), "go", {"greeting": "Hello"}, 6)
    kinds: list[str] = []
    async for event in result.stream_events():
        kinds.append(event.type)
        if event.type == "agent_updated_stream_event":
            kinds.append(type(event.new_agent).__name__)
    return result.final_output, kinds, result.is_complete, [item.type for item in result.new_items]
