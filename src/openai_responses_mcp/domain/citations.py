"""Which sources an answer shows, and the `Sources:` section that an answer from a search always ends with."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from openai_responses_mcp.domain.models import Citation, ModelReply, Source
from openai_responses_mcp.domain.texts import one_line

_HEADING = re.compile(r"[\s#>*_]*sources[\s*_]*[:：][\s*_]*", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:[-*]|\d+[.)]?)\s*\S")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# Of a text that may consist of millions of lines, only the last ones are searched for the section.
_MOST_LINES = 1_000
_UNFIT_FOR_URLS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_URL = re.compile(r"https?://[^\s()<>\[\]（）［］【】、，]+", re.IGNORECASE)


def used_search(reply: ModelReply) -> bool:
    return bool(reply.cited) or reply.search_count > 0


@dataclass(frozen=True, slots=True)
class Selection:
    """The sources that an answer shows, and the addresses left out because they lie outside the allowed domains."""

    citations: tuple[Citation, ...]
    left_out: tuple[str, ...] = ()


def select_citations(reply: ModelReply, *, today: str, limit: int) -> Selection:
    """The cited sources, else the searched ones; then source ids, of which the limit leaves at least one.

    URLs outside the allowed domains are left out, because the API's own filter leaks. A source id has no domain.
    """
    found = _without_repeats([*reply.cited, *(s for s in reply.searched if not (reply.cited and s.is_url))])
    allowed = reply.allowed_domains
    outside = [source for source in found if allowed and source.is_url and not lies_in(source.name, allowed)]
    candidates = [source for source in found if source not in outside]
    chosen = candidates[:limit]
    cut_off_ids = [source for source in candidates[limit:] if not source.is_url]
    if cut_off_ids and limit >= 2 and all(source.is_url for source in chosen):
        chosen[-1] = cut_off_ids[0]
    return Selection(tuple(_citation(source, today) for source in chosen), tuple(map(_shown_name, outside)))


def _citation(source: Source, today: str) -> Citation:
    name = _shown_name(source)
    title = source.title and one_line(source.title)
    if source.date is None:
        return Citation(name, today, title, "accessed")
    return Citation(name, source.date, title, "published")


def _shown_name(source: Source) -> str:
    """On one line: a line end inside a name would forge lines of the `Sources:` section."""
    return re.sub(_UNFIT_FOR_URLS, _percent_encoded, source.name) if source.is_url else one_line(source.name)


def _percent_encoded(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _without_repeats(sources: Sequence[Source]) -> list[Source]:
    first_seen: dict[str, Source] = {}
    for source in sources:
        first_seen.setdefault(source.name, source)
    return list(first_seen.values())


def with_sources(text: str, citations: Sequence[Citation], *, today: str) -> str:
    """The text with a dated `Sources:` section at its end: the model's own if it has items, else one of ours."""
    lines = text.rstrip().rsplit("\n", _MOST_LINES)
    start = _heading_in(lines)
    if start is not None and any(_ITEM.match(line) for line in lines[start + 1 :]):
        dated = [_dated(line, today) if _ITEM.match(line) else line for line in lines[start + 1 :]]
        return "\n".join([*lines[: start + 1], *dated])
    body = lines if start is None else lines[:start] + [line for line in lines[start + 1 :] if line.strip()]
    listed = [f"- {c.url} ({c.published_at})" for c in citations] or [f"- web_search ({today})"]
    return "\n".join(["\n".join(body).rstrip(), "", "Sources:", *listed]).lstrip("\n")


def split_sources(text: str) -> tuple[str, list[str]]:
    """The text up to and including its `Sources:` heading, and the lines below it; no lines if there is no heading."""
    lines = text.rstrip().rsplit("\n", _MOST_LINES)
    start = _heading_in(lines)
    return (text, []) if start is None else ("\n".join(lines[: start + 1]), lines[start + 1 :])


def _heading_in(lines: Sequence[str]) -> int | None:
    # The last heading counts.
    return next((i for i in reversed(range(len(lines))) if _HEADING.fullmatch(lines[i])), None)


def _dated(item: str, today: str) -> str:
    # A date inside a URL is part of an address, not the date of the source.
    return item if _ISO_DATE.search(_URL.sub("", item)) else f"{item.rstrip()} ({today})"


def lies_in(url: str, domains: Iterable[str]) -> bool:
    """True if the URL is in one of the domains or their subdomains. False for anything but http and https.

    URLs come from a model and may imitate others, so they are read as a browser reads them.
    """
    host = _host_of(url)
    return bool(host) and any(host == domain or host.endswith(f".{domain}") for domain in map(_plain_domain, domains))


def _host_of(url: str) -> str:
    try:
        # To a browser, a backslash ends the host just as a slash does.
        parts = urlsplit(url.replace("\\", "/"))
        return _spelled_one_way(parts.hostname or "") if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _plain_domain(domain: str) -> str:
    """People also write `https://example.com/` and `*.example.com`."""
    address = domain.strip() if "://" in domain else f"https://{domain.strip()}"
    return _host_of(address).removeprefix("*.")


def _spelled_one_way(host: str) -> str:
    """Without a trailing dot, and encoded as DNS names are."""
    host = host.strip(".")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host
