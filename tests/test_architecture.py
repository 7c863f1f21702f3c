"""What a start may not bring in: everything slow stands behind the first replies. And one name for one class."""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fakes import SLOW_SECONDS


def modules_after(code: str, *arguments: str) -> list[str]:
    # Without what measures coverage in the interpreters we start: it imports on its own account.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    command = [sys.executable, "-c", code + "import json, sys; print(json.dumps(sorted(sys.modules)))", *arguments]
    ended = subprocess.run(command, env=environ, capture_output=True, timeout=SLOW_SECONDS, check=True)
    modules: list[str] = json.loads(ended.stdout)
    return modules


LOADED = """
import asyncio, gc, sys
from openai_responses_mcp.commands.serve import load_caller
from openai_responses_mcp.config.loading import Flags, load
from openai_responses_mcp.start import basis_of
environ = {"HOME": sys.argv[1], "OPENAI_API_KEY": "sk-made-up-0123456789"}
gc.disable()
loaded = []
load_caller(basis_of(load(Flags(), environ), environ), asyncio.Event(), loaded)
assert len(loaded) == 1
assert gc.isenabled()
"""


@pytest.mark.parametrize("exporter", ["none", "console"])
def test_telemetry_is_imported_only_where_a_variable_asks_for_it(tmp_path: Path, exporter: str) -> None:
    """The program also checks that garbage is collected again once everything is loaded."""
    code = LOADED.replace("environ = {", f'environ = {{"OTEL_TRACES_EXPORTER": "{exporter}", ')
    modules = modules_after(code, str(tmp_path))
    assert "openai" in modules
    assert ("opentelemetry.sdk" in modules) is (exporter == "console")


def test_the_line_that_clients_start_needs_no_parser() -> None:
    assert "argparse" not in modules_after("import openai_responses_mcp.cli\n")


def test_class_names_are_unique_in_the_package() -> None:
    package = Path(__file__).parents[1] / "src" / "openai_responses_mcp"
    trees = [ast.parse(path.read_text("utf-8")) for path in package.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1} == set()
