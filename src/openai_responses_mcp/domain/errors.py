"""Every error of the answering half.

AnsweringError
├── RequestError                what we were asked, or are set up to do, cannot be done
│   ├── InvalidArguments        a tool argument is missing or wrong
│   ├── ProfileMissing          no model profile to answer with
│   ├── KeyUnusable             an API key that cannot be sent
│   │   └── KeyMissing              no API key is set
│   └── CallInFlight            the id of a call that has not been answered yet
├── GatewayError                the other side misbehaved, or refused
│   ├── GatewayTimeout          no complete reply in time; never repeated
│   ├── StillRunning            no reply here, but the response goes on in the background and can be fetched later
│   ├── GatewayUnreachable      no connection could be opened; worth repeating
│   ├── GatewayOverloaded       429 and 5xx; worth repeating
│   ├── GatewayRefused          any other status; repeating would not help
│   │   ├── PreviousResponseLost    the conversation to continue is unknown or expired
│   │   └── ResponseLost            the API does not have the response that was asked for by its id
│   ├── GatewayBroken           the connection broke after the request was sent
│   ├── GatewayGarbled          a reply that cannot be read
│   └── AnswerWithheld          the model refused, failed or said nothing
│       └── ResponseCancelled       the response was cancelled at the API
└── TransportClosed             the client has gone away

Errors carry facts, and `str(error)` is a sentence for the user, made from them. Nothing rewrites it later. Only the
server knows the codes on the wire.
"""

from openai_responses_mcp.domain.texts import Sentence

# A longer Retry-After is not waited for.
LONGEST_RETRY_AFTER_SECONDS = 60.0


class AnsweringError(Exception):
    """The root. `str(error)` says what went wrong and what to do; `sentence` can be translated."""

    @property
    def sentence(self) -> str:
        said: str = self.args[0]
        return said


class RequestError(AnsweringError):
    """The request or the configuration is wrong."""


class InvalidArguments(RequestError):
    """The reason names the field and what it takes."""


class ProfileMissing(RequestError):
    """The configuration removes the `answer` profile."""


class KeyUnusable(RequestError):
    """There is no key, or it contains characters that a header cannot contain."""


class KeyMissing(KeyUnusable):
    """The variable for the key is not set."""


class CallInFlight(RequestError):
    """Two calls with one id cannot be distinguished."""


class GatewayError(AnsweringError):
    """A failed attempt to get a reply; `retries` counts the attempts made before the last one.

    `what_happened` is the message without the advice to ask again, for a response that can still be fetched. An error with a
    `cause` has the facts of that one.
    """

    is_worth_repeating = False

    def __init__(
        self,
        message: str,
        *,
        what_happened: str | None = None,
        status: int | None = None,
        kind: str | None = None,
        code: str | None = None,
        name: str | None = None,
        body: str = "",
        retry_after_seconds: float | None = None,
        cause: "GatewayError | None" = None,
    ) -> None:
        super().__init__(message)
        self.what_happened = message if what_happened is None else what_happened
        self.status = status
        self.kind = kind
        self.code = code
        self.name = name or type(self).__name__
        self.body = body
        self.retry_after_seconds = retry_after_seconds
        self.retries = 0
        if cause is not None:
            self.status, self.kind, self.code = cause.status, cause.kind, cause.code
            self.name, self.body = cause.name, cause.body

    def __str__(self) -> str:
        return str(self.sentence)

    @property
    def facts(self) -> dict[str, object]:
        """For the log."""
        return {"status": self.status, "code": self.code, "type": self.kind, "name": self.name, "body": self.body}

    @property
    def sentence(self) -> str:
        message = super().sentence
        if self.is_worth_repeating and self.demands_long_wait:
            seconds = f"{self.retry_after_seconds:.0f}"
            return Sentence("Ask again in {seconds} s, as the API demands. {message}", seconds=seconds, message=message)
        return message

    @property
    def demands_long_wait(self) -> bool:
        """True if the API demands a longer wait than we accept."""
        return self.retry_after_seconds is not None and self.retry_after_seconds > LONGEST_RETRY_AFTER_SECONDS


class GatewayTimeout(GatewayError):
    """The attempt took longer than it may."""


class StillRunning(GatewayError):
    """The reply can be fetched later with the id. `reason` says why it is not here."""

    def __init__(self, reason: str, *, response_id: str, cause: GatewayError | None = None) -> None:
        super().__init__(
            Sentence(
                "{reason} The research goes on at the API as {response_id}."
                " Fetch it later: openai-responses-mcp --fetch {response_id}",
                reason=reason,
                response_id=response_id,
            ),
            cause=cause,
        )
        self.reason = reason
        self.response_id = response_id


class GatewayUnreachable(GatewayError):
    """Nothing was sent, so nothing can have been billed."""

    is_worth_repeating = True


class GatewayOverloaded(GatewayError):
    """The API is busy or in trouble."""

    is_worth_repeating = True


class GatewayRefused(GatewayError):
    """The API rejects this request."""


class PreviousResponseLost(GatewayRefused):
    """`previous_response_id` leads nowhere."""


class ResponseLost(GatewayRefused):
    """Unknown to the API, of another account, or no longer kept."""


class GatewayBroken(GatewayError):
    """The request may have been processed and billed, so it is not sent again."""


class GatewayGarbled(GatewayError):
    """Truncated, empty, not JSON, or of an unknown shape."""


class AnswerWithheld(GatewayError):
    """A valid reply without an answer."""


class ResponseCancelled(AnswerWithheld):
    """It was cancelled before it was finished."""


class TransportClosed(AnsweringError):
    """The client has closed the connection."""


PASSING_TROUBLE = (GatewayTimeout, GatewayUnreachable, GatewayOverloaded, GatewayBroken)
"""Trouble that may have passed with the next request. A background response continues meanwhile."""
