"""The runner for code that was written for the SDK and has only its import changed."""

from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.runs.models import RunOptions, RunResult
from openai_responses_mcp.gate.errors import AgentsError

_configured: list[AgentRunner] = []
_may_approve: list[bool] = []


def configure(runner: AgentRunner | None, *, allow_code_approval: bool = False) -> None:
    """From now on `Runner.run`, `run_sync` and `run_streamed` go through this runner; None takes it away again.

    With `allow_code_approval`, `state.approve(item)` counts as an approval, and is recorded as made by code.
    """
    if runner is not None and not isinstance(runner, AgentRunner):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "configure takes a runner made by create_runner")
    _configured[:] = [] if runner is None else [runner]
    _may_approve[:] = [allow_code_approval]


def is_configured() -> bool:
    return bool(_configured)


def configured_runner() -> AgentRunner:
    if not _configured:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "No runner is configured: call configure(create_runner(...)) first")
    return _configured[0]


def may_code_approve() -> bool:
    return _may_approve == [True]


def check_code_may_approve() -> None:
    if not may_code_approve():
        message = "Code may not approve calls: switch it on with configure(runner, allow_code_approval=True)"
        raise AgentsError("AGENTS-E-APPROVAL-INVALID", message)


async def run(
    agent: object, input: object, options: RunOptions | None = None, *, runner: AgentRunner | None = None
) -> RunResult:
    """`runner.run(agent, input, options)`, with the configured runner where none is given."""
    return await (runner or configured_runner()).run(agent, input, options)
