"""Do arguments fit a JSON Schema? The answer is yes, no, or that it cannot be said here.

No package is used, because schemas come from servers of other people. In a package, nested `anyOf` and `$ref` take
exponential time, `uniqueItems` quadratic time, a pattern may run for ever, and the text of an error is as long as the
value. Here every piece of work is counted against one budget, and a value does not fit when the budget is used up.

`format` and `content…` say nothing, as the standard has it. Infinities and NaN fit no schema: they are not JSON.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal

from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, is_number
from openai_responses_mcp.gate.schema.documents import UNKNOWN_DRAFT
from openai_responses_mcp.gate.schema.keywords import Misfit, OutOfSteps, Steps, Walk
from openai_responses_mcp.gate.schema.patterns import Patterns, SchemaPatterns

# About a second of work, and enough for a list of many thousand ordinary objects.
MOST_STEPS = 500_000
# Few enough not to hold up the event loop.
FEW_STEPS = 2_000
LONGEST_PROBLEM = 500

TOO_MANY_STEPS = "it: takes too many steps to check; make it or the schema simpler"


@dataclass(frozen=True, slots=True)
class SchemaFit:
    """`why` says in one sentence why a value does not fit, or why that cannot be said."""

    answer: Literal["fits", "does_not_fit", "cannot_say"]
    why: str = ""

    @property
    def problem(self) -> str | None:
        """Why the value does not fit; None if it does, or if that cannot be said."""
        return self.why if self.answer == "does_not_fit" else None


class SchemaChecker:
    """Without an engine for patterns, whatever depends on one cannot be said."""

    def __init__(self, engine: Patterns | None = None) -> None:
        self._patterns = SchemaPatterns(engine)

    async def check(self, value: JsonValue, schema: JsonObject) -> SchemaFit:
        """A check that takes more than a moment goes on in a thread."""
        try:
            return self._fit(value, schema, Steps(FEW_STEPS))
        except OutOfSteps:
            return await asyncio.to_thread(self.check_here, value, schema)

    def check_here(self, value: JsonValue, schema: JsonObject, steps: Steps | None = None) -> SchemaFit:
        """The same, without a thread. Several checks can share one budget."""
        try:
            return self._fit(value, schema, steps or Steps(MOST_STEPS))
        except OutOfSteps:
            return SchemaFit("does_not_fit", TOO_MANY_STEPS)

    def _fit(self, value: JsonValue, schema: JsonObject, steps: Steps) -> SchemaFit:
        walk = Walk(schema, steps, self._patterns)
        try:
            if _has_infinity(value, steps):
                return SchemaFit("does_not_fit", "it: holds a number that JSON does not have")
            if walk.document.draft == UNKNOWN_DRAFT:
                return SchemaFit("cannot_say", "the schema is of a kind that is not known here")
            finding = walk.check(schema, value)
        except RecursionError:
            return SchemaFit("does_not_fit", "it: nested too deeply")
        if isinstance(finding, Misfit):
            return SchemaFit("does_not_fit", str(finding)[:LONGEST_PROBLEM])
        return SchemaFit("fits") if finding is None else SchemaFit("cannot_say", finding.why)


def _has_infinity(value: JsonValue, steps: Steps) -> bool:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        steps.spend()
        if isinstance(one, float) and not is_number(one):
            return True
        waiting.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
    return False
