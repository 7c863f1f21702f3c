"""Translates exceptions of the SDK, of the layers below it and of Python into domain errors."""

import json
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

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
from openai_responses_mcp.domain.jsonrpc import why_unreadable
from openai_responses_mcp.domain.texts import Sentence

LONGEST_BODY = 300
# Longer texts are cut before masking, which takes time. Much less is shown.
_LONGEST_FACT = 2_000

_CLASS_NAME = re.compile(r"[:,]? *<?\b[A-Za-z]+(?:Error|Exception)\b(?:[^<>]*>)?:? ?")
_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")

_BACKGROUND = re.compile(r"\bbackground\b")

Now = Callable[[], datetime]
Mask = Callable[[str], str]
Meaning = tuple[type[Exception], type[GatewayError], "FailureWords"]


class FailureWords(NamedTuple):
    """What happened, and advice. `fetching` is the advice if the answer can still be fetched."""

    what: str
    advice: str
    fetching: str = ""


_CHECK_NETWORK = " Check the network, the proxy and openai.base_url."
_CHECK_SET_UP = " Check openai.base_url and the environment."
UNREACHABLE = FailureWords("No connection to the API could be opened{detail}.", _CHECK_NETWORK, _CHECK_NETWORK)
BROKEN = FailureWords("The connection to the API broke before the reply was complete{detail}.", " Ask again.")
GARBLED = FailureWords(
    "The API's reply could not be read{detail}.",
    " Check openai.base_url, or ask again.",
    " Check openai.base_url.",
)
TIMEOUT = FailureWords("The API did not answer in time{detail}.", " Ask again, or raise request.timeout_ms.")
REFUSED = FailureWords("The request could not be sent{detail}.", _CHECK_SET_UP, _CHECK_SET_UP)


class BackgroundRefused(GatewayRefused):
    """The API rejects `background`. The gateway catches it and asks again without it."""


EXCEPTIONS: tuple[Meaning, ...] = (
    (aiohttp.ClientConnectorError, GatewayUnreachable, UNREACHABLE),
    (aiohttp.ClientHttpProxyError, GatewayUnreachable, UNREACHABLE),
    (aiohttp.ServerTimeoutError, GatewayTimeout, TIMEOUT),
    (aiohttp.InvalidURL, GatewayRefused, REFUSED),
    (aiohttp.ClientResponseError, GatewayGarbled, GARBLED),
    (aiohttp.ClientError, GatewayBroken, BROKEN),
    (httpx2.TimeoutException, GatewayTimeout, TIMEOUT),
    (httpx2.UnsupportedProtocol, GatewayRefused, REFUSED),
    (httpx2.LocalProtocolError, GatewayRefused, REFUSED),
    (httpx2.InvalidURL, GatewayRefused, REFUSED),
    (httpx2.CookieConflict, GatewayRefused, REFUSED),
    (httpx2.DecodingError, GatewayGarbled, GARBLED),
    (httpx2.StreamError, GatewayGarbled, GARBLED),
    (httpx2.HTTPError, GatewayBroken, BROKEN),
    (openai.APITimeoutError, GatewayTimeout, TIMEOUT),
    (openai.APIConnectionError, GatewayBroken, BROKEN),
    (openai.OpenAIError, GatewayGarbled, GARBLED),
    (ssl.SSLError, GatewayBroken, BROKEN),
    (UnicodeEncodeError, GatewayRefused, REFUSED),
    (ValueError, GatewayGarbled, GARBLED),
    (RecursionError, GatewayGarbled, GARBLED),
    (OSError, GatewayUnreachable, UNREACHABLE),
)
"""The first class that fits decides. ValueError covers JSON and UTF-8 that cannot be decoded."""

VENDOR_ERRORS = tuple(kind for kind, _, _ in EXCEPTIONS)


@contextmanager
def vendor_errors_translated(now: Now, mask: Mask = str) -> Iterator[None]:
    try:
        yield
    except openai.APIStatusError as exc:
        raise refusal(exc, now, mask) from exc
    except VENDOR_ERRORS as exc:
        # The exception inside the SDK's own says more.
        inner = exc.__cause__ if isinstance(exc, openai.APIConnectionError) else None
        raise _meaning_of(inner if isinstance(inner, VENDOR_ERRORS) else exc, mask) from exc


def _meaning_of(exc: Exception, mask: Mask) -> GatewayError:
    """The text is masked before it is cut: half a key would not be recognised."""
    error, words = next((error, words) for raised, error, words in EXCEPTIONS if isinstance(exc, raised))
    # Class names mean nothing to a user. The debug log has them.
    detail = _CLASS_NAME.sub("", " ".join(words_of(exc)[:_LONGEST_FACT].split()))
    what = Sentence(words.what, detail=f" ({mask(detail)[:LONGEST_BODY]})" if detail else "")
    advised, fetching = (_advised(what, advice) for advice in (words.advice, words.fetching))
    return error(advised, what_happened=fetching, name=type(exc).__name__)


def _advised(what: Sentence, advice: str) -> Sentence:
    return Sentence("{what}{advice}", what=what, advice=Sentence(advice)) if advice else what


def stream_error(event: Mapping[str, Any]) -> GatewayBroken:
    """For an event that is an error, or contains one."""
    error = event.get("error") or event
    facts = {"message": error} if isinstance(error, str) else error if isinstance(error, Mapping) else {}
    reason = _text_or_none(facts.get("message")) or Sentence("no reason given")
    what = Sentence("The API ended the stream with an error ({reason}).", reason=reason)
    return GatewayBroken(
        Sentence("{what} Ask again.", what=what),
        what_happened=what,
        kind=None if facts is event else _text_or_none(facts.get("type")),
        code=_text_or_none(facts.get("code")),
        name="APIError",
    )


