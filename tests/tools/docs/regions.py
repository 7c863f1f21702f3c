"""Parts of a page that are written by a program, between two comments that name them."""


def replaced(page: str, name: str, text: str) -> str:
    before, _, after = _split(page, name)
    return before + text + after


def written(page: str, name: str) -> str:
    return _split(page, name)[1]


def _split(page: str, name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- {name}:begin, written by make references -->\n", f"<!-- {name}:end -->"
    before, found, rest = page.partition(begin)
    between, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page has no part {begin.strip()} … {end}")
    return before + begin, between, end + after
