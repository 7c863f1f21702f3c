"""A call whose arguments a human changed: what it is now, and what the model is told about it."""

from openai_responses_mcp.agents.calls import PlannedCall
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.call_table import HumanAnswer
from openai_responses_mcp.agents.gate.models import ChangedCall
from openai_responses_mcp.agents.schemas.differences import differences
from openai_responses_mcp.agents.schemas.fitting import problem_with
from openai_responses_mcp.agents.secrets.masking import Masking
from openai_responses_mcp.agents.secrets.putting_back import with_secrets


async def changed_call(
    call: PlannedCall, before: ChangedCall | None, answer: HumanAnswer, masking: Masking
) -> ChangedCall:
    """`call` is as the model made it, and `before` as humans had changed it when this one was asked.

    Raises `AGENTS-E-APPROVAL-INVALID` where the arguments do not fit the tool.
    """
    args = with_secrets(answer.changed or {}, answer.shown, before.args if before else call.args)
    problem = await problem_with(args, call.tool.parameters)
    if problem is not None:
        raise AgentsError("AGENTS-E-APPROVAL-INVALID", f"The changed arguments do not fit the tool: {problem}")
    models, humans = (masking.shown(one, call.tool.parameters) for one in (call.args, args))
    return ChangedCall(args, f"A human changed the arguments of this call:\n{differences(models, humans)}")
