"""The page about architecture has the layers that import-linter keeps."""

import re
import tomllib
from typing import Any

from tests.docs.markdown import blocks
from tests.docs.site import DOCS, ROOT, read

PAGE = read(DOCS / "architecture.md")
CONTRACTS: list[dict[str, Any]] = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]

Layers = list[set[str]]


def layers_of(container: str) -> Layers:
    (contract,) = [one for one in CONTRACTS if one.get("containers") == [container]]
    return [_names(layer.strip("()")) for layer in contract["layers"]]


def shown_below(heading: str) -> list[str]:
    return blocks(PAGE.partition(f"\n{heading}\n")[2])[0].text.splitlines()


def first_column(lines: list[str]) -> Layers:
    return [_names(re.split(r" {2,}", line)[0]) for line in lines]


def _names(layer: str) -> set[str]:
    return {name.strip() for name in layer.split("|")}


def test_the_layers_of_the_package_are_those_of_the_page() -> None:
    assert first_column(shown_below("### Who may import whom")) == layers_of("openai_responses_mcp")


def test_the_layers_of_the_guarded_half_are_those_of_the_page() -> None:
    assert first_column(shown_below("### Who may import whom, inside")) == layers_of("openai_responses_mcp.agents")


def test_the_layers_of_its_adapters_are_those_of_the_page() -> None:
    (line,) = [one for one in shown_below("### Who may import whom, inside") if one.startswith("adapters ")]
    shown = [_names(layer) for layer in line.removeprefix("adapters").split(">")]
    assert shown == layers_of("openai_responses_mcp.agents.adapters")


def test_every_package_of_the_guarded_half_is_in_its_picture() -> None:
    picture = blocks(PAGE.partition("\n## The guarded agents\n")[2])[0].text
    folders = {path.parent.name for path in (ROOT / "src" / "openai_responses_mcp" / "agents").glob("*/__init__.py")}
    assert {name for name in folders if f"{name}/" not in picture} == set()
