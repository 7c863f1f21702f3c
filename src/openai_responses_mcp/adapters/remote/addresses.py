"""The URL of a remote server, checked as it is given. Imports nothing slow: the command line is read with it."""

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit


class WrongAddress(Exception):
    """The text says what is wrong, and never repeats the URL."""


class RemoteAddress(NamedTuple):
    """`host` is what messages call the server: its name, with the port where one is given."""

    url: str
    name: str
    host: str
    is_loopback: bool


def remote_address(url: str) -> RemoteAddress:
    """Raises `WrongAddress`."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise WrongAddress("--url has characters that no URL has")
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port
    except ValueError:
        raise WrongAddress("--url is not a URL") from None
    if parts.scheme not in ("http", "https") or not name:
        raise WrongAddress("--url is the whole address of an MCP server, such as https://example.com/mcp")
    if parts.username is not None or parts.password is not None:
        raise WrongAddress("--url holds a user name or a password; give them with --header-env")
    if parts.fragment:
        raise WrongAddress("--url has a part behind #, which no server gets to see")
    is_loopback = _is_loopback(name)
    if parts.scheme == "http" and not is_loopback:
        raise WrongAddress("--url has to begin with https://; http:// is for servers on this machine only")
    return RemoteAddress(url, name, name if port is None else f"{name}:{port}", is_loopback)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
