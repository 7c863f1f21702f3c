"""Who may call: the hosts and origins that a request may name, and the tokens that identify callers.

A web page can make a browser send requests to this machine. Such a request names the page's origin, or a host name
that an attacker has pointed here, so both are checked before anything else. Tokens are compared in constant time.
"""

import asyncio
import hmac
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
import jwt

from openai_responses_mcp.adapters.remote.wire import is_loopback

MCP_PATH = "/mcp"
METADATA_PATH = "/.well-known/oauth-protected-resource"
ANONYMOUS = ""

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_KEYS_SECONDS = 300.0
# An unknown key id may be new, or made up to make us ask the issuer again and again.
_LEAST_SECONDS_BETWEEN_READS = 10.0
# The limit for all requests to the issuer together, because a call waits for them.
_ISSUER_SECONDS = 5.0
_MOST_BYTES = 1024 * 1024
_LEEWAY_SECONDS = 5
_LONGEST_TOKEN = 16 * 1024
_LONGEST_SUBJECT = 255


class Unauthorized(Exception):
    """There is no valid token. `was_given` is true if there was an invalid one."""

    def __init__(self, text: str = "the token is not valid", *, was_given: bool = True) -> None:
        super().__init__(text)
        self.was_given = was_given


class IssuerUnavailable(Unauthorized):
    """The token names an unknown key, and the issuer's keys cannot be read now."""


class Issuer(NamedTuple):
    """Its access tokens must name the `audience`."""

    url: str
    audience: str


class AllowedHosts:
    """Hosts and origins that requests may name: those of this machine, and that of the public URL.

    `address` is where the server listens, with the port that it took.
    """

    def __init__(self, address: str, public_url: str | None) -> None:
        listening = urlsplit(address)
        names = {"127.0.0.1", "localhost", "[::1]"}
        if is_loopback(listening.hostname or ""):  # Another address of this machine, such as 127.0.0.2.
            names |= {listening.netloc.lower().rpartition(":")[0]}
        self._hosts = {f"{name}:{listening.port}" for name in names}
        if listening.port in (80, 443):  # Clients leave standard ports out.
            self._hosts |= names
        self._origins = {f"http://{host}" for host in self._hosts} | {f"https://{host}" for host in self._hosts}
        self.resource = public_url or f"{address}{MCP_PATH}"
        if public_url is not None:
            parts = urlsplit(public_url)
            standard = {"http": 80, "https": 443}[parts.scheme]
            self._hosts |= {parts.netloc.lower()}
            if parts.port is None:
                self._hosts |= {f"{parts.netloc.lower()}:{standard}"}
            self._origins |= {f"{parts.scheme}://{parts.netloc.lower()}"}

    def is_open_to(self, hosts: Sequence[str], origins: Sequence[str]) -> bool:
        """Takes all values of the headers `Host` and `Origin`. A header that is sent twice is refused."""
        is_known_host = len(hosts) == 1 and hosts[0].lower() in self._hosts
        return is_known_host and (not origins or (len(origins) == 1 and origins[0].lower() in self._origins))

    @property
    def metadata_url(self) -> str:
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{METADATA_PATH}{MCP_PATH}"


class Callers:
    """Identifies the caller of a request. Without tokens and without an issuer, all callers are anonymous."""

    def __init__(self, tokens: Mapping[str, str], keys: "IssuerKeys | None") -> None:
        self._tokens = {token.encode(): name for name, token in tokens.items()}
        self._keys = keys

    async def caller(self, authorizations: Sequence[str]) -> str:
        """Raises `Unauthorized`. Takes the values of the header `Authorization`."""
        if not self._tokens and self._keys is None:
            return ANONYMOUS
        token = _bearer(authorizations)
        # All tokens are compared, so that the time taken reveals nothing.
        names = [name for known, name in self._tokens.items() if hmac.compare_digest(known, token.encode())]
        name = names[0] if names else None
        if name is None and self._keys is not None:
            name = await self._keys.subject_of(token)
        if name is None:
            raise Unauthorized
        return name


