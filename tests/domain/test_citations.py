import pytest

from openai_responses_mcp.domain.citations import Selection, lies_in, select_citations, used_search, with_sources
from openai_responses_mcp.domain.models import Citation, ModelReply, Source

TODAY = "2026-11-16"
A, B, C, D = (Source(f"https://{letter}.example", title=letter.upper()) for letter in "abcd")
WEATHER = Source("oai-weather", title="api", is_url=False)
FINANCE = Source("oai-finance", title="api", is_url=False)
CITED = (Citation("https://a.example", "2026-01-02", "A"), Citation("oai-weather", TODAY, "api"))
OURS = "Sources:\n- https://a.example (2026-01-02)\n- oai-weather (2026-11-16)"


def chosen(cited: tuple[Source, ...], searched: tuple[Source, ...], limit: int = 3) -> list[str]:
    reply = ModelReply(text="", cited=cited, searched=searched)
    return [citation.url for citation in select_citations(reply, today=TODAY, limit=limit).citations]


@pytest.mark.parametrize(
    ("reply", "searched"),
    [
        (ModelReply(text="x"), False),
        (ModelReply(text="x", cited=(A,)), True),
        (ModelReply(text="x", search_count=1), True),
    ],
)
def test_a_citation_or_a_search_call_means_that_search_was_used(reply: ModelReply, searched: bool) -> None:
    assert used_search(reply) is searched


def test_citations_come_before_source_ids_in_the_order_first_seen() -> None:
    cases: list[tuple[tuple[Source, ...], tuple[Source, ...], list[str]]] = [
        ((B, A, B), (), ["https://b.example", "https://a.example"]),
        ((A,), (B, C), ["https://a.example"]),
        ((A,), (WEATHER, B, FINANCE, WEATHER), ["https://a.example", "oai-weather", "oai-finance"]),
    ]
    for cited, searched, urls in cases:
        assert chosen(cited, searched) == urls


def test_a_limit_of_two_or_more_never_cuts_off_every_source_id() -> None:
    cases: list[tuple[tuple[Source, ...], tuple[Source, ...], int, list[str]]] = [
        ((A, B, C, D), (), 3, ["https://a.example", "https://b.example", "https://c.example"]),
        ((A, B, C), (WEATHER, FINANCE), 3, ["https://a.example", "https://b.example", "oai-weather"]),
        ((A, B), (WEATHER,), 2, ["https://a.example", "oai-weather"]),
        ((), (WEATHER, A), 1, ["oai-weather"]),
        ((), (A, B, WEATHER), 2, ["https://a.example", "oai-weather"]),
    ]
    for cited, searched, limit, urls in cases:
        assert chosen(cited, searched, limit) == urls


def test_a_citation_keeps_the_date_of_its_source_or_gets_the_day_of_access_and_says_which() -> None:
    reply = ModelReply(text="", cited=(Source("https://a.example", "A", "2025-05-05"), Source("https://b.example")))
    assert select_citations(reply, today=TODAY, limit=3).citations == (
        Citation("https://a.example", "2025-05-05", "A", "published"),
        Citation("https://b.example", TODAY, None, "accessed"),
    )


def test_sources_from_outside_the_domains_are_left_out_and_named() -> None:
    cases: list[
        tuple[tuple[Source, ...], tuple[Source, ...], tuple[str, ...], tuple[Source, ...], tuple[Source, ...]]
    ] = [
        ((A, B), (), (), (A, B), ()),
        ((A, B, B), (), ("c.example", "a.example"), (A,), (B,)),
        ((A, B), (WEATHER, C), ("a.example",), (A, WEATHER), (B,)),
        # What the model only looked at does not take the place of what it cited.
        ((B,), (A,), ("a.example",), (), (B,)),
        ((), (A, B, WEATHER), ("a.example",), (A, WEATHER), (B,)),
    ]
    for cited, searched, domains, shown, left_out in cases:
        reply = ModelReply(text="", cited=cited, searched=searched, allowed_domains=domains)
        assert select_citations(reply, today=TODAY, limit=3) == Selection(
            citations=tuple(Citation(source.name, TODAY, source.title) for source in shown),
            left_out=tuple(source.name for source in left_out),
        )


def test_what_is_left_out_takes_no_place_under_the_limit() -> None:
    reply = ModelReply(text="", cited=(B, A, C), allowed_domains=("a.example", "c.example"))
    selection = select_citations(reply, today=TODAY, limit=2)
    assert [citation.url for citation in selection.citations] == [A.name, C.name]


def test_a_text_without_sources_of_its_own_gets_one_section() -> None:
    cases: list[tuple[str, str]] = [
        ("X is a letter.\n\n\n", f"X is a letter.\n\n{OURS}"),
        ("Sources: https://a.example", f"Sources: https://a.example\n\n{OURS}"),
        ("Because.\n\nSources:", f"Because.\n\n{OURS}"),
        ("Because.\n\n**Sources:**\n \n", f"Because.\n\n{OURS}"),
        ("Because.\nSources:\nsee above\n\nand below", f"Because.\nsee above\nand below\n\n{OURS}"),
        ("Sources:\n- https://x.example\n\nSources:", f"Sources:\n- https://x.example\n\n{OURS}"),
        ("Sources:", OURS),
    ]
    for text, with_section in cases:
        assert with_sources(text, CITED, today=TODAY) == with_section


def test_a_search_that_reports_no_source_names_web_search() -> None:
    assert with_sources("Because.", (), today=TODAY) == "Because.\n\nSources:\n- web_search (2026-11-16)"


