"""Which settings a model takes, told by the number in its id, so that a model of next year is served on its first day.

A gateway may put `openai/` before the id. What follows the number (`.2`, `-mini`, a date) does not matter.
"""

import re

_GPT_FROM_5 = re.compile(r"(?:openai/)?gpt-(?:[5-9]|[1-9][0-9])")
_O_FROM_3 = re.compile(r"(?:openai/)?o(?:[3-9]|[1-9][0-9])")


def takes_verbosity(model: str) -> bool:
    return _GPT_FROM_5.match(model) is not None


def takes_effort(model: str) -> bool:
    return takes_verbosity(model) or _O_FROM_3.match(model) is not None
