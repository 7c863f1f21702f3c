"""Checks of values that come from outside; type annotations do not hold there."""

from openai_responses_mcp.gate.errors import AgentsError

LONGEST_ID = 128
LONGEST_TEXT = 2000


def require(is_fine: bool, code: str, message: str) -> None:
    if not is_fine:
        raise AgentsError(code, message)


def is_short_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
