"""The private names of the SDK: each exists in the installed version."""

import dataclasses
from importlib.metadata import version
from typing import Any

from openai_responses_mcp.agents.sdk.internals import PRIVATE_NAMES


def test_every_private_name_exists_in_the_installed_sdk() -> None:
    missing = [
        f"{owner.__name__}.{name}: {use}" for (owner, name), use in PRIVATE_NAMES.items() if not has(owner, name)
    ]
    assert missing == [], f"not in openai-agents {version('openai-agents')}"


def has(owner: Any, name: str) -> bool:
    fields = {field.name for field in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
    fields |= set(vars(owner)["__init__"].__code__.co_names) if "__init__" in vars(owner) else set()
    return name in fields or hasattr(owner, name)
