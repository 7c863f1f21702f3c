"""Hosts, tokens, and access tokens of an issuer that is made up here."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from openai_responses_mcp.adapters.http.access import (
    AllowedHosts,
    Callers,
    Issuer,
    IssuerKeys,
    IssuerUnavailable,
    Unauthorized,
)
from tests.fakes import WAIT_SECONDS

ISSUER = Issuer("https://login.example/team", "https://answers.example/mcp")
KEY, OTHER_KEY = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))


def published(key: rsa.RSAPrivateKey, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    return {**found, "kid": name, "use": "sig", "alg": "RS256"}


class FakeIssuer:
    """What the issuer answers, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.keys = [published(KEY, "one")]
        self.issuer = ISSUER.url
        self.is_down = False
        self.is_silent = False
        self.now = 1000.0

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(str(request.url))
        if self.is_silent:
            await asyncio.Event().wait()
        if self.is_down:
            raise httpx2.ConnectError("no")
        if request.url.path == "/team/.well-known/openid-configuration":
            metadata = {"issuer": self.issuer, "jwks_uri": "https://login.example/team/keys"}
            return httpx2.Response(200, json=metadata)
        return (
            httpx2.Response(200, json={"keys": self.keys}) if request.url.path == "/team/keys" else httpx2.Response(404)
        )

    def callers(self, tokens: dict[str, str] | None = None, seconds: float = WAIT_SECONDS) -> Callers:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self))
        return Callers(tokens or {}, IssuerKeys(ISSUER, http, seconds=seconds, monotonic=lambda: self.now))


def token(key: Any = KEY, kid: str | None = "one", algorithm: str = "RS256", **changes: Any) -> str:
    claims = {"iss": ISSUER.url, "aud": ISSUER.audience, "sub": "ann", "exp": time.time() + 60, **changes}
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, key, algorithm, headers={"kid": kid} if kid else {})


async def caller(callers: Callers, given: str) -> str:
    return await callers.caller([f"Bearer {given}"])


async def test_the_subject_of_a_token_is_who_asks_and_the_keys_are_read_once() -> None:
    issuer = FakeIssuer()
    callers = issuer.callers()
    assert [await caller(callers, token()) for _ in range(3)] == ["ann"] * 3
    assert issuer.asked == [
        "https://login.example/.well-known/oauth-authorization-server/team",
        "https://login.example/team/.well-known/openid-configuration",
        "https://login.example/team/keys",
    ]


async def test_an_invalid_token_is_refused() -> None:
    cases: list[Callable[[], str]] = [
        lambda: token(OTHER_KEY, "two"),
        lambda: token(aud=None),
        lambda: token(sub=" "),
        lambda: token(nbf=time.time() + 600),
        lambda: token()[:-4],
        lambda: "é",
        lambda: "x" * 100_000,
    ]
    for made in cases:
        with pytest.raises(Unauthorized):
            await caller(FakeIssuer().callers(), made())


async def test_a_key_that_came_later_is_found_but_made_up_ones_do_not_make_us_ask_on() -> None:
    issuer = FakeIssuer()
    callers = issuer.callers()
    for _ in range(20):
        with pytest.raises(Unauthorized):
            await caller(callers, token(OTHER_KEY, "two"))
    assert len(issuer.asked) == 3
    issuer.keys.append(published(OTHER_KEY, "two"))
    issuer.now += 11
    assert await caller(callers, token(OTHER_KEY, "two")) == "ann"


async def test_a_key_that_the_issuer_no_longer_publishes_does_not_count() -> None:
    issuer = FakeIssuer()
    callers = issuer.callers()
    assert await caller(callers, token()) == "ann"
    issuer.keys, issuer.now = [published(OTHER_KEY, "two")], issuer.now + 301
    with pytest.raises(Unauthorized):
        await caller(callers, token())


async def test_metadata_of_another_issuer_is_not_used() -> None:
    issuer = FakeIssuer()
    issuer.issuer = "https://evil.example"
    with pytest.raises(IssuerUnavailable):
        await caller(issuer.callers(), token())


async def test_without_the_issuer_only_fixed_tokens_and_known_keys_count_until_it_is_back() -> None:
    issuer = FakeIssuer()
    issuer.is_down = True
    callers = issuer.callers({"bob": "token-of-bob"})
    assert await caller(callers, "token-of-bob") == "bob"
    for _ in range(3):
        with pytest.raises(IssuerUnavailable, match="the keys of the token's issuer cannot be read"):
            await caller(callers, token())
    assert len(issuer.asked) == 2
    issuer.is_down, issuer.now = False, issuer.now + 11
    assert await caller(callers, token()) == "ann"
    issuer.is_down, issuer.now = True, issuer.now + 301
    assert await caller(callers, token()) == "ann"
    with pytest.raises(IssuerUnavailable):
        await caller(callers, token(OTHER_KEY, "two"))


async def test_a_silent_issuer_is_waited_for_by_one_call_and_not_for_long() -> None:
    issuer = FakeIssuer()
    callers = issuer.callers(seconds=0.05)
    assert await caller(callers, token()) == "ann"
    issuer.is_silent, issuer.now = True, issuer.now + 301
    first = asyncio.ensure_future(caller(callers, token()))
    while len(issuer.asked) < 4:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert await caller(callers, token()) == "ann"
    assert not first.done()
    assert await asyncio.wait_for(first, WAIT_SECONDS) == "ann"


async def test_a_header_that_names_no_token_is_refused() -> None:
    cases: list[list[str]] = [[], ["Bearer"], ["Bearer "], ["bob"], ["Basic Ym9i"], ["Bearer b", "Bearer b"]]
    for given in cases:
        with pytest.raises(Unauthorized):
            await Callers({"bob": "b"}, None).caller(given)


def test_hosts_and_origins_are_compared_whole() -> None:
    cases: list[tuple[list[str], list[str], bool]] = [
        (["127.0.0.1:80"], [], True),
        (["localhost"], ["http://localhost"], True),
        (["[::1]:80"], [], True),
        (["answers.example"], ["https://answers.example"], True),
        ([], [], False),
        (["127.0.0.1:81"], [], False),
        (["answers.example.evil.example"], [], False),
        (["answers.example", "answers.example"], [], False),
        (["answers.example"], ["https://answers.example", "https://evil.example"], False),
        (["answers.example"], ["http://answers.example"], False),
        (["answers.example"], ["null"], False),
        (["answers.example@evil.example"], [], False),
    ]
    for hosts, origins, is_open in cases:
        hosts_of = AllowedHosts("http://127.0.0.1:80", "https://answers.example/mcp")
        assert hosts_of.is_open_to(hosts, origins) is is_open


def test_the_address_it_listens_on_is_a_host_only_on_this_machine() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("http://127.0.0.2:8080", "127.0.0.2:8080", True),
        ("http://127.0.0.2:8080", "localhost:8080", True),
        ("http://[::1]:8080", "[::1]:8080", True),
        ("https://localhost:8443", "localhost:8443", True),
        ("http://127.0.0.1:8080", "127.0.0.2:8080", False),
        ("http://0.0.0.0:8080", "0.0.0.0:8080", False),
        ("http://192.0.2.1:8080", "192.0.2.1:8080", False),
    ]
    for address, host, is_open in cases:
        hosts = AllowedHosts(address, None)
        assert hosts.is_open_to([host], []) is is_open
        assert hosts.resource == f"{address}/mcp"
