"""The answering server's use case as a tool of an agent, in this process and without MCP in between.

The one place of this half that knows the other half's container. Configuration and key are the server's own. The model
gets an error text for a question that cannot be answered; a broken set-up raises.
"""

import asyncio
import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agents import FunctionTool
from agents.tool_context import ToolContext

from openai_responses_mcp.agents.sdk.tool_traits import ToolTraits, parsed, with_traits
from openai_responses_mcp.config.loading import ConfigError, Flags, load
from openai_responses_mcp.domain.errors import AnsweringError, KeyUnusable, ProfileMissing
from openai_responses_mcp.domain.models import Answer, Question
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.server.tool_results import tool_result
from openai_responses_mcp.server.tools import TOOLS, read_question
from openai_responses_mcp.start import Basis, basis_of

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container

# It reads the web and sends the question to the API: more than a function that stays in this process.
RISK_LEVEL = 2


def answering_tool(profile: str) -> FunctionTool:
    if profile not in TOOLS:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", f"profile is one of {', '.join(TOOLS)}")
    try:
        configuration = load(Flags(), os.environ)
    except ConfigError as exc:
        raise AgentsError("AGENTS-E-PROVIDER-CONFIG", "; ".join(exc.problems)) from None
    tool, basis = TOOLS[profile], basis_of(configuration, os.environ)
    described = tool.described()
    answering = _Answering(basis)

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        try:
            question = read_question(
                tool, dict(parsed(arguments)), keeps_responses=configuration.settings.request.store
            )
            answer = await answering.answer(question)
        except (KeyUnusable, ProfileMissing) as exc:
            failure = AgentsError("AGENTS-E-PROVIDER-CONFIG", basis.mask(str(exc)))
        except AnsweringError as exc:
            return f"The question was not answered: {basis.mask(str(exc))}"
        else:
            return json.dumps(tool_result(tool, answer)["structuredContent"], ensure_ascii=False)
        raise failure

    made = FunctionTool(
        name=profile,
        description=described["description"],
        params_json_schema=described["inputSchema"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )
    return with_traits(made, ToolTraits(kind="function", risk_level=RISK_LEVEL))


class _Answering:
    """The server's use case, put together once for each event loop: connections belong to the loop that opened them."""

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        self._containers: WeakKeyDictionary[asyncio.AbstractEventLoop, Container] = WeakKeyDictionary()
        self._calls: Counter[Container] = Counter()

    async def answer(self, question: Question) -> Answer:
        loop = asyncio.get_running_loop()
        container = self._containers.get(loop)
        if container is None:
            container = self._containers[loop] = self._basis.load_container(owns_process=False)
        self._calls[container] += 1
        try:
            return await container.answer_question().answer(question)
        finally:
            self._calls[container] -= 1
            if not self._calls[container]:  # The end of the loop is not seen from here, so no connection is kept open.
                del self._calls[container]
                await container.openai_gateway().close()
