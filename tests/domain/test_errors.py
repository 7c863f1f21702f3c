import inspect

from openai_responses_mcp.domain import errors
from openai_responses_mcp.domain.errors import GatewayError, StillRunning

ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
FAILURES_WORTH_REPEATING = {"GatewayUnreachable", "GatewayOverloaded"}


def test_only_busy_and_unreachable_gateways_are_worth_asking_again() -> None:
    failures = [kind for kind in ERRORS if issubclass(kind, GatewayError)]
    assert {kind.__name__ for kind in failures if kind.is_worth_repeating} == set(FAILURES_WORTH_REPEATING)


def test_what_still_runs_says_how_to_fetch_it_and_keeps_the_facts_of_what_went_wrong() -> None:
    cause = GatewayError("busy", status=429, kind="rate_limit", code="slow_down", name="RateLimitError", body="{}")
    error = StillRunning("Too slow.", response_id="resp_1", cause=cause)
    assert str(error) == (
        "Too slow. The research goes on at the API as resp_1. Fetch it later: openai-responses-mcp --fetch resp_1"
    )
    assert (error.status, error.kind, error.code) == (429, "rate_limit", "slow_down")
    assert (error.name, error.body) == ("RateLimitError", "{}")
