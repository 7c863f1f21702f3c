import errno
import inspect
import json
import socket
import ssl
from datetime import UTC, timedelta
from email.utils import format_datetime
from types import ModuleType
from typing import Any

import aiohttp
import httpx2
import openai
import pytest
from aiohttp.client_reqrep import ConnectionKey
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.adapters.openai.errors import (
    EXCEPTIONS,
    LONGEST_BODY,
    retry_after_seconds,
    stream_error,
    vendor_errors_translated,
)
from openai_responses_mcp.adapters.openai.replies import BodyTooLong
from openai_responses_mcp.domain.errors import (
    GatewayBroken,
    GatewayError,
    GatewayGarbled,
    GatewayOverloaded,
    GatewayRefused,
    GatewayTimeout,
    PreviousResponseLost,
)
from tests.fakes import FakeClock

NOW = FakeClock().now()
REQUEST = httpx2.Request("POST", "https://api.example/v1/responses")


def translated(exc: Exception) -> GatewayError:
    with pytest.raises(GatewayError) as caught, vendor_errors_translated(lambda: NOW):
        raise exc
    assert caught.value.__cause__ is exc
    return caught.value


def exception_classes(module: ModuleType) -> list[type[BaseException]]:
    # Only names that look like classes: other attributes load submodules on first access, which takes seconds.
    things = [getattr(module, name) for name in dir(module) if name[0].isupper()]
    return [thing for thing in things if inspect.isclass(thing) and issubclass(thing, BaseException)]


WEBSOCKETS = {"WSMessageTypeError"}


@pytest.mark.parametrize("vendor", [openai, httpx2, aiohttp.client_exceptions], ids=lambda vendor: vendor.__name__)
def test_every_exception_of_the_vendors_is_covered_by_the_table(vendor: ModuleType) -> None:
    covered = tuple(kind for kind, _, _ in EXCEPTIONS)
    classes = exception_classes(vendor)
    assert len(classes) > 10
    assert {kind.__name__ for kind in classes if not issubclass(kind, covered)} <= WEBSOCKETS


def test_no_row_of_the_table_is_shadowed_by_an_earlier_one() -> None:
    kinds = [kind for kind, _, _ in EXCEPTIONS]
    hidden = [kind for number, kind in enumerate(kinds) if any(issubclass(kind, earlier) for earlier in kinds[:number])]
    assert hidden == []


def wrapped(cause: Exception | None) -> openai.APIConnectionError:
    error = openai.APIConnectionError(request=REQUEST)
    error.__cause__ = cause
    return error


def test_a_vendor_exception_becomes_its_gateway_error() -> None:
    cases: list[tuple[Exception, type[GatewayError]]] = [
        (aiohttp.ServerDisconnectedError(), GatewayBroken),
        (aiohttp.InvalidURL("odd"), GatewayRefused),
        (httpx2.ReadTimeout("late"), GatewayTimeout),
        (ssl.SSLError("bad record"), GatewayBroken),
        (openai.APIResponseValidationError(httpx2.Response(200, request=REQUEST), {}), GatewayGarbled),
        (openai.APITimeoutError(request=REQUEST), GatewayTimeout),
        (wrapped(None), GatewayBroken),
        (wrapped(httpx2.UnsupportedProtocol("ftp")), GatewayRefused),
        (BodyTooLong(1, "a reply"), GatewayGarbled),
        (RecursionError("deep"), GatewayGarbled),
    ]
    for exc, error in cases:
        translation = translated(exc)
        assert type(translation) is error
        assert (translation.status, translation.name) == (None, type(exc.__cause__ or exc).__name__)


def test_the_detail_in_a_message_is_one_bounded_line() -> None:
    assert "(a b)" in str(translated(ValueError(" a\n b ")))
    assert str(translated(ValueError())).startswith("The API's reply could not be read. Check ")
    assert len(str(translated(ValueError("x" * 10_000)))) < LONGEST_BODY + 150


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Response payload is not completed: <TransferEncodingError: 400, message='x'>", "payload is not completed)"),
        ("ServerDisconnectedError", "before the reply was complete. Ask"),
        ("ValueError: no digits", "(no digits)"),
    ],
)
def test_messages_name_no_exception_classes(said: str, shown: str) -> None:
    text = str(translated(aiohttp.ClientPayloadError(said)))
    assert shown in text
    assert "Error:" not in text


def untrusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed (_ssl.c:1006)")
    error.verify_message = "self-signed certificate"
    return error


def without_tls() -> ssl.SSLError:
    error = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)")
    error.reason = "WRONG_VERSION_NUMBER"
    return error


def test_a_failed_connection_is_described_in_the_words_of_the_system() -> None:
    cases: list[tuple[OSError, str]] = [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 1)"), "Connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (untrusted(), "certificate verify failed: self-signed certificate"),
        (without_tls(), "SSL: wrong version number"),
    ]
    for cause, said in cases:
        key = ConnectionKey(
            "api.example", 443, is_ssl=True, ssl=True, proxy=None, proxy_auth=None, proxy_headers_hash=None
        )
        assert f" (api.example:443: {said})." in str(translated(aiohttp.ClientConnectorError(key, cause)))


def test_other_exceptions_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), vendor_errors_translated(lambda: NOW):
        raise ZeroDivisionError
    with pytest.raises(GatewayBroken, match=r"^ours$"), vendor_errors_translated(lambda: NOW):
        raise GatewayBroken("ours")


