"""The contracts in `pyproject.toml` hold for every module of the guarded half, also for one that is new."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
AGENTS = ROOT / "src" / "openai_responses_mcp" / "agents"
# Where technology comes in, and what stands above that.
OUTSIDE = {"adapters", "composition", "guard_composition", "terminal", "testing"}


def contract(name: str) -> dict[str, Any]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return next(one for one in contracts if one["name"] == name)


def test_every_module_inside_is_kept_from_technology() -> None:
    modules = {path.stem for path in AGENTS.iterdir() if path.stem not in ("__init__", "__pycache__")}
    kept = contract("The inside of the guarded half needs ports and nothing else")["source_modules"]
    assert {name.removeprefix("openai_responses_mcp.agents.") for name in kept} == modules - OUTSIDE


def test_no_import_is_excused() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert [one["name"] for one in contracts if one.get("ignore_imports")] == []
