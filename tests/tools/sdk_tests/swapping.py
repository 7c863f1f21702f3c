"""The import swap, done to the SDK's tests as a user does it to their code.

Every name that the top of the SDK exports comes from `openai_responses_mcp.agents` afterwards, from whichever module of
the SDK it was imported; everything else stays. Lines keep their numbers.
"""

import ast
from pathlib import Path

HERE = "openai_responses_mcp.agents"


def swap_folder(source: Path, target: Path, exported: frozenset[str]) -> None:
    """Write the tests below `source` to `target`, with their imports swapped."""
    for path in source.rglob("*"):
        copy = target / path.relative_to(source)
        if path.is_dir() or path.suffix == ".pyc":
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".py":
            copy.write_text(swapped(path.read_text(), exported))
        else:
            copy.write_bytes(path.read_bytes())


def swapped(source: str, exported: frozenset[str]) -> str:
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        written = _rewritten(node, exported)
        if written is None:
            continue
        assert isinstance(node, ast.stmt)
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        indent = lines[first][: node.col_offset]
        lines[first : last + 1] = [f"{indent}{written}\n", *["\n"] * (last - first)]
    return "".join(lines)


def _rewritten(node: ast.AST, exported: frozenset[str]) -> str | None:
    match node:
        case ast.Import(names=[ast.alias(name="agents", asname=name)]):
            return f"import {HERE} as {name or 'agents'}"
        case ast.ImportFrom(module=str(module), level=0, names=names) if module.partition(".")[0] == "agents":
            ours = [_written(alias) for alias in names if alias.name in exported]
            theirs = [_written(alias) for alias in names if alias.name not in exported]
            statements = [(HERE, ours), (module, theirs)]
            return "; ".join(f"from {place} import {', '.join(taken)}" for place, taken in statements if taken)
    return None


def _written(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name
