"""Every port of gate, guard, desk and agents has a contract file in this folder."""

import ast
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parents[2] / "src" / "openai_responses_mcp"
ROOMS = ("gate", "guard", "desk", "agents")


def ports_in(file: Path) -> list[str]:
    classes = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)]
    return [node.name for node in classes if any(ast.unparse(base) == "Protocol" for base in node.bases)]


def names_imported_by(file: Path) -> set[str]:
    imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in imports for alias in node.names}


def test_every_port_is_tested_by_a_contract() -> None:
    ports = {port for room in ROOMS for file in (PACKAGE / room).rglob("*.py") for port in ports_in(file)}
    tested = {name for file in HERE.glob("test_*.py") for name in names_imported_by(file)}
    assert ports
    assert ports - tested == set()
