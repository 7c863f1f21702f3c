"""Did the server answer with an error, or did the transport make the error up because no answer came?

Both arrive as the same exception with the same numbers: −32000 is what servers use for errors of their own, and what
the SDK says when a connection breaks. The difference matters. A call that was answered must not be made again; if it
was not answered, it is unknown whether it ran. Our own transport marks what came from the server. For the SDK's
transports there are only the texts that they use.
"""

from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
)

# How the SDK's errors of its own begin, and what they mean.
NO_ANSWER: tuple[tuple[int, str, str], ...] = (
    (CONNECTION_CLOSED, "Connection closed", "the connection broke"),
    (CONNECTION_CLOSED, "SSE stream ended", "the connection broke"),
    (CONNECTION_CLOSED, "SSE stream failed", "the connection broke"),
    (REQUEST_TIMEOUT, "Request '", "no answer in time"),
    (INTERNAL_ERROR, "Server returned an error response", "an HTTP error instead of an answer"),
    (INVALID_REQUEST, "Unexpected content type", "an answer that is neither JSON nor a stream"),
    (PARSE_ERROR, "Failed to parse", "an answer that cannot be read"),
)
_AMBIGUOUS = frozenset(code for code, _, _ in NO_ANSWER)

_ANSWERED = object()


def marked_as_answered(message: JSONRPCMessage) -> JSONRPCMessage:
    """The message of a server; an error that the SDK could have made up gets a mark."""
    if not isinstance(message, JSONRPCError) or message.error.code not in _AMBIGUOUS:
        return message
    error = ErrorData(code=message.error.code, message=message.error.message, data=_ANSWERED)
    return message.model_copy(update={"error": error})


def why_no_answer(error: MCPError) -> str | None:
    """None when the server did answer."""
    if error.data is _ANSWERED:
        return None
    return next((why for code, text, why in NO_ANSWER if error.code == code and error.message.startswith(text)), None)
