"""`--init`: write a configuration file to start from. It differs from the defaults only in `search.user_location`."""

import os
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from openai_responses_mcp.adapters.clocks import clock_in, system_zone
from openai_responses_mcp.commands.live import fitted
from openai_responses_mcp.commands.words import speaking
from openai_responses_mcp.config.loading import default_paths, expanded
from openai_responses_mcp.config.settings import SearchSettings
from openai_responses_mcp.domain.texts import Sentence

STARTER = """\
# The configuration of openai-responses-mcp. Lines that are commented out show the defaults: remove "# " to change one.
# All settings: https://github.com/uchimanajet7/openai-responses-mcp/blob/main/docs/reference/config-reference.md
# The settings in effect: openai-responses-mcp --show-config
# The API key never goes in here. It comes from the environment: set OPENAI_API_KEY.

model_profiles:
  answer:                          # the other two use its values unless they have their own
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
    timezone: Asia/Tokyo           # the same as search.timezone; you can add country, region and city
  # timezone: Asia/Tokyo           # the time zone of "today", such as Europe/Berlin
  # defaults:
  #   recency_days: 60             # how old sources may be
  #   max_results: 5               # 1 to 10
  #   domains: []                  # sites to prefer, such as [example.org]

# policy:
#   max_citations: 3               # sources per answer, 1 to 10

# request:
#   timeout_ms: 300000             # for one attempt
#   max_retries: 3                 # 0 to 10
#   store: true                    # false: the API keeps nothing, and conversations cannot be continued

# server:
#   debug: false                   # log to stderr
#   tools: [answer, answer_detailed, answer_quick]
"""


def init(path: str | None, environ: Mapping[str, str]) -> int:
    """Write the file. The exit code is 1 if it cannot be written; an existing file is never changed."""
    target = default_paths(environ)[0] if path is None else expanded(path, environ)
    say = speaking(environ)
    try:
        os.makedirs(os.path.dirname(target) or os.curdir, exist_ok=True)
        with open(target, "x", encoding="utf-8") as file:
            file.write(STARTER)
    except (OSError, ValueError) as exc:
        if isinstance(exc, FileExistsError) and os.path.lexists(target):
            problem = Sentence("{file} exists already and was not changed", file=target)
        else:
            reason = exc.strerror if isinstance(exc, OSError) else exc
            problem = Sentence("{file} cannot be written ({why})", file=target, why=reason)
        sys.stderr.write(fitted(f"openai-responses-mcp: {say(problem)}", sys.stderr))
        return 1
    written = Sentence("{file} written. Change what you like, then check it:", file=target)
    sys.stdout.write(fitted(say(written), sys.stdout, "openai-responses-mcp --doctor"))
    apart = maybe_days_apart(SearchSettings().timezone, environ)
    if apart is not None:
        change = Sentence("{apart} To use your own time zone, change both time zones in the file.", apart=apart.text)
        sys.stdout.write(fitted(say(change), sys.stdout))
    return 0


class DaysApart(NamedTuple):
    """`is_now`: the dates differ at this moment."""

    text: str
    is_now: bool


def maybe_days_apart(timezone: str, environ: Mapping[str, str], there: datetime | None = None) -> DaysApart | None:
    """A notice if the dates in `search.timezone` and on this machine differ for part of the day; None if they never do."""
    zone, name = system_zone(environ)
    there = there or clock_in(timezone).now()
    here = there.astimezone(zone)
    apart = (there.utcoffset() or timedelta()) - (here.utcoffset() or timedelta())
    if not apart:
        return None
    called = f" ({name})" if name else ""
    if there.date() != here.date():
        text = Sentence(
            '"today" is {there} in {timezone} (search.timezone), and {here} on this machine{called}.',
            there=there.date(),
            timezone=timezone,
            here=here.date(),
            called=called,
        )
        return DaysApart(text, is_now=True)
    text = Sentence(
        '"today" is the date in {timezone} (search.timezone).'
        " This machine{called} has another date for {hours} hours a day.",
        timezone=timezone,
        called=called,
        hours=f"{abs(apart.total_seconds()) / 3600:g}",
    )
    return DaysApart(text, is_now=False)
