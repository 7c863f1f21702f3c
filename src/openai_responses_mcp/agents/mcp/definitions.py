"""The definition of a tool as it is kept when the tool is approved, and what has changed later.

A pin is the hash of the whole definition with the definition behind it: the hash is compared, the rest tells a person what
changed. A pin of an earlier kind is the hash alone.
"""

import json

from openai_responses_mcp.agents.json_values import JsonObject, JsonValue
from openai_responses_mcp.agents.schemas.differences import differences
from openai_responses_mcp.agents.secrets.hashing import canonical, digest

CHANGED = "what the server says about the tool has changed since it was approved"


def pin_of(entry: JsonObject) -> str:
    return f"{digest('mcp-tool', entry)} {canonical(entry)}"


def is_same(pin: str, other: str) -> bool:
    return pin.partition(" ")[0] == other.partition(" ")[0]


def change_between(approved: str, pin: str) -> str:
    """One line for each part that differs: where, what it was, what it is."""
    before, after = (_entry_in(one) for one in (approved, pin))
    if before is None:
        return "What it was before is not known"
    return differences(before, after)


def _entry_in(pin: str) -> JsonValue:
    entry = pin.partition(" ")[2]
    return json.loads(entry) if entry else None
