"""`Any` switches the type checker off. It stands where the SDK or Python itself says so, and nowhere else in this half.

JSON is `JsonValue`, and what belongs to the SDK is an `object` outside of the adapters.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import openai_responses_mcp.agents

AGENTS = Path(openai_responses_mcp.agents.__file__).parent
ADAPTERS = "adapters/"

# Types of the SDK and of SQLAlchemy that are generic in something which nobody here knows, such as the user's context.
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
# Where else it may stand, and why.
REASONS = {
    "a name or a field of the SDK is whatever the SDK has under it": (
        "__init__.py",
        "runs/results.py",
        "adapters/sdk/tool_traits.py",
    ),
    "JSON that was written by this library, or whose form is checked right there, keyword by keyword": (
        "json_values.py",
        "schemas/cases.py",
        "schemas/reading.py",
        "schemas/rules.py",
        "schemas/rules_of_lists.py",
        "schemas/rules_of_objects.py",
    ),
    "a model of the SDK, which callers give to the SDK": ("providers/ports.py",),
    "arguments and results that are passed on to the SDK or to somebody's code as they come": (
        "adapters/models/compat_model.py",
        "adapters/models/scripted_model.py",
        "adapters/models/standin_models.py",
        "adapters/sdk/engine.py",
        "adapters/sdk/facade.py",
        "adapters/sdk/internals.py",
        "adapters/sdk/nested_runs.py",
        "adapters/sdk/sessions.py",
        "adapters/sdk/side_threads.py",
        "adapters/sdk/websocket_sessions.py",
        "adapters/skills/skill_tools.py",
        "adapters/stores/given_stores.py",
    ),
    "methods of the SDK, of the vendor's client or of a database that say so themselves": (
        "adapters/mcp/hosted_server.py",
        "adapters/mcp/stdio_server.py",
        "adapters/models/compat_client.py",
        "adapters/models/reply_bounds.py",
        "adapters/sdk/model_safety_agent.py",
        "adapters/sdk/tracing.py",
        "adapters/stores/sql_prepared.py",
        "adapters/stores/sql_text.py",
    ),
}
MAY_SAY_ANY = {name for names in REASONS.values() for name in names}


def test_nothing_is_any_but_what_the_sdk_says_is() -> None:
    found = {path.relative_to(AGENTS).as_posix() for path in AGENTS.rglob("*.py") if _says_any(path)}
    assert found == MAY_SAY_ANY


def test_inside_of_the_adapters_nothing_is_generic_in_the_sdk() -> None:
    files = (path for path in AGENTS.rglob("*.py") if ADAPTERS not in path.relative_to(AGENTS).as_posix())
    naming = {path.relative_to(AGENTS).as_posix() for path in files if "Any" in _names_in(path)}
    assert naming == {name for name in MAY_SAY_ANY if not name.startswith(ADAPTERS)}


def _names_in(path: Path) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}


def _says_any(path: Path) -> bool:
    return any(node.id == "Any" for node in _bare(ast.parse(path.read_text())))


def _bare(node: ast.AST) -> Iterator[ast.Name]:
    """Every name that is not told to one of the generic types."""
    if isinstance(node, ast.Name):
        yield node
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).rpartition(".")[2] in GENERIC:
        return
    for child in ast.iter_child_nodes(node):
        yield from _bare(child)
