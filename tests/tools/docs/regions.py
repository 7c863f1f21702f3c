"""Parts of a page that are written by a program, between two comments that name them."""

import re


def replaced(page: str, name: str, text: str) -> str:
    """The page with this text between the comments of that name. Raises `ValueError` if it has none."""
    marked = re.compile(rf"(<!-- {name}:begin[^>]*-->\n).*(<!-- {name}:end -->)", re.DOTALL)
    if not marked.search(page):
        raise ValueError(f"the page has no <!-- {name}:begin --> ... <!-- {name}:end -->")
    return marked.sub(lambda found: f"{found[1]}{text}{found[2]}", page)
