import inspect
import ssl
from types import ModuleType

import httpx2
import openai
import pytest

from openai_responses_mcp.adapters.openai.api_errors import LONGEST_BODY
from openai_responses_mcp.adapters.openai.sdk_errors import EXCEPTIONS, sdk_errors_translated
from openai_responses_mcp.adapters.openai.session import BodyTooLong
from openai_responses_mcp.domain.errors import (
    GatewayBroken,
    GatewayError,
    GatewayGarbled,
    GatewayOverloaded,
    GatewayRefused,
    GatewayTimeout,
    GatewayUnreachable,
)
from tests.fakes import FakeClock

REQUEST = httpx2.Request("POST", "https://api.example/v1/responses")
NOW = FakeClock().now()


def translated(exc: BaseException) -> GatewayError:
    with pytest.raises(GatewayError) as caught, sdk_errors_translated(lambda: NOW):
        raise exc
    assert caught.value.__cause__ is exc
    return caught.value


def exception_classes(module: ModuleType) -> list[type[BaseException]]:
    # Classes only, by their look: the rest of these packages is loaded when it is first asked for, and takes seconds.
    things = [getattr(module, name) for name in dir(module) if name[0].isupper()]
    return [thing for thing in things if inspect.isclass(thing) and issubclass(thing, BaseException)]


@pytest.mark.parametrize("vendor", [openai, httpx2], ids=["openai", "httpx2"])
def test_every_exception_of_the_vendors_is_covered_by_the_table(vendor: ModuleType) -> None:
    covered = tuple(kind for kind, _, _ in EXCEPTIONS)
    classes = exception_classes(vendor)
    assert len(classes) > 10
    assert [kind.__name__ for kind in classes if not issubclass(kind, covered)] == []


def test_no_line_of_the_table_is_hidden_behind_another() -> None:
    kinds = [kind for kind, _, _ in EXCEPTIONS]
    hidden = [kind for number, kind in enumerate(kinds) if any(issubclass(kind, earlier) for earlier in kinds[:number])]
    assert hidden == []


def api_error(body: object) -> openai.APIError:
    return openai.APIError("It broke", REQUEST, body=body)


def wrapped(cause: Exception | None) -> openai.APIConnectionError:
    error = openai.APIConnectionError(request=REQUEST)
    error.__cause__ = cause
    return error


def timed_out(cause: Exception) -> openai.APITimeoutError:
    error = openai.APITimeoutError(request=REQUEST)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("exc", "error"),
    [
        (httpx2.ConnectError("refused"), GatewayUnreachable),
        (httpx2.ConnectTimeout("late"), GatewayUnreachable),
        (httpx2.PoolTimeout("late"), GatewayUnreachable),
        (httpx2.ProxyError("407"), GatewayUnreachable),
        (FileNotFoundError(2, "No such file"), GatewayUnreachable),
        (httpx2.ReadTimeout("late"), GatewayTimeout),
        (httpx2.WriteTimeout("late"), GatewayTimeout),
        (httpx2.ReadError("reset"), GatewayBroken),
        (httpx2.WriteError("reset"), GatewayBroken),
        (httpx2.RemoteProtocolError("cut"), GatewayBroken),
        (ssl.SSLError("bad record"), GatewayBroken),
        (httpx2.UnsupportedProtocol("ftp"), GatewayRefused),
        (httpx2.LocalProtocolError("header"), GatewayRefused),
        (httpx2.InvalidURL("url"), GatewayRefused),
        (httpx2.TooManyRedirects("round"), GatewayRefused),
        (httpx2.DecodingError("gzip"), GatewayGarbled),
        (BodyTooLong(), GatewayGarbled),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), GatewayGarbled),
        (ValueError("no JSON"), GatewayGarbled),
        (RecursionError("deep"), GatewayGarbled),
        (openai.OpenAIError("odd"), GatewayGarbled),
        (openai.APIResponseValidationError(httpx2.Response(200, request=REQUEST), {}), GatewayGarbled),
        (api_error({"code": "server_error"}), GatewayBroken),
        (openai.APITimeoutError(request=REQUEST), GatewayTimeout),
        (wrapped(None), GatewayBroken),
        (wrapped(httpx2.ReadError("reset")), GatewayBroken),
        (wrapped(httpx2.ConnectError("refused")), GatewayUnreachable),
        (wrapped(httpx2.UnsupportedProtocol("ftp")), GatewayRefused),
        (timed_out(httpx2.ConnectTimeout("late")), GatewayUnreachable),
        (timed_out(httpx2.ReadTimeout("late")), GatewayTimeout),
    ],
    ids=repr,
)
def test_an_exception_becomes_the_error_that_says_what_it_means(exc: Exception, error: type[GatewayError]) -> None:
    translation = translated(exc)
    assert type(translation) is error
    assert translation.status is None


def test_the_message_has_the_detail_in_one_line_and_bounded() -> None:
    assert "(a b)" in str(translated(httpx2.ReadError(" a\n b ")))
    assert "(ReadError)" in str(translated(httpx2.ReadError("")))
    assert len(str(translated(ValueError("x" * 10_000)))) < LONGEST_BODY + 150


def test_the_name_is_that_of_what_was_wrapped() -> None:
    assert translated(wrapped(httpx2.ConnectError("refused"))).name == "ConnectError"
    assert translated(wrapped(None)).name == "APIConnectionError"


def test_an_error_in_a_stream_keeps_what_the_api_said() -> None:
    error = translated(api_error({"code": "server_error", "type": "oops", "message": "It broke"}))
    assert (error.code, error.kind) == ("server_error", "oops")
    assert str(error) == "The API ended the stream with an error (It broke). Ask again."


def test_what_is_no_fault_of_the_vendors_goes_through() -> None:
    with pytest.raises(ZeroDivisionError), sdk_errors_translated(lambda: NOW):
        raise ZeroDivisionError
    with pytest.raises(GatewayBroken, match=r"^ours$"), sdk_errors_translated(lambda: NOW):
        raise GatewayBroken("ours")


def test_a_status_is_told_as_it_is_without_the_sdk() -> None:
    response = httpx2.Response(
        503, headers={"retry-after": "7"}, json={"error": {"message": "m", "code": "c"}}, request=REQUEST
    )
    error = translated(openai.InternalServerError("made up", response=response, body=None))
    assert type(error) is GatewayOverloaded
    assert (error.status, error.code, error.name) == (503, "c", "InternalServerError")
    assert error.retry_after_seconds == 7.0
    assert str(error).endswith("The API says: m")
