"""The runner for code that was written for the SDK and has only its import changed."""

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.runs.models import RunOptions
from openai_responses_mcp.agents.runs.results import RunResult

_configured: list[AgentRunner] = []


def configure(runner: AgentRunner | None) -> None:
    """From now on `Runner.run`, `run_sync` and `run_streamed` go through this runner; None takes it away again."""
    if runner is not None and not isinstance(runner, AgentRunner):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "configure takes a runner made by create_runner")
    _configured[:] = [] if runner is None else [runner]


def configured_runner() -> AgentRunner:
    if not _configured:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "No runner is configured: call configure(create_runner(...)) first")
    return _configured[0]


async def run(
    agent: object, input: object, options: RunOptions | None = None, *, runner: AgentRunner | None = None
) -> RunResult:
    """`runner.run(agent, input, options)`, with the configured runner where none is given."""
    return await (runner or configured_runner()).run(agent, input, options)
