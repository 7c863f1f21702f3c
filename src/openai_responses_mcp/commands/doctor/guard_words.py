"""A command line that starts the guard, taken apart: what is wrong in it, and the server that it guards."""

from collections.abc import Sequence
from typing import NamedTuple

from openai_responses_mcp.commands.usage import GUARDING

_OPTIONS = {option.flag: option for option in GUARDING}


class GuardWords(NamedTuple):
    """`server` is the command behind the guard, empty when there is none."""

    unknown_options: tuple[str, ...]
    server: tuple[str, ...]


def maybe_guard_words(own_words: Sequence[str]) -> GuardWords | None:
    """`own_words` follow the name of this program. None when they do not start the guard."""
    # `guard` is how it was started before it had a command of its own.
    words = own_words[1:] if list(own_words[:1]) == ["agents"] else own_words
    if list(words[:1]) != ["guard"]:
        return None
    rest, unknown = list(words[1:]), []
    # The same way as the guard reads them.
    while rest and rest[0] != "--" and rest[0].startswith("-"):
        flag, has_value, _ = rest.pop(0).partition("=")
        if flag not in _OPTIONS:
            unknown.append(flag)
        elif _OPTIONS[flag].value and not has_value:
            rest[:1] = []
    return GuardWords(tuple(unknown), tuple(rest[1:] if rest[:1] == ["--"] else rest))
