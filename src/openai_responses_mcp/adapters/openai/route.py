"""How the API is reached, whichever way it is asked: address, headers, proxy and certificates.

Each is made when first looked at, and what is wrong with one is told as `GatewayRefused`.
"""

import base64
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from openai_responses_mcp import __version__
from openai_responses_mcp.domain.errors import GatewayRefused

_USABLE_PROXIES = ("http", "https")


class ApiRoute:
    def __init__(self, *, base_url: str, api_key: str, environ: Mapping[str, str] = os.environ) -> None:
        self._base_url = base_url
        self.api_key = api_key.strip()
        self._environ = environ
        self._urls: dict[str, URL] = {}

    @cached_property
    def url(self) -> URL:
        """Without the credentials that the configuration may have put into it."""
        return self._given.with_user(None)

    def url_of(self, path: str) -> URL:
        """Made once for each path: a tenth of the time of a request would go into it."""
        if path not in self._urls:
            self._urls[path] = self.url.joinpath(path, encoded=True)
        return self._urls[path]

    @cached_property
    def headers(self) -> dict[str, str]:
        """Who we are: key, organisation and project, as the SDK calls them."""
        given = {
            "Authorization": self._authorization,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"openai-responses-mcp/{__version__}",
            "OpenAI-Organization": self._environ.get("OPENAI_ORG_ID"),
            "OpenAI-Project": self._environ.get("OPENAI_PROJECT_ID"),
        }
        headers = {name: value for name, value in given.items() if value}
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                raise GatewayRefused(
                    f"The request could not be sent (no header can carry {name} as it is). Check the environment, in"
                    " particular OPENAI_ORG_ID and OPENAI_PROJECT_ID."
                )
        return headers

    @cached_property
    def proxy(self) -> str | None:
        with _set_up():
            proxies = getproxies()
            proxy = proxies.get(self.url.scheme) or proxies.get("all")
            if not proxy or proxy_bypass(self.url.host or ""):
                return None
            address = proxy if "://" in proxy else f"http://{proxy}"
            kind = URL(address).scheme
            if kind not in _USABLE_PROXIES:
                raise ValueError(f"the proxy for {self.url.scheme} is a {kind} proxy; only HTTP proxies can be used")
            return address

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """None where nothing is encrypted: what finds the certificates is slow to load."""
        if "https" not in (self.url.scheme, URL(self.proxy or "").scheme):
            return None
        from httpx2 import create_ssl_context

        with _set_up():
            return create_ssl_context()

    @property
    def _authorization(self) -> str:
        """A gateway that wants a user and a password has them in its address; they take the place of the key."""
        if self._given.user is None:
            return f"Bearer {self.api_key}"
        credentials = f"{self._given.user}:{self._given.password or ''}"
        return f"Basic {base64.b64encode(credentials.encode()).decode()}"

    @cached_property
    def _given(self) -> URL:
        try:
            return URL(self._base_url)
        except ValueError as exc:
            raise GatewayRefused(f"The request could not be sent ({exc}). Check openai.base_url.") from exc


@contextmanager
def _set_up() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as exc:
        raise GatewayRefused(
            f"No connection to the API can be set up ({exc}). Check SSL_CERT_FILE, SSL_CERT_DIR and the proxy variables."
        ) from exc
