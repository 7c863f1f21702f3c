"""The files of the page, which come with the package. Only these have an address: no path is looked up on disk."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

FILES: Mapping[str, str] = {
    "desk.js": "text/javascript; charset=utf-8",
    "cards.js": "text/javascript; charset=utf-8",
    "changes.js": "text/javascript; charset=utf-8",
    "elements.js": "text/javascript; charset=utf-8",
    "log.js": "text/javascript; charset=utf-8",
    "more.js": "text/javascript; charset=utf-8",
    "server.js": "text/javascript; charset=utf-8",
    "standing.js": "text/javascript; charset=utf-8",
    "words.js": "text/javascript; charset=utf-8",
    "desk.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def read(name: str) -> tuple[bytes, str]:
    return _content(name), FILES[name]


def page(page_token: str) -> str:
    """The token is of letters that mean nothing in HTML."""
    return _content("page.html").decode().replace("PAGE-TOKEN", page_token)


def welcome(room: str) -> str:
    """Leads on to the page by itself. That request comes from the desk, so the browser sends the cookie with it."""
    return (
        "<!doctype html><meta charset=utf-8><title>Desk</title>"
        f'<meta http-equiv=refresh content="0;url=/{room}/"><a href="/{room}/">Go on to the desk</a>\n'
    )


@cache
def _content(name: str) -> bytes:
    return (files(__package__) / "static" / name).read_bytes()
