"""Every link of README and pages leads somewhere, and every page can be found: without a network."""

import re
import unicodedata
from pathlib import Path

from tests.tools.docs.markdown import anchors, headings, links
from tests.tools.docs.site import DOCS, IN_REPOSITORY, RAW, README, ROOT, navigation, pages, read

ALL = [README, *pages()]
OUTSIDE = re.compile(r"https?://|mailto:")


def by_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def links_of(some: list[Path]) -> list[tuple[Path, str]]:
    return [(page, link) for page in some for link in links(read(page))]


def target_of(page: Path, link: str) -> Path | None:
    """The file that a link leads to; None when it leaves the repository."""
    address = link.partition("#")[0]
    for beginning in (IN_REPOSITORY, RAW):
        if address.startswith(beginning):
            return ROOT / address.removeprefix(beginning)
    if OUTSIDE.match(link):
        return None
    return (page.parent / address).resolve() if address else page


def anchors_on_the_site(text: str) -> set[str]:
    """As Python-Markdown spells them, which the site is made with."""
    return {_site_slug(heading.title) for heading in headings(text)}


def _site_slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def test_a_link_leads_to_a_file_and_a_heading_that_are_there() -> None:
    for page, link in links_of(ALL):
        target, fragment = target_of(page, link), link.partition("#")[2]
        if target is None:
            continue
        assert target.exists(), f"{by_name(page)}: {link} leads nowhere"
        if fragment:
            assert fragment in anchors(read(target)), f"{by_name(page)}: {link}: no such heading"
            assert page == README or fragment in anchors_on_the_site(read(target)), (
                f"{by_name(page)}: {link}: no such heading on the site"
            )


def test_a_page_links_relatively_within_docs_and_absolutely_to_the_rest() -> None:
    for page, link in links_of(pages()):
        target = target_of(page, link)
        if not OUTSIDE.match(link):
            assert target is not None
            assert target.is_relative_to(DOCS), (
                f"{by_name(page)}: {link} leaves docs, where the site cannot follow: begin it with {IN_REPOSITORY}"
            )
            assert target.is_file(), f"{by_name(page)}: {link} is no file, and the site shows no folders"


def test_the_readme_works_where_nothing_is_beside_it() -> None:
    assert [link for link in links(read(README)) if not OUTSIDE.match(link)] == []


def test_every_page_is_in_the_navigation_once() -> None:
    shown = [entry.path for entry in navigation()]
    assert sorted(shown) == [page.relative_to(DOCS).as_posix() for page in pages()], "add the page to .mkdocs.yml"
