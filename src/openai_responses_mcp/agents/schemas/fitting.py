"""Does a value fit a JSON Schema? Asked of arguments before they reach a skill or leave for an MCP server.

No package is used, because schemas come from servers that nobody here wrote. In a package, nested `anyOf` and `$ref`
take exponential time, `uniqueItems` quadratic time, a pattern may run for ever, and the text of an error is as long as
the value. Here every piece of work is counted against one budget, patterns are never tried, and a value does not fit
when the budget is used up.

Understands drafts 4 to 2020-12. `format` and `content…` say nothing, as the standard has it. The schema was read by
`reading.problem_in`, so that its keywords have the form they should have.
"""

import asyncio

from openai_responses_mcp.agents.json_values import JsonObject, JsonValue
from openai_responses_mcp.agents.schemas import rules, rules_of_lists, rules_of_objects
from openai_responses_mcp.agents.schemas.cases import Fitting
from openai_responses_mcp.agents.schemas.steps import FEW_STEPS, OutOfSteps, Steps, TooDeep

LONGEST_PROBLEM = 500

RULES = {**rules.RULES, **rules_of_lists.RULES, **rules_of_objects.RULES}


async def problem_with(value: JsonValue, schema: JsonObject) -> str | None:
    """Why the value does not fit, in one sentence. A check that takes more than a moment goes on in a thread."""
    try:
        return _first_problem(value, schema, Steps(FEW_STEPS))
    except OutOfSteps:
        return await asyncio.to_thread(find_problem, value, schema)


def find_problem(value: JsonValue, schema: JsonObject, steps: Steps | None = None) -> str | None:
    """The same, without a thread. Several checks can share one budget."""
    try:
        return _first_problem(value, schema, steps or Steps())
    except OutOfSteps:
        return "it: takes too many steps to check; make it or the schema simpler"


def _first_problem(value: JsonValue, schema: JsonObject, steps: Steps) -> str | None:
    try:
        problem = Fitting(schema, steps, RULES).check(schema, value, None)
    except (TooDeep, RecursionError):
        return "it: nested too deeply"
    return None if problem is None else str(problem)[:LONGEST_PROBLEM]
