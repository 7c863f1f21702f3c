"""Text between two marks of a page."""

import re

Marks = tuple[str, str]


def marks(name: str = "bench") -> Marks:
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def between(page: str, places: Marks, text: str) -> str:
    """The page with this text between the marks. Raises `ValueError` if it has none."""
    begin, end = places
    marked = re.compile(f"{begin}.*{end}", re.DOTALL)
    if not marked.search(page):
        raise ValueError(f"the page has no {begin} ... {end}")
    return marked.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)
