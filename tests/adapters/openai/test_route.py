import base64

import pytest

from openai_responses_mcp import __version__
from openai_responses_mcp.adapters.openai.route import ApiRoute
from openai_responses_mcp.domain.errors import GatewayRefused
from tests.contracts.openai_gateways import forget_proxies


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_proxies(monkeypatch)


def route(base_url: str = "https://api.example/v1", api_key: str = "made-up", **environ: str) -> ApiRoute:
    return ApiRoute(base_url=base_url, api_key=api_key, environ=environ)


def test_the_headers_say_who_we_are() -> None:
    assert route(OPENAI_ORG_ID="org-1", OPENAI_PROJECT_ID="proj-1").headers == {
        "Authorization": "Bearer made-up",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": f"openai-responses-mcp/{__version__}",
        "OpenAI-Organization": "org-1",
        "OpenAI-Project": "proj-1",
    }


@pytest.mark.parametrize("environ", [{}, {"OPENAI_ORG_ID": "", "OPENAI_PROJECT_ID": ""}])
def test_an_organisation_that_is_not_set_is_not_named(environ: dict[str, str]) -> None:
    assert not [name for name in route(**environ).headers if name.startswith("OpenAI-")]


@pytest.mark.parametrize("value", ["org-ä", "org\n1", "\udcff"])
def test_what_no_header_can_carry_is_refused_by_name(value: str) -> None:
    with pytest.raises(GatewayRefused, match="no header can carry OpenAI-Organization as it is"):
        _ = route(OPENAI_ORG_ID=value).headers


def test_credentials_in_the_address_take_the_place_of_the_key_and_leave_the_address() -> None:
    found = route("https://someone:s%40cret@gateway.example/v1")
    assert str(found.url) == "https://gateway.example/v1"
    assert found.headers["Authorization"] == f"Basic {base64.b64encode(b'someone:s@cret').decode()}"


@pytest.mark.parametrize("base_url", ["https://api.example/v1", "https://api.example/v1/"])
@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("responses", "https://api.example/v1/responses"),
        ("models/a%2Fb%205", "https://api.example/v1/models/a%2Fb%205"),
    ],
)
def test_paths_go_below_the_address_as_they_are(base_url: str, path: str, url: str) -> None:
    found = route(base_url)
    assert str(found.url_of(path)) == str(found.url_of(path)) == url


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(GatewayRefused, match=r"Check openai\.base_url"):
        _ = route("http://[::1/v1").url


@pytest.mark.parametrize(
    ("base_url", "variables", "proxy"),
    [
        ("https://api.example/v1", {}, None),
        ("https://api.example/v1", {"HTTPS_PROXY": "http://proxy.example:8080"}, "http://proxy.example:8080"),
        ("https://api.example/v1", {"HTTP_PROXY": "http://proxy.example:8080"}, None),
        ("http://api.example/v1", {"HTTP_PROXY": "http://proxy.example:8080"}, "http://proxy.example:8080"),
        ("https://api.example/v1", {"ALL_PROXY": "http://proxy.example:8080"}, "http://proxy.example:8080"),
        ("https://api.example/v1", {"HTTPS_PROXY": "proxy.example:8080"}, "http://proxy.example:8080"),
        ("https://api.example/v1", {"HTTPS_PROXY": "http://proxy.example", "NO_PROXY": "api.example"}, None),
        ("https://api.example/v1", {"ALL_PROXY": "socks5://proxy.example", "NO_PROXY": "*"}, None),
    ],
)
def test_the_proxy_is_the_one_that_the_environment_names_for_the_address(
    base_url: str, variables: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert route(base_url).proxy == proxy


@pytest.mark.parametrize("scheme", ["socks5", "odd"])
def test_a_proxy_that_speaks_no_http_is_refused(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"{scheme}://proxy.example:1080")
    with pytest.raises(GatewayRefused, match=rf"is a {scheme} proxy; only HTTP proxies.*Check.*the proxy variables"):
        _ = route().proxy


def test_certificates_are_looked_for_where_something_is_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert route("http://api.example/v1").tls is None
    assert route("https://api.example/v1").tls is not None
    monkeypatch.setenv("HTTP_PROXY", "https://proxy.example")
    assert route("http://api.example/v1").tls is not None
