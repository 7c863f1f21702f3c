"""Vendor exceptions stop here: one table from what openai and its HTTP clients raise to the errors of the domain."""

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

import aiohttp
import httpx2
import openai

from openai_responses_mcp.domain.errors import (
    GatewayBroken,
    GatewayError,
    GatewayGarbled,
    GatewayOverloaded,
    GatewayRefused,
    GatewayTimeout,
    GatewayUnreachable,
    PreviousResponseLost,
)

LONGEST_BODY = 300

Now = Callable[[], datetime]
Mask = Callable[[str], str]


class BodyTooLong(httpx2.StreamError):
    """The API sends more than any answer can be."""


_UNREACHABLE = "No connection to the API could be opened ({detail}). Check the network, the proxy and openai.base_url."
_BROKEN = "The connection to the API broke before the reply was complete ({detail}). Ask again."
_GARBLED = "The API's reply could not be read ({detail}). Check openai.base_url, or ask again."
_TIMEOUT = "The API did not answer in time ({detail}). Ask again, or raise request.timeout_ms."
_STREAM_ERROR = "The API ended the stream with an error ({detail}). Ask again."
_REFUSED = "The request could not be sent ({detail}). Check openai.base_url and the environment."

EXCEPTIONS: tuple[tuple[type[Exception], type[GatewayError], str], ...] = (
    (aiohttp.ClientConnectorError, GatewayUnreachable, _UNREACHABLE),
    (aiohttp.ClientHttpProxyError, GatewayUnreachable, _UNREACHABLE),
    (aiohttp.ServerTimeoutError, GatewayTimeout, _TIMEOUT),
    (aiohttp.InvalidURL, GatewayRefused, _REFUSED),
    (aiohttp.ClientResponseError, GatewayGarbled, _GARBLED),
    (aiohttp.ClientError, GatewayBroken, _BROKEN),
    (httpx2.ConnectError, GatewayUnreachable, _UNREACHABLE),
    (httpx2.ConnectTimeout, GatewayUnreachable, _UNREACHABLE),
    (httpx2.PoolTimeout, GatewayUnreachable, _UNREACHABLE),
    (httpx2.ProxyError, GatewayUnreachable, _UNREACHABLE),
    (httpx2.TimeoutException, GatewayTimeout, _TIMEOUT),
    (httpx2.UnsupportedProtocol, GatewayRefused, _REFUSED),
    (httpx2.LocalProtocolError, GatewayRefused, _REFUSED),
    (httpx2.InvalidURL, GatewayRefused, _REFUSED),
    (httpx2.TooManyRedirects, GatewayRefused, _REFUSED),
    (httpx2.CookieConflict, GatewayRefused, _REFUSED),
    (httpx2.DecodingError, GatewayGarbled, _GARBLED),
    (httpx2.StreamError, GatewayGarbled, _GARBLED),
    (httpx2.HTTPError, GatewayBroken, _BROKEN),
    (ssl.SSLError, GatewayBroken, _BROKEN),
    (openai.APITimeoutError, GatewayTimeout, _TIMEOUT),
    (openai.APIConnectionError, GatewayBroken, _BROKEN),
    (openai.APIResponseValidationError, GatewayGarbled, _GARBLED),
    (openai.APIError, GatewayBroken, _STREAM_ERROR),
    (openai.OpenAIError, GatewayGarbled, _GARBLED),
    (openai.InvalidWebhookSignatureError, GatewayGarbled, _GARBLED),
    (UnicodeEncodeError, GatewayRefused, _REFUSED),
    (ValueError, GatewayGarbled, _GARBLED),
    (RecursionError, GatewayGarbled, _GARBLED),
    (OSError, GatewayUnreachable, _UNREACHABLE),
)
"""The first class that fits decides. ValueError covers JSON and UTF-8 that cannot be decoded."""


@contextmanager
def vendor_errors_translated(now: Now, mask: Mask = str) -> Iterator[None]:
    """What is cut is masked first: half a key is no longer known as one."""
    try:
        yield
    except openai.APIStatusError as exc:
        raise _from_status(exc, now, mask) from exc
    except tuple(kind for kind, _, _ in EXCEPTIONS) as exc:
        raise _from_exception(exc, mask) from exc


