"""Who may use the desk: the link lets one browser in, once, and gives it a cookie to come back with.

Cookies for 127.0.0.1 go to every port there, whoever listens. So the desk has a path that nobody can guess, and the
cookie goes to that path only.
"""

import secrets
from hmac import compare_digest


class Entrance:
    """`room` is the path of the desk, `page_token` is in its page and nowhere else, and comes back with every change."""

    def __init__(self) -> None:
        self.link_secret = secrets.token_urlsafe(32)
        self.room = secrets.token_urlsafe(16)
        self.page_token = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._is_open = True

    def enter(self, secret: str) -> str | None:
        """The session for whoever brings the link's secret first; None for everybody else."""
        if not self._is_open or not _same(secret, self.link_secret):
            return None
        self._is_open = False
        return self._session

    @property
    def is_used(self) -> bool:
        return not self._is_open

    def knows(self, session: str | None) -> bool:
        """False for everybody before the link was used."""
        return self.is_used and session is not None and _same(session, self._session)

    def is_from_the_page(self, token: str | None) -> bool:
        return token is not None and _same(token, self.page_token)


def _same(given: str, expected: str) -> bool:
    return compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
