"""What goes wrong at a provider, as an `AgentsError`: `FAILURES` says which."""

import httpx2
import openai
from agents import UserError

from openai_responses_mcp.agents.adapters.models.reply_bounds import ReplyTooLong, StreamCutShort
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.providers.settings import TIMEOUT_VARIABLE, CompatModelConfig
from openai_responses_mcp.domain.masking import SecretMask

LONGEST_REASON = 300


_CONFIG, _COMPAT, RUNNER_CODE = "AGENTS-E-PROVIDER-CONFIG", "AGENTS-E-COMPAT-UNSUPPORTED", "AGENTS-E-RUNNER"

FAILURES: tuple[tuple[type[Exception], str, str, str], ...] = (
    (TimeoutError, _CONFIG, "timeout", f"did not answer in time; raise {TIMEOUT_VARIABLE} or try again"),
    (openai.APITimeoutError, _CONFIG, "timeout", f"did not answer in time; raise {TIMEOUT_VARIABLE} or try again"),
    (openai.APIConnectionError, _CONFIG, "network_error", "cannot be reached; check {base_url_variable}"),
    (openai.AuthenticationError, _CONFIG, "key", "does not take the key; check {key_variable}"),
    (openai.PermissionDeniedError, _CONFIG, "key", "does not let this key do that; check {key_variable}"),
    (
        openai.NotFoundError,
        _CONFIG,
        "not_found",
        "knows no such model or address; check {model_variable}, {base_url_variable}",
    ),
    (openai.BadRequestError, _COMPAT, "refused", "refuses the request; change what it names, or use another model"),
    (openai.UnprocessableEntityError, _COMPAT, "refused", "refuses the request; change what it names"),
    (UserError, _COMPAT, "refused", "cannot be asked that; change the agent or its model settings"),
    (openai.RateLimitError, RUNNER_CODE, "overloaded", "is asked too often; wait, or raise its limits"),
    (openai.APIStatusError, RUNNER_CODE, "http_error", "failed; try again, or check {base_url_variable}"),
    (openai.APIError, RUNNER_CODE, "broken", "broke off or sent what cannot be read; try again"),
    (openai.OpenAIError, RUNNER_CODE, "broken", "sent what cannot be read; check {base_url_variable}"),
    (httpx2.TimeoutException, _CONFIG, "timeout", f"stopped answering; raise {TIMEOUT_VARIABLE} or try again"),
    (httpx2.HTTPError, RUNNER_CODE, "broken", "broke off; try again"),
    (StreamCutShort, RUNNER_CODE, "broken", "stopped in the middle of its answer; try again"),
    (ReplyTooLong, RUNNER_CODE, "broken", "sends more than any answer can be; check {base_url_variable}"),
    (ValueError, RUNNER_CODE, "broken", "sent what cannot be read; check {base_url_variable}"),
)
"""The first class that fits decides. ValueError covers JSON and UTF-8 that cannot be decoded."""


def failure_from(exc: Exception, config: CompatModelConfig, mask: SecretMask) -> AgentsError:
    if isinstance(exc.__cause__, ReplyTooLong):
        # The vendor takes it for a connection that failed.
        exc = exc.__cause__
    code, reason, said = next((code, reason, said) for kind, code, reason, said in FAILURES if isinstance(exc, kind))
    status = getattr(exc, "status_code", None)
    detail = mask(str(exc))[:LONGEST_REASON]
    message = f"{config.provider} {said.format(**_variables(config))}"
    facts = {"provider": config.provider, "reason": reason, **({} if status is None else {"status": status})}
    failure = AgentsError(code, f"{message} ({detail})" if detail else message, details=facts)
    failure.__cause__ = exc if mask(f"{exc!r} {exc}") == f"{exc!r} {exc}" else None
    return failure


def _variables(config: CompatModelConfig) -> dict[str, str]:
    return {name: getattr(config, name) for name in ("key_variable", "base_url_variable", "model_variable")}