def status_error(response: httpx2.Response) -> openai.APIStatusError:
    """What the SDK raises for such a response."""
    usual = openai.InternalServerError if response.status_code >= 500 else openai.APIStatusError
    kind = _STATUS_ERRORS.get(response.status_code, usual)
    try:
        body = json.loads(response.content)
    except ValueError:
        body = None
    return kind(f"HTTP {response.status_code}", response=response, body=body)


_STATUS_ERRORS: dict[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
}


def _original(exc: Exception) -> Exception:
    """The innermost that tells something: what wraps aiohttp calls every broken connection one that timed out."""
    causes = [exc]
    while isinstance(causes[-1].__cause__, Exception):
        causes.append(causes[-1].__cause__)
    inner = [cause for cause in causes if isinstance(cause, aiohttp.ClientError)]
    wraps = isinstance(exc, openai.APIConnectionError) and len(causes) > 1
    return inner[0] if inner else causes[1] if wraps else exc


def _from_exception(exc: Exception, mask: Mask) -> GatewayError:
    original = _original(exc)
    error, template = next((error, text) for kind, error, text in EXCEPTIONS if isinstance(original, kind))
    detail = " ".join(str(original).split()) or type(original).__name__
    # The SDK promises text, and hands on whatever the API sent.
    kind, code = (_text(exc.type), _text(exc.code)) if isinstance(exc, openai.APIError) else (None, None)
    return error(
        template.format(detail=mask(detail)[:LONGEST_BODY]), name=type(original).__name__, kind=kind, code=code
    )


def _from_status(exc: openai.APIStatusError, now: Now, mask: Mask) -> GatewayError:
    status, facts = exc.status_code, _facts_of(exc)
    retry_after = retry_after_seconds(exc.response.headers, now)
    error, advice = _verdict(status, facts)
    reason = facts["message"] or f"HTTP {status}"
    return error(
        f"{advice} The API says: {reason}",
        status=status,
        kind=facts["type"],
        code=facts["code"],
        name=type(exc).__name__,
        body=mask(exc.response.text)[:LONGEST_BODY],
        retry_after_seconds=retry_after,
    )


_ADVICE = {
    401: "The API key was refused (401): check that it is valid and belongs to this base URL.",
    403: "The API key may not do this (403): check the project's permissions and the model's availability.",
    404: "The API does not know this model or address (404): check model_profiles and openai.base_url.",
    400: "The API does not take this request (400): check the model and its settings.",
    413: "The question is too long for the API (413): shorten it.",
}


def _verdict(status: int, facts: dict[str, str | None]) -> tuple[type[GatewayError], str]:
    if facts["code"] == "insufficient_quota" or facts["type"] == "insufficient_quota":
        return GatewayRefused, "The API account has no quota left: check its plan and billing."
    if status == 429:
        return GatewayOverloaded, "The API is limiting the rate of requests (429): ask again in a while."
    if status >= 500:
        return GatewayOverloaded, f"The API is in trouble (HTTP {status}): ask again in a while."
    if status == 400 and _names_previous_response(facts):
        return PreviousResponseLost, _advice_on_previous_response(facts)
    if status < 400:
        return GatewayRefused, f"The API redirects (HTTP {status}), which is not followed: check openai.base_url."
    return GatewayRefused, _ADVICE.get(status, f"The API refused the request (HTTP {status}).")


def _names_previous_response(facts: dict[str, str | None]) -> bool:
    named = (facts["code"] or "").startswith("previous_response") or facts["param"] == "previous_response_id"
    return named or "previous_response_id" in (facts["message"] or "")


def _advice_on_previous_response(facts: dict[str, str | None]) -> str:
    is_expired = "expire" in (facts["message"] or "").lower()
    what = "has expired (responses are kept for 30 days)" if is_expired else "is not known to the API"
    return f"The response that previous_response_id names {what}: ask again without previous_response_id."


def _facts_of(exc: openai.APIStatusError) -> dict[str, str | None]:
    """SDK and gateways nest the error object or not; what is no text is left out."""
    body: Any = exc.body
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    facts = body if isinstance(body, dict) else {}
    return {name: _text(facts.get(name)) for name in _FACTS}


_FACTS = ("message", "type", "code", "param")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def retry_after_seconds(headers: httpx2.Headers, now: Now) -> float | None:
    """How long the API asks us to wait; None when it does not say, or not in a way that can be followed."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    return _number(value) if value is None or _number(value) is not None else _seconds_until(value, now)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def _seconds_until(value: str, now: Now) -> float | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (moment - now()).total_seconds()) if moment.tzinfo else None
