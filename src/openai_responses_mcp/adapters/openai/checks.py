"""What the doctor asks the API, and reads from its replies. It costs nothing.

A model is looked up, and a request is tried by having its tokens counted instead of having it answered.
"""

import json
from collections.abc import Mapping

from openai_responses_mcp.adapters.openai.wire import JsonObject

COUNTING_PATH = "/responses/input_tokens"

# What a request whose tokens are counted may hold; the rest of a question's fields would be refused there.
COUNTED_FIELDS = (
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "personality", "previous_response_id",
    "reasoning", "text", "tool_choice", "tools", "truncation",
)  # fmt: skip


def counted_body(body: Mapping[str, object]) -> JsonObject:
    return {name: value for name, value in body.items() if name in COUNTED_FIELDS}


def shutdown_date(content: bytes) -> str | None:
    """The day on which the model ends. Most have none, and gateways may say nothing at all of a model."""
    try:
        model = json.loads(content)
    except (ValueError, RecursionError):
        return None
    day = model.get("shutdown_date") if isinstance(model, dict) else None
    return day if isinstance(day, str) and day.strip() else None