def test_an_error_in_a_stream_keeps_what_the_api_said() -> None:
    cases: list[tuple[dict[str, Any], str, str | None, str | None]] = [
        ({"type": "error", "message": "It broke", "code": "oops"}, "(It broke)", None, "oops"),
        ({"error": {"message": "It broke", "type": "t", "code": "oops"}}, "(It broke)", "t", "oops"),
        ({"type": "error"}, "(no reason given)", None, None),
        ({"error": {"message": ["odd"], "type": 7, "code": {}}}, "(no reason given)", None, None),
    ]
    for event, says, kind, code in cases:
        error = stream_error(event)
        assert str(error) == f"The API ended the stream with an error {says}. Ask again."
        assert (error.kind, error.code) == (kind, code)


def refused(status: int, body: object = None, text: str = "", **headers: str) -> GatewayError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = json.dumps(body) if body is not None else text
    response = httpx2.Response(status, headers=named, content=content.encode(), request=REQUEST)
    return translated(openai.APIStatusError("made up", response=response, body=None))


@pytest.mark.parametrize(
    ("status", "error", "advice"),
    [
        (301, GatewayRefused, "redirects (HTTP 301), which is not followed: check openai.base_url"),
        (400, GatewayRefused, "check the model and its settings"),
        (401, GatewayRefused, "The API key was refused (401): check that it is valid"),
        (403, GatewayRefused, "check the project's permissions"),
        (404, GatewayRefused, "check model_profiles and openai.base_url"),
        (408, GatewayRefused, "The API refused the request (HTTP 408)."),
        (413, GatewayRefused, "shorten it"),
        (429, GatewayOverloaded, "limiting the rate of requests (429): ask again in a while"),
        (500, GatewayOverloaded, "in trouble (HTTP 500): ask again in a while"),
    ],
)
def test_a_status_becomes_an_error_that_says_what_to_do(status: int, error: type[GatewayError], advice: str) -> None:
    translation = refused(status, {"message": "Because."})
    assert type(translation) is error
    assert advice in str(translation)
    assert str(translation).endswith("The API says: Because.")
    assert translation.status == status


@pytest.mark.parametrize("facts", [{"code": "insufficient_quota"}, {"type": "insufficient_quota"}])
def test_an_exhausted_quota_is_a_refusal_and_no_overload(facts: dict[str, str]) -> None:
    translation = refused(429, facts)
    assert type(translation) is GatewayRefused
    assert "check its plan and billing" in str(translation)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            {"code": "previous_response_not_found", "message": "Previous response with id 'resp_1' not found."},
            "is not known to the API",
        ),
        ({"param": "previous_response_id", "message": "Not found."}, "is not known to the API"),
        ({"message": "The previous_response_id 'resp_1' is unknown."}, "is not known to the API"),
        ({"message": "The previous_response_id 'resp_1' has expired."}, "has expired (responses are kept for 30 days)"),
    ],
)
def test_a_lost_previous_response_says_why_and_what_to_do(body: dict[str, str], says: str) -> None:
    translation = refused(400, body)
    assert type(translation) is PreviousResponseLost
    assert f"The response that previous_response_id names {says}: ask again without previous_response_id." in str(
        translation
    )


def test_other_bad_requests_are_not_taken_for_a_lost_previous_response() -> None:
    assert type(refused(400, {"param": "tools", "message": "No."})) is GatewayRefused
    assert type(refused(404, {"message": "previous_response_id"})) is GatewayRefused


def test_message_type_and_code_are_read_from_every_form_of_error_body() -> None:
    cases: list[tuple[object, tuple[Any, ...]]] = [
        ({"message": "m", "type": "t", "code": "c"}, ("m", "t", "c")),
        ({"error": {"message": "m", "type": "t", "code": "c"}}, ("m", "t", "c")),
        ({"message": ["m"], "type": 7, "code": None}, ("HTTP 418", None, None)),
        (["odd"], ("HTTP 418", None, None)),
        (None, ("HTTP 418", None, None)),
    ]
    for body, facts in cases:
        error = refused(418, body)
        assert (str(error).rpartition("The API says: ")[2], error.kind, error.code) == facts


def test_the_body_kept_for_the_log_is_truncated() -> None:
    error = refused(500, text="é" * 1000)
    assert error.body == "é" * 300


def date_in(seconds: int) -> str:
    return format_datetime((NOW + timedelta(seconds=seconds)).astimezone(UTC), usegmt=True)


def test_retry_after_is_read_in_every_valid_form() -> None:
    cases: list[tuple[dict[str, str], float | None]] = [
        ({"retry-after": "0.1"}, 0.1),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": date_in(30)}, 30.0),
        ({"retry-after": date_in(-30)}, 0.0),
        ({"retry-after": date_in(30).replace("GMT", "-0000")}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "Fri, 31 Dec 99999999999999999999 23:59:59 GMT"}, None),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after-ms": "junk", "retry-after": "7"}, 7.0),
    ]
    for headers, seconds in cases:
        assert retry_after_seconds(headers, lambda: NOW) == seconds


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_junk_in_retry_after_never_raises(value: str) -> None:
    seconds = retry_after_seconds({"retry-after": value}, lambda: NOW)
    assert seconds is None or seconds >= 0
