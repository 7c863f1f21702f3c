import pytest

from openai_responses_mcp.domain.citations import lies_in

DOMAINS = ("example.com", "例え.jp")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "http://example.com/page",
        "https://docs.example.com/page?x=1#y",
        "HTTPS://Example.COM.:8080/",
        "https://user:word@example.com/",
        "https://exa\tmple.com/",
        "https://例え.jp/",
        "https://www.xn--r8jz45g.jp/",
        "https://例え。jp/",
    ],
)
def test_a_domain_and_its_subdomains_are_inside(url: str) -> None:
    assert lies_in(url, DOMAINS)


@pytest.mark.parametrize(
    "url",
    [
        "https://other.org",
        "https://com",
        "https://notexample.com",
        "https://example.com.other.org",
        "https://example.com@other.org/",
        "https://other.org/example.com",
        "https://other.org#.example.com",
        "https://other.org\\.example.com/",
        "ftp://example.com",
        "https://" + "ü" * 100 + ".org",
        "mailto:me@example.com",
        "oai-weather",
    ],
)
def test_everything_else_is_outside(url: str) -> None:
    assert not lies_in(url, DOMAINS)


@pytest.mark.parametrize(
    "domain",
    ["EXAMPLE.com", " example.com ", ".example.com", "*.example.com", "https://example.com/page", "com"],
)
def test_a_domain_may_be_written_in_several_ways(domain: str) -> None:
    assert lies_in("https://www.example.com/", [domain])


@pytest.mark.parametrize("domain", ["", ".", "*", "https://", "[::1", "ftp://example.com", "ww.example.com"])
def test_what_is_no_domain_lets_nothing_in(domain: str) -> None:
    assert not lies_in("https://www.example.com/", [domain])


def test_without_domains_everything_is_outside() -> None:
    assert not lies_in("https://example.com", [])
