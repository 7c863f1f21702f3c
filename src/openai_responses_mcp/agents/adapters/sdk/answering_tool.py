"""The answering server's use case as a tool of an agent, in this process and without MCP in between.

The one place of this half that knows the other half's container. Configuration and key are the server's own. A question
that cannot be answered is told to the model; a set-up that cannot answer any is an error.
"""

import asyncio
import json
import os
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from openai_responses_mcp.agents.adapters.sdk.tool_traits import ToolTraits, with_traits
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.config import ConfigError, Configuration, Flags, load
from openai_responses_mcp.container import Container
from openai_responses_mcp.domain.errors import AnsweringError, KeyUnusable, ProfileMissing
from openai_responses_mcp.domain.models import Answer, Question
from openai_responses_mcp.server.tool_results import tool_result
from openai_responses_mcp.server.tools import TOOLS, read_question
from openai_responses_mcp.surroundings import Surroundings, surroundings

# It reads the web and tells the question to the API: more than a function that stays in this process.
RISK_LEVEL = 2


def answering_tool(profile: str) -> FunctionTool:
    if profile not in TOOLS:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", f"profile is one of {', '.join(TOOLS)}")
    try:
        configuration = load(Flags(), os.environ)
    except ConfigError as exc:
        raise AgentsError("AGENTS-E-PROVIDER-CONFIG", "; ".join(exc.problems)) from None
    described = TOOLS[profile].described()

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return await _answered(profile, arguments, configuration)

    made = FunctionTool(
        name=profile,
        description=described["description"],
        params_json_schema=described["inputSchema"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )
    return with_traits(made, ToolTraits(kind="function", risk_level=RISK_LEVEL))


async def _answered(profile: str, arguments: str, configuration: Configuration) -> str:
    around, tool = surroundings(configuration, os.environ), TOOLS[profile]
    try:
        question = read_question(tool, _parsed(arguments), keeps_responses=configuration.settings.request.store)
        result = tool_result(tool, await _answer(question, around))
    except (KeyUnusable, ProfileMissing) as exc:
        failure = AgentsError("AGENTS-E-PROVIDER-CONFIG", around.mask(str(exc)))
    except AnsweringError as exc:
        return f"The question was not answered: {around.mask(str(exc))}"
    else:
        return json.dumps(result["structuredContent"], ensure_ascii=False)
    finally:
        around.logger.close()
    raise failure


async def _answer(question: Question, around: Surroundings) -> Answer:
    # Not through `load_container`, which takes over the process's logging; that is for the server's own process.
    container = Container(
        settings=around.configuration.settings,
        system_policy=around.configuration.system_policy,
        api_key=around.api_key,
        mask=around.mask,
        logger=around.logger,
        is_ending=asyncio.Event(),
    )
    try:
        return await container.answer_question().answer(question, None)
    finally:
        await container.openai_gateway().close()


def _parsed(arguments: str) -> dict[str, Any]:
    """What is no object lacks the question, which is told to the model."""
    try:
        args = json.loads(arguments or "{}")
    except ValueError:
        args = None
    return args if isinstance(args, dict) else {}
