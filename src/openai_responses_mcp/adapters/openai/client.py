"""The SDK's client, set up from configuration and environment: address, headers, proxy, certificates.

Its retries, redirects and deadlines are off: they are the business of the gateways. What cannot be set up
raises `GatewayRefused`.
"""

import base64
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from openai import AsyncOpenAI, Omit, RequestOptions
from yarl import URL

from openai_responses_mcp import __version__
from openai_responses_mcp.adapters.openai.errors import words_of
from openai_responses_mcp.adapters.openai.transport import AiohttpTransport, DirectClient
from openai_responses_mcp.domain.errors import GatewayRefused

# What the SDK would tell of this machine with every request. The API does not need it, and headers take time.
LEAN: RequestOptions = {
    "headers": {
        "X-Stainless-Arch": Omit(),
        "X-Stainless-Async": Omit(),
        "X-Stainless-Lang": Omit(),
        "X-Stainless-OS": Omit(),
        "X-Stainless-Package-Version": Omit(),
        "X-Stainless-Runtime": Omit(),
        "X-Stainless-Runtime-Version": Omit(),
        "x-stainless-read-timeout": Omit(),
        "x-stainless-retry-count": Omit(),
    }
}

_USABLE_PROXIES = ("http", "https")


def openai_client(*, base_url: str, api_key: str, max_connections: int) -> AsyncOpenAI:
    address = _address(base_url)
    proxy = proxy_for(address)
    transport = AiohttpTransport(max_connections=max_connections, proxy=proxy, tls=tls_for(address, proxy))
    client = AsyncOpenAI(
        api_key=api_key.strip(),
        base_url=str(address.with_user(None)),
        max_retries=0,
        timeout=None,
        http_client=DirectClient(transport),
        default_headers=_headers(address),
    )
    # From OPENAI_ORG_ID and OPENAI_PROJECT_ID. Empty counts as unset, where the SDK would send an empty header.
    client.organization = client.organization or None
    client.project = client.project or None
    _refuse_unusable(client.default_headers)
    return client


async def load_late_imports(client: AsyncOpenAI) -> None:
    """Send a request that gets no answer: the SDK imports and makes many things only with its first one."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = "http://{}:{}".format(*unused.getsockname())
        transport = AiohttpTransport(max_connections=1, proxy=None, tls=None)
        async with DirectClient(transport) as http:
            with suppress(aiohttp.ClientConnectionError):
                await client.with_options(api_key="none", base_url=address, http_client=http).post(
                    "/responses", cast_to=httpx2.Response, body={}, stream=True, options=LEAN
                )


def _address(base_url: str) -> URL:
    try:
        return URL(base_url)
    except ValueError as exc:
        raise GatewayRefused(f"The request could not be sent ({exc}). Check openai.base_url.") from exc


def _headers(address: URL) -> dict[str, str]:
    headers = {"User-Agent": f"openai-responses-mcp/{__version__}"}
    if address.user is not None:
        # A gateway that wants a user and a password has them in its address; they take the place of the key.
        credentials = f"{address.user}:{address.password or ''}"
        headers["Authorization"] = f"Basic {base64.b64encode(credentials.encode()).decode()}"
    return headers


def _refuse_unusable(headers: Mapping[str, object]) -> None:
    for name, value in headers.items():
        if isinstance(value, str) and not (value.isascii() and value.isprintable()):
            raise GatewayRefused(
                f"The request could not be sent (no header can carry {name} as it is). Check the environment, in"
                " particular OPENAI_ORG_ID and OPENAI_PROJECT_ID."
            )


def proxy_for(address: URL) -> str | None:
    with _setting_up():
        proxies = getproxies()
        proxy = proxies.get(address.scheme) or proxies.get("all")
        if not proxy or proxy_bypass(address.host or ""):
            return None
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        kind = URL(proxy).scheme
        if kind not in _USABLE_PROXIES:
            raise ValueError(f"the proxy for {address.scheme} is a {kind} proxy; only HTTP proxies can be used")
        return proxy


def tls_for(address: URL, proxy: str | None) -> ssl.SSLContext | None:
    """None where nothing is encrypted: what finds the certificates is slow to load."""
    if "https" not in (address.scheme, URL(proxy or "").scheme):
        return None
    with _setting_up():
        return httpx2.create_ssl_context()


@contextmanager
def _setting_up() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as exc:
        raise GatewayRefused(
            f"No connection to the API can be set up ({words_of(exc)}). Check SSL_CERT_FILE, SSL_CERT_DIR and the proxy variables."
        ) from exc
