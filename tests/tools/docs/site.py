"""Where the pages are, and in which order the site shows them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
CONFIGURATION = ROOT / ".mkdocs.yml"

REPOSITORY = "https://github.com/uchimanajet7/openai-responses-mcp"
IN_REPOSITORY = f"{REPOSITORY}/blob/main/"
RAW = "https://raw.githubusercontent.com/uchimanajet7/openai-responses-mcp/main/"


class Entry(NamedTuple):
    section: str
    title: str
    path: str
    """Below `docs`."""


def configuration() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(CONFIGURATION.read_text(encoding="utf-8"))
    return loaded


def navigation() -> list[Entry]:
    return list(_entries(configuration()["nav"], ""))


def _entries(items: list[dict[str, Any]], section: str) -> Iterator[Entry]:
    for item in items:
        for title, target in item.items():
            if isinstance(target, str):
                yield Entry(section, title, target)
            else:
                yield from _entries(target, title)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pages() -> list[Path]:
    """Every page that a reader may open; skills among the examples are read by models."""
    return [page for page in sorted(DOCS.rglob("*.md")) if "examples" not in page.relative_to(DOCS).parts]
