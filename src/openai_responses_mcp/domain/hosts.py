"""Whether an address lies in one of some domains; subdomains are inside.

Addresses come from a model and may be made to look like others, so they are read as a browser reads them.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit


def lies_in(url: str, domains: Iterable[str]) -> bool:
    """False for anything that is not an address on the web."""
    host = _host_of(url)
    return bool(host) and any(host == domain or host.endswith(f".{domain}") for domain in map(_plain_domain, domains))


def _host_of(url: str) -> str:
    try:
        # To a browser, a backslash ends the host as well as a slash does.
        parts = urlsplit(url.replace("\\", "/"))
        return _spelled_one_way(parts.hostname or "") if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _plain_domain(domain: str) -> str:
    """People also write `https://example.com/` and `*.example.com`."""
    address = domain.strip() if "://" in domain else f"https://{domain.strip()}"
    return _host_of(address).removeprefix("*.")


def _spelled_one_way(host: str) -> str:
    """Without the dot that may end a name, and in the letters that the name system knows."""
    host = host.strip(".")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host