def test_the_section_of_the_model_is_known_by_its_heading() -> None:
    cases: list[str] = [
        "Sources:",
        "SOURCES：",
        "**Sources**:",
        "  __Sources__ ：  ",
    ]
    for heading in cases:
        text = f"Because.\n\n{heading}\n- https://x.example (2026-03-04)"
        assert with_sources(text, CITED, today=TODAY) == text


def test_an_item_of_the_model_without_a_date_gets_the_day_of_access() -> None:
    cases: list[tuple[str, str]] = [
        ("- https://x.example", "- https://x.example (2026-11-16)"),
        ("- https://x.example(2026-03-04)", "- https://x.example(2026-03-04)"),
        ("- 2026-03-04 https://x.example", "- 2026-03-04 https://x.example"),
        ("* oai-weather  ", "* oai-weather (2026-11-16)"),
        ("1. https://x.example", "1. https://x.example (2026-11-16)"),
        ("3 https://x.example", "3 https://x.example (2026-11-16)"),
        ("- https://x.example/2026-03-04/post", "- https://x.example/2026-03-04/post (2026-11-16)"),
        ("- [X](https://x.example/2026-03-04)", "- [X](https://x.example/2026-03-04) (2026-11-16)"),
        ("- [X](https://x.example/2026-03-04) (2026-03-05)", "- [X](https://x.example/2026-03-04) (2026-03-05)"),
    ]
    for item, dated in cases:
        assert with_sources(f"Because.\n\nSources:\n{item}", CITED, today=TODAY) == f"Because.\n\nSources:\n{dated}"


def test_lines_in_the_section_that_are_no_items_stay_as_they_are() -> None:
    text = "Because.\n\nSources:\n\n- https://x.example\n  found last week\n- y (2026-01-01)"
    expected = "Because.\n\nSources:\n\n- https://x.example (2026-11-16)\n  found last week\n- y (2026-01-01)"
    assert with_sources(text, CITED, today=TODAY) == expected


def test_only_the_last_heading_begins_the_section() -> None:
    text = "Sources:\n- one\n\nMore.\n\nSources:\n- two"
    assert with_sources(text, CITED, today=TODAY) == f"{text} (2026-11-16)"


def test_a_text_with_windows_line_ends_keeps_its_section() -> None:
    text = "Because.\r\n\r\nSources:\r\n- https://x.example\r\n- y (2026-01-01)\r\n"
    dated = with_sources(text, CITED, today=TODAY)
    assert dated.splitlines() == ["Because.", "", "Sources:", "- https://x.example (2026-11-16)", "- y (2026-01-01)"]


FORGED = Source("https://a.example/\n- https://evil.example (2026-01-01)\r\x1b[2J\u2028", title="A\nB")


def test_a_source_cannot_forge_lines_of_the_section() -> None:
    forged_id = Source("oai\n- https://evil.example", title="api\x1b", is_url=False)
    citations = select_citations(
        ModelReply(text="", cited=(FORGED,), searched=(forged_id,)), today=TODAY, limit=3
    ).citations
    assert [citation.url for citation in citations] == [
        "https://a.example/%0A-%20https://evil.example%20(2026-01-01)%0D%1B[2J%E2%80%A8",
        "oai - https://evil.example",
    ]
    assert [citation.title for citation in citations] == ["A B", "api "]
    assert with_sources("Because.", citations, today=TODAY).count("\n- ") == 2


def test_a_heading_far_from_the_end_begins_no_section() -> None:
    text = "Sources:\n" + "- x\n" * 2000
    assert with_sources(text, CITED, today=TODAY) == f"{text}\n{OURS}"


DOMAINS = ("example.com", "例え.jp")


def test_a_domain_and_its_subdomains_are_inside() -> None:
    cases: list[str] = [
        "http://example.com/page",
        "HTTPS://Example.COM.:8080/",
        "https://user:word@example.com/",
        "https://exa\tmple.com/",
        "https://例え.jp/",
        "https://www.xn--r8jz45g.jp/",
        "https://例え。jp/",
    ]
    for url in cases:
        assert lies_in(url, DOMAINS)


def test_everything_else_is_outside() -> None:
    cases: list[str] = [
        "https://com",
        "https://notexample.com",
        "https://example.com.other.org",
        "https://example.com@other.org/",
        "https://other.org#.example.com",
        "https://other.org\\.example.com/",
        "ftp://example.com",
        "https://" + "ü" * 100 + ".org",
        "oai-weather",
    ]
    for url in cases:
        assert not lies_in(url, DOMAINS)


def test_a_domain_may_be_written_in_several_ways() -> None:
    cases: list[str] = [
        "EXAMPLE.com",
        " example.com ",
        ".example.com",
        "*.example.com",
        "https://example.com/page",
    ]
    for domain in cases:
        assert lies_in("https://www.example.com/", [domain])


def test_what_is_no_domain_lets_nothing_in() -> None:
    cases: list[str] = ["", ".", "*", "https://", "[::1", "ftp://example.com", "ww.example.com"]
    for domain in cases:
        assert not lies_in("https://www.example.com/", [domain])


def test_without_a_host_nothing_is_inside_anything() -> None:
    assert not lies_in("https://example.com", [])
    assert not lies_in("oai-weather", ["ftp://example.com"])
    assert not lies_in("https:///x", ["https:///y"])
    assert not lies_in("https://[", ["https://["])


def test_a_host_that_dns_cannot_encode_is_compared_as_it_is() -> None:
    host = "ü" * 100 + ".org"
    assert lies_in(f"https://{host}/x", [host])