def _bearer(authorizations: Sequence[str]) -> str:
    if not authorizations:
        raise Unauthorized("a token is needed", was_given=False)
    scheme, _, token = authorizations[0].partition(" ")
    if len(authorizations) > 1 or scheme.lower() != "bearer" or not token.strip() or len(token) > _LONGEST_TOKEN:
        raise Unauthorized
    return token.strip()


class IssuerKeys:
    """Checks access tokens with the keys that their issuer publishes.

    Known keys stay in use while the issuer cannot be reached. Only one call at a time asks the issuer.
    """

    def __init__(
        self,
        issuer: Issuer,
        http: httpx2.AsyncClient | None = None,
        *,
        seconds: float = _ISSUER_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        # Loopback needs no proxy.
        is_remote = not is_loopback(urlsplit(issuer.url).hostname or "")
        self._http = http or httpx2.AsyncClient(follow_redirects=False, trust_env=is_remote)
        self._seconds = seconds
        self._monotonic = monotonic
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._read_at = -math.inf
        self._is_reachable = True
        self._reading = asyncio.Lock()

    async def subject_of(self, token: str) -> str | None:
        """The subject of the token; None if the token is not valid. Raises `IssuerUnavailable`."""
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = await self._key(key_id if isinstance(key_id, str) else None)
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=list(_ALGORITHMS),
                audience=self._issuer.audience,
                issuer=self._issuer.url,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        subject = claims.get("sub")
        if not isinstance(subject, str) or not subject.strip() or not subject.isprintable():
            return None
        return subject if len(subject) <= _LONGEST_SUBJECT else None

    async def _key(self, name: str | None) -> jwt.PyJWK | None:
        if self._known(name) is None or self._age() > _KEYS_SECONDS:
            async with self._reading:
                if self._age() > (_LEAST_SECONDS_BETWEEN_READS if self._known(name) is None else _KEYS_SECONDS):
                    await self._read()
        found = self._known(name)
        if found is None and not self._is_reachable:
            raise IssuerUnavailable("the keys of the token's issuer cannot be read")
        return found

    def _known(self, name: str | None) -> jwt.PyJWK | None:
        if name is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(name)

    def _age(self) -> float:
        return self._monotonic() - self._read_at

    async def _read(self) -> None:
        """If the keys cannot be read, the known ones stay."""
        self._read_at = self._monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                read = jwt.PyJWKSet.from_dict(await self._json(await self._keys_url()))
        except (httpx2.HTTPError, jwt.PyJWTError, TimeoutError, ValueError, KeyError, TypeError, AttributeError):
            self._is_reachable = False
            return
        self._is_reachable = True
        self._keys = {key.key_id: key for key in read.keys}

    async def _keys_url(self) -> str:
        """From the issuer's metadata, which is in one of two places."""
        parts = urlsplit(self._issuer.url)
        path = parts.path.rstrip("/")
        root = f"{parts.scheme}://{parts.netloc}"
        places = (
            f"{root}/.well-known/oauth-authorization-server{path}",
            f"{root}{path}/.well-known/openid-configuration",
        )
        for place in places:
            try:
                metadata = await self._json(place)
            except (httpx2.HTTPError, ValueError):
                continue
            keys_url = metadata.get("jwks_uri")
            if metadata.get("issuer") == self._issuer.url and isinstance(keys_url, str) and is_safe_url(keys_url):
                return keys_url
        raise ValueError("the issuer names no keys")

    async def _json(self, url: str) -> dict[str, Any]:
        reply = await self._http.get(url)
        if reply.status_code != 200 or len(reply.content) > _MOST_BYTES:
            raise ValueError(f"HTTP {reply.status_code}")
        found = reply.json()
        if not isinstance(found, dict):
            raise TypeError("not an object")
        return found


def is_safe_url(url: str) -> bool:
    """https, or http on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
