"""The runner for code that was written for the SDK and has only its import changed."""

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.runner import AgentRunner

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
