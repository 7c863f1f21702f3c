"""`--init`: a configuration file to start from. All it changes is where searches come from."""

import os
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from openai_responses_mcp.adapters.clocks import clock_in, system_zone
from openai_responses_mcp.config.loading import default_paths, expanded
from openai_responses_mcp.config.settings import SearchSettings

STARTER = """\
# The configuration of openai-responses-mcp. What is commented out shows the default: remove "# " and change it.
# What else there is: https://github.com/uchimanajet7/openai-responses-mcp/blob/main/docs/reference/config-reference.md
# What counts in the end: openai-responses-mcp --show-config
# The API key never goes in here. It comes from the environment: set OPENAI_API_KEY.

model_profiles:
  answer:                          # the others take from it what they do not say themselves
    model: gpt-5.2
    # reasoning_effort: medium     # none, low, medium, high, xhigh, max
    # verbosity: medium            # low, medium, high
  # answer_detailed:
  #   model: gpt-5.2
  #   reasoning_effort: medium
  # answer_quick:
  #   model: gpt-5.2
  #   reasoning_effort: medium

search:
  user_location:                   # without it the API searches as if from the United States
    timezone: Asia/Tokyo           # as search.timezone; country, region and city can be added
  # timezone: Asia/Tokyo           # where "today" is today, such as Europe/Berlin
  # defaults:
  #   recency_days: 60             # how old sources may be
  #   max_results: 5               # 1 to 10
  #   domains: []                  # sites to prefer, such as [example.org]

# policy:
#   max_citations: 3               # 1 to 10 sources with an answer

# request:
#   timeout_ms: 300000             # for one attempt
#   max_retries: 3                 # 0 to 10
#   store: true                    # false: the API keeps nothing, and conversations cannot be continued

# server:
#   debug: false                   # log to stderr
#   tools: [answer, answer_detailed, answer_quick]
"""


def init(path: str | None, environ: Mapping[str, str]) -> int:
    """The exit code: 0 with the file written, 1 where that is not possible. A file that is there stays as it is."""
    target = default_paths(environ)[0] if path is None else expanded(path, environ)
    try:
        os.makedirs(os.path.dirname(target) or os.curdir, exist_ok=True)
        with open(target, "x", encoding="utf-8") as file:
            file.write(STARTER)
    except (OSError, ValueError) as exc:
        if isinstance(exc, FileExistsError) and os.path.lexists(target):
            sys.stderr.write(f"openai-responses-mcp: {target} is there already and was left as it is\n")
            return 1
        reason = exc.strerror if isinstance(exc, OSError) else exc
        sys.stderr.write(f"openai-responses-mcp: {target} cannot be written ({reason})\n")
        return 1
    sys.stdout.write(f"{target} written. Change what you like, then check it: openai-responses-mcp --doctor\n")
    apart = maybe_days_apart(SearchSettings().timezone, environ)
    if apart is not None:
        sys.stdout.write(f"{apart.text} To use your own day, change both time zones in the file.\n")
    return 0


class DaysApart(NamedTuple):
    """`is_now`: the dates differ at this moment."""

    text: str
    is_now: bool


def maybe_days_apart(timezone: str, environ: Mapping[str, str], there: datetime | None = None) -> DaysApart | None:
    """What there is to say if `search.timezone` and this machine do not share the same "today" all day long."""
    zone, name = system_zone(environ)
    there = there or clock_in(timezone).now()
    here = there.astimezone(zone)
    apart = (there.utcoffset() or timedelta()) - (here.utcoffset() or timedelta())
    if not apart:
        return None
    called = f" ({name})" if name else ""
    if there.date() != here.date():
        text = f'"today" is {there.date()} in {timezone} (search.timezone), and {here.date()} on this machine{called}.'
        return DaysApart(text, is_now=True)
    hours = f"{abs(apart.total_seconds()) / 3600:g}"
    text = f'"today" is that of {timezone} (search.timezone), which differs from this machine\'s{called} {hours} hours a day.'
    return DaysApart(text, is_now=False)
