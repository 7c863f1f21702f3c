"""The private names of the SDK: each exists in the installed version, and all of them are in one file."""

import ast
import dataclasses
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import openai_responses_mcp.agents as adapters
from openai_responses_mcp.agents.sdk import internals
from openai_responses_mcp.agents.sdk.internals import PRIVATE_NAMES

FOLDER = Path(str(adapters.__file__)).parent
INTERNALS = Path(internals.__file__)


def test_every_private_name_exists_in_the_installed_sdk() -> None:
    missing = [
        f"{owner.__name__}.{name}: {use}" for (owner, name), use in PRIVATE_NAMES.items() if not has(owner, name)
    ]
    assert missing == [], f"not in openai-agents {version('openai-agents')}"


def has(owner: Any, name: str) -> bool:
    fields = {field.name for field in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
    fields |= set(vars(owner)["__init__"].__code__.co_names) if "__init__" in vars(owner) else set()
    return name in fields or hasattr(owner, name)


def test_the_table_holds_every_private_name_that_is_used() -> None:
    assert {name for _, name in private_names_in(INTERNALS)} == {name for _, name in PRIVATE_NAMES}


def test_no_other_file_touches_a_private_name() -> None:
    others = [file for file in FOLDER.rglob("*.py") if file != INTERNALS]
    assert [(file.name, *name) for file in others for name in private_names_in(file)] == []


def private_names_in(file: Path) -> Iterator[tuple[int, str]]:
    """Attributes with an underscore of anything but `self`, `cls` and rows of the database, and such keywords."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
            if ast.unparse(node.value) not in ("self", "cls", "super()", "row"):
                yield node.lineno, node.attr
        elif isinstance(node, ast.keyword) and re.match(r"_[a-z]", node.arg or ""):
            yield node.value.lineno, str(node.arg)
