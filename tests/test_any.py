"""`Any` switches the type checker off. It stands where the SDK or Python itself says so, and nowhere else in these rooms.

JSON is `JsonValue`, and what belongs to the SDK is an `object` outside of the adapters.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import openai_responses_mcp

PACKAGE = Path(openai_responses_mcp.__file__).parent
ROOMS = ("agents", "desk", "gate", "guard")

# Types of the SDK and of SQLAlchemy that are generic in something that is not known here, such as the user's context.
GENERIC = {
    "Agent",
    "AgentBase",
    "AgentHookContext",
    "Handoff",
    "Row",
    "RunContextWrapper",
    "RunHooks",
    "RunState",
    "ToolContext",
}
# Where else it may stand: at the SDK, the vendor's clients, the database and argparse, whose own methods say so, and
# where JSON is checked keyword by keyword.
ADAPTERS = ("agents/sdk", "agents/mcp", "agents/providers", "gate/sql", "gate/schema")
FILES = {
    "agents/__init__.py",
    "agents/composition.py",
    "agents/runs/models.py",
    "agents/testing.py",
    "desk/terminal/parsing.py",
    "gate/json_values.py",
}


def test_any_stands_only_where_a_library_says_so() -> None:
    files = (path for room in ROOMS for path in (PACKAGE / room).rglob("*.py") if _says_any(path))
    found = {path.relative_to(PACKAGE).as_posix() for path in files}
    assert {name for name in found if not name.startswith(ADAPTERS)} == FILES


def _says_any(path: Path) -> bool:
    return any(node.id == "Any" for node in _bare(ast.parse(path.read_text())))


def _bare(node: ast.AST) -> Iterator[ast.Name]:
    """Every name that is not an argument of one of the generic types."""
    if isinstance(node, ast.Name):
        yield node
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).rpartition(".")[2] in GENERIC:
        return
    for child in ast.iter_child_nodes(node):
        yield from _bare(child)
