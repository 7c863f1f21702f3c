import base64
import ssl

import pytest
from openai import AsyncOpenAI
from yarl import URL

from openai_responses_mcp import __version__
from openai_responses_mcp.adapters.openai.client import openai_client, proxy_for, tls_for
from openai_responses_mcp.domain.errors import GatewayRefused
from tests.contracts.openai_gateways import forget_proxies


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_proxies(monkeypatch)
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)


def client(base_url: str = "http://api.example/v1", api_key: str = "made-up") -> AsyncOpenAI:
    return openai_client(base_url=base_url, api_key=api_key, max_connections=1)


def headers_of(client: AsyncOpenAI) -> dict[str, str]:
    given = {**client.auth_headers, **client.default_headers}
    return {name: value for name, value in given.items() if isinstance(value, str)}


def test_the_headers_carry_key_version_organisation_and_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    headers = headers_of(client(api_key=" made-up\n"))
    assert headers["Authorization"] == "Bearer made-up"
    assert headers["User-Agent"] == f"openai-responses-mcp/{__version__}"
    assert (headers["OpenAI-Organization"], headers["OpenAI-Project"]) == ("org-1", "proj-1")


def test_an_empty_organisation_or_project_has_no_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "")
    assert not [name for name in headers_of(client()) if name.startswith("OpenAI-")]


@pytest.mark.parametrize("value", ["org-ä", "org\n1"])
def test_a_value_that_no_header_can_carry_is_refused_with_the_header_name(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", value)
    with pytest.raises(GatewayRefused, match="the header OpenAI-Organization contains characters that are not allowed"):
        client()


def test_credentials_in_the_base_url_replace_the_key_and_are_removed_from_the_url() -> None:
    found = client("http://someone:s%40cret@gateway.example/v1")
    assert str(found.base_url) == "http://gateway.example/v1/"
    assert headers_of(found)["Authorization"] == f"Basic {base64.b64encode(b'someone:s@cret').decode()}"


def test_retries_and_timeouts_of_the_sdk_are_off() -> None:
    found = client()
    assert (found.max_retries, found.timeout) == (0, None)


@pytest.mark.parametrize("base_url", ["http://[::1/v1", "http://api.example:99999/v1"])
def test_an_invalid_base_url_is_refused(base_url: str) -> None:
    with pytest.raises(GatewayRefused, match=r"Check openai\.base_url"):
        client(base_url)


@pytest.mark.parametrize(
    ("base_url", "variables", "proxy"),
    [
        ("https://api.example/v1", {"HTTP_PROXY": "http://proxy.example:8080"}, None),
        ("http://api.example/v1", {"HTTP_PROXY": "http://proxy.example:8080"}, "http://proxy.example:8080"),
        ("https://api.example/v1", {"ALL_PROXY": "http://proxy.example:8080"}, "http://proxy.example:8080"),
        ("https://api.example/v1", {"HTTPS_PROXY": "proxy.example:8080"}, "http://proxy.example:8080"),
        ("https://api.example/v1", {"HTTPS_PROXY": "http://proxy.example", "NO_PROXY": "api.example"}, None),
    ],
)
def test_the_proxy_for_a_base_url_comes_from_the_environment(
    base_url: str, variables: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(URL(base_url)) == proxy


def test_a_proxy_that_is_not_http_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy.example:1080")
    with pytest.raises(GatewayRefused, match=r"is a socks5 proxy; only HTTP proxies.*Check.*the proxy variables"):
        client("https://api.example/v1")


@pytest.mark.parametrize(
    ("base_url", "proxy", "is_encrypted"),
    [
        ("http://api.example/v1", None, False),
        ("http://api.example/v1", "https://proxy.example", True),
        ("https://api.example/v1", None, True),
    ],
)
def test_certificates_are_loaded_only_if_the_api_or_the_proxy_uses_tls(
    base_url: str, proxy: str | None, is_encrypted: bool
) -> None:
    found = tls_for(URL(base_url), proxy)
    assert (found is not None) == is_encrypted
    assert found is None or found.verify_mode is ssl.CERT_REQUIRED
