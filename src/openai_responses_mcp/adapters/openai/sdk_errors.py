"""The SDK's exceptions stop here: what openai and the HTTP client below it raise, as domain errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
import httpx2
import openai

from openai_responses_mcp.adapters.openai.api_errors import (
    AIOHTTP_EXCEPTIONS,
    BROKEN,
    GARBLED,
    PYTHON_EXCEPTIONS,
    REFUSED,
    TIMEOUT,
    UNREACHABLE,
    Mask,
    Meaning,
    Now,
    meaning_of,
    refusal,
    text_or_none,
)
from openai_responses_mcp.adapters.openai.session import ApiReply
from openai_responses_mcp.domain.errors import (
    GatewayBroken,
    GatewayError,
    GatewayGarbled,
    GatewayRefused,
    GatewayTimeout,
    GatewayUnreachable,
)

_STREAM_ERROR = "The API ended the stream with an error ({detail}). Ask again."

EXCEPTIONS: tuple[Meaning, ...] = (
    *AIOHTTP_EXCEPTIONS,
    (httpx2.ConnectError, GatewayUnreachable, UNREACHABLE),
    (httpx2.ConnectTimeout, GatewayUnreachable, UNREACHABLE),
    (httpx2.PoolTimeout, GatewayUnreachable, UNREACHABLE),
    (httpx2.ProxyError, GatewayUnreachable, UNREACHABLE),
    (httpx2.TimeoutException, GatewayTimeout, TIMEOUT),
    (httpx2.UnsupportedProtocol, GatewayRefused, REFUSED),
    (httpx2.LocalProtocolError, GatewayRefused, REFUSED),
    (httpx2.InvalidURL, GatewayRefused, REFUSED),
    (httpx2.TooManyRedirects, GatewayRefused, REFUSED),
    (httpx2.CookieConflict, GatewayRefused, REFUSED),
    (httpx2.DecodingError, GatewayGarbled, GARBLED),
    (httpx2.StreamError, GatewayGarbled, GARBLED),
    (httpx2.HTTPError, GatewayBroken, BROKEN),
    (openai.APITimeoutError, GatewayTimeout, TIMEOUT),
    (openai.APIConnectionError, GatewayBroken, BROKEN),
    (openai.APIResponseValidationError, GatewayGarbled, GARBLED),
    (openai.APIError, GatewayBroken, _STREAM_ERROR),
    (openai.OpenAIError, GatewayGarbled, GARBLED),
    (openai.InvalidWebhookSignatureError, GatewayGarbled, GARBLED),
    *PYTHON_EXCEPTIONS,
)
"""The first class that fits decides."""

_KINDS = tuple(kind for kind, _, _ in EXCEPTIONS)


@contextmanager
def sdk_errors_translated(now: Now, mask: Mask = str) -> Iterator[None]:
    try:
        yield
    except openai.APIStatusError as exc:
        reply = ApiReply(exc.status_code, exc.response.headers, exc.response.content)
        raise refusal(reply, now, mask) from exc
    except _KINDS as exc:
        raise _meaning_of(exc, mask) from exc


def _meaning_of(exc: Exception, mask: Mask) -> GatewayError:
    # The SDK promises text, and hands on whatever the API sent.
    kind, code = (text_or_none(exc.type), text_or_none(exc.code)) if isinstance(exc, openai.APIError) else (None, None)
    return meaning_of(_original(exc), EXCEPTIONS, mask, kind=kind, code=code)


def _original(exc: Exception) -> Exception:
    """The innermost that tells something: what wraps aiohttp calls every broken connection one that timed out."""
    causes = [exc]
    while isinstance(causes[-1].__cause__, Exception):
        causes.append(causes[-1].__cause__)
    inner = [cause for cause in causes if isinstance(cause, aiohttp.ClientError)]
    wraps = isinstance(exc, openai.APIConnectionError) and len(causes) > 1
    return inner[0] if inner else causes[1] if wraps else exc
