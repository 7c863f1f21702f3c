"""What a page is made of, as far as the tests of the pages need it: headings, anchors, links, code blocks, tables."""

import re
from typing import NamedTuple

_FENCE = re.compile(r"^( *)(```+)([^\n]*)\n(.*?)^\1\2[ \t]*$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_LABEL = re.compile(r"\]\[([^\[\]]+)\]")
_DEFINITION = re.compile(r"^\[([^\[\]]+)\]: (\S+)$", re.MULTILINE)
_TABLE = re.compile(r"(?:^ *\|.*\|[ \t]*\n?)+", re.MULTILINE)
_CELL_END = re.compile(r"(?<!\\)\|")


class Heading(NamedTuple):
    level: int
    title: str


class Block(NamedTuple):
    language: str
    text: str


def headings(page: str) -> list[Heading]:
    return [Heading(len(marks), title.strip()) for marks, title in _HEADING.findall(_prose(page))]


def anchors(page: str) -> set[str]:
    """What a link to a heading of the page may name, as code hosts spell it."""
    found: set[str] = set()
    for heading in headings(page):
        name = slug(heading.title)
        number = 0
        while (name if not number else f"{name}-{number}") in found:
            number += 1
        found.add(name if not number else f"{name}-{number}")
    return found


def slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def links(page: str) -> list[str]:
    """Of texts and of pictures; what stands in code is none. KeyError where a label has no address."""
    text = _CODE.sub("`", _prose(page))
    addresses = dict(_DEFINITION.findall(text))
    return [*_LINK.findall(text), *(addresses[label] for label in _LABEL.findall(text))]


def blocks(page: str) -> list[Block]:
    return [Block(language.strip(), text) for _, _, language, text in _FENCE.findall(page)]


def tables(page: str) -> list[list[list[str]]]:
    """Each as rows of cells, the line below the head left out."""
    return [_rows(text) for text in _TABLE.findall(_prose(page))]


def table_row(*cells: str) -> str:
    """A line of a table, without its end."""
    return "|" + "|".join(f" {cell} ".replace("|", "\\|") if cell else " " for cell in cells) + "|"


def code_spans(text: str) -> list[str]:
    return [match[0].strip("`") for match in _CODE.finditer(text)]


def _rows(text: str) -> list[list[str]]:
    rows = [[cell.strip() for cell in _CELL_END.split(line.strip())[1:-1]] for line in text.splitlines()]
    return [rows[0], *rows[2:]]


def _prose(page: str) -> str:
    return _COMMENT.sub("", _FENCE.sub("", page))
