"""How long a token may live."""

import pytest

from openai_responses_mcp.gate.approvals.tokens import LONGEST_LIFETIME_SECONDS, lifetime_seconds
from openai_responses_mcp.gate.errors import AgentsError

VARIABLE = "AGENTS_RESUME_TOKEN_TTL_SEC"


@pytest.mark.parametrize(
    ("given", "environ", "seconds"),
    [
        (None, {}, 900),
        (None, {VARIABLE: " 60 "}, 60),
        (None, {VARIABLE: "000000000060"}, 60),
        (5, {VARIABLE: "60"}, 5),
        (1, {}, 1),
        (LONGEST_LIFETIME_SECONDS, {}, LONGEST_LIFETIME_SECONDS),
    ],
)
def test_the_lifetime_is_given_or_in_the_environment(given: int | None, environ: dict[str, str], seconds: int) -> None:
    assert lifetime_seconds(given, environ) == seconds


@pytest.mark.parametrize(
    ("given", "environ"),
    [
        (0, {}),
        (-1, {}),
        (1.5, {}),
        (True, {}),
        (LONGEST_LIFETIME_SECONDS + 1, {}),
        (10**100, {}),
        (None, {VARIABLE: "0000000000060"}),
        (None, {VARIABLE: ""}),
        (None, {VARIABLE: "soon"}),
        (None, {VARIABLE: "-5"}),
        (None, {VARIABLE: "９００"}),
        (None, {VARIABLE: "9" * 13}),
        (None, {VARIABLE: "9" * 5000}),
    ],
)
def test_a_lifetime_that_makes_no_sense_is_refused(given: int | None, environ: dict[str, str]) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG") as caught:
        lifetime_seconds(given, environ)
    assert caught.value.message == (
        f"resume_token_ttl_sec ({VARIABLE}) is a whole number of seconds from 1 to {LONGEST_LIFETIME_SECONDS}"
    )


def test_the_longest_lifetime_is_ten_years() -> None:
    assert LONGEST_LIFETIME_SECONDS == 315_360_000