def refusal(exc: openai.APIStatusError, now: Now, mask: Mask = str) -> GatewayError:
    """For a reply with a status that is not success."""
    facts = _facts_of(exc.response.content)
    error, what, advice = _verdict(exc.status_code, facts)
    says = Sentence("The API says: {message}", message=facts["message"] or f"HTTP {exc.status_code}")
    without_advice = Sentence("{what}. {says}", what=what, says=says)
    return error(
        Sentence("{what}. {says}", what=_advised(what, advice), says=says),
        what_happened=without_advice if issubclass(error, GatewayOverloaded) else None,
        status=exc.status_code,
        kind=facts["type"],
        code=facts["code"],
        name=type(exc).__name__,
        body=mask(exc.response.text[:_LONGEST_FACT])[:LONGEST_BODY],
        retry_after_seconds=retry_after_seconds(exc.response.headers, now),
    )


_REFUSALS = {
    401: (Sentence("The API key was refused (401)"), ": check that it is valid and belongs to this base URL"),
    403: (
        Sentence("The API key may not do this (403)"),
        ": check the project's permissions and the model's availability",
    ),
    404: (Sentence("The API does not know this model or address (404)"), ": check model_profiles and openai.base_url"),
    400: (Sentence("The API rejected this request (400)"), ": check the model and its settings"),
    413: (Sentence("The question is too long for the API (413)"), ": shorten it"),
}


def _verdict(status: int, facts: dict[str, str | None]) -> tuple[type[GatewayError], Sentence, str]:
    """The error, what happened, and what to do."""
    if facts["code"] == "insufficient_quota" or facts["type"] == "insufficient_quota":
        return GatewayRefused, Sentence("The API account has no quota left"), ": check its plan and billing"
    if status == 429:
        return GatewayOverloaded, Sentence("The API is limiting the rate of requests (429)"), ": ask again in a while"
    if status >= 500:
        return (
            GatewayOverloaded,
            Sentence("The API is in trouble (HTTP {status})", status=status),
            ": ask again in a while",
        )
    if status == 400:
        code, param, message = facts["code"] or "", facts["param"], facts["message"] or ""
        is_named = param == "previous_response_id" or "previous_response_id" in message
        if is_named or code.startswith("previous_response"):
            return PreviousResponseLost, *_on_previous_response(message)
        if param == "background" or _BACKGROUND.search(message):
            return BackgroundRefused, *_REFUSALS[400]
    if status < 400:
        what = Sentence("The API redirects (HTTP {status}), which is not followed", status=status)
        return GatewayRefused, what, ": check openai.base_url"
    unknown = Sentence("The API refused the request (HTTP {status})", status=status)
    return GatewayRefused, *_REFUSALS.get(status, (unknown, ""))


def _on_previous_response(message: str) -> tuple[Sentence, str]:
    what = Sentence("The response that previous_response_id names is not known to the API")
    if "expire" in message.lower():
        what = Sentence("The response that previous_response_id names has expired (responses are kept for 30 days)")
    return what, ": ask again without previous_response_id"


_FACTS = ("message", "type", "code", "param")


def _facts_of(content: bytes) -> dict[str, str | None]:
    """The error may be the body itself, an object in it, or a sentence. Values that are not text are ignored."""
    try:
        body: Any = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    error = body.get("error", body) if isinstance(body, dict) else None
    facts = {"message": error} if isinstance(error, str) else error if isinstance(error, dict) else {}
    return {name: _text_or_none(facts.get(name)) for name in _FACTS}


def _text_or_none(value: object) -> str | None:
    return value[:_LONGEST_FACT] if isinstance(value, str) else None


def retry_after_seconds(headers: Mapping[str, str], now: Now) -> float | None:
    """How long the API asks us to wait; None if it does not say, or the value is invalid."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    return _number(value) if value is None or _number(value) is not None else _seconds_until(value, now)


def _number(value: str | None) -> float | None:
    # float() accepts more than a header may contain: 1_0, infinity, digits of other scripts.
    return float(value) if value and _NUMBER.fullmatch(value.strip()) else None


def _seconds_until(value: str, now: Now) -> float | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (moment - now()).total_seconds()) if moment.tzinfo else None


def words_of(exc: Exception) -> str:
    if isinstance(exc, aiohttp.ClientConnectorError):
        return f"{exc.host}:{exc.port}: {_system_reason(exc.os_error)}"
    if isinstance(exc, json.JSONDecodeError):
        return f"not JSON at character {exc.pos}"
    if isinstance(exc, UnicodeDecodeError | RecursionError):
        return why_unreadable(exc)
    return _system_reason(exc) if isinstance(exc, OSError) else str(exc)


def _system_reason(exc: OSError) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {exc.verify_message}"
    if isinstance(exc, ssl.SSLError):
        reason: str | None = getattr(exc, "reason", None)
        return f"SSL: {reason.replace('_', ' ').lower()}" if reason else str(exc)
    # The number gives the reason; the text may only say what was tried. Name lookup and Windows have other numbers.
    if exc.errno and os.name == "posix" and not isinstance(exc, socket.gaierror):
        return os.strerror(exc.errno)
    return exc.strerror or str(exc)
