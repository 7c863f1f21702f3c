"""Errors as the API words them: a status and a body of `{"error": {message, type, param, code}}`."""

from dataclasses import dataclass
from typing import Any

INVALID = "invalid_request_error"


class ApiError(Exception):
    """A request the API would refuse."""

    def __init__(
        self, status: int, message: str, *, type: str = INVALID, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


@dataclass(frozen=True, slots=True)
class _Usual:
    """How the API usually words a status."""

    message: str
    type: str = INVALID
    code: str | None = None


_USUAL = {
    400: _Usual("The request is malformed."),
    401: _Usual("Incorrect API key provided.", code="invalid_api_key"),
    403: _Usual("Your project does not have access to this resource.", "request_forbidden"),
    404: _Usual("The requested resource was not found.", code="not_found"),
    409: _Usual("The resource is being changed by another request.", "conflict_error"),
    413: _Usual("The request is too large."),
    422: _Usual("The request cannot be processed."),
    429: _Usual("Rate limit reached for requests. Please try again later.", "requests", "rate_limit_exceeded"),
    500: _Usual("The server had an error while processing your request.", "server_error", "server_error"),
    502: _Usual("Bad gateway.", "server_error"),
    503: _Usual("The engine is currently overloaded, please try again later.", "server_error", "server_overloaded"),
    504: _Usual("The request timed out.", "server_error", "timeout"),
}


def usual_error(status: int) -> ApiError:
    """The error that the API gives with this status."""
    usual = _USUAL.get(status, _Usual("The request failed.", INVALID if status < 500 else "server_error"))
    return ApiError(status, usual.message, type=usual.type, code=usual.code)
