"""What a text may hold, depending on where it goes: to a wire, to a terminal, to a file, onto one line.

Only what does harm is touched. Blanks of other scripts, joiners of emoji and marks of direction are part of a text.
"""

import re

# Patterns as text, which `re` compiles with the first use: they stand on the way to the first reply.
_LONE_SURROGATE = "[\ud800-\udfff]"
# Controls but for tab and newline, and what turns the direction of a text around.
_STEERING = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_BREAKING = "[\t\n\u2028\u2029]"


def without_surrogates(text: str) -> str:
    """Half a surrogate pair has no UTF-8 and becomes U+FFFD."""
    # Trying to encode is many times quicker than looking for one, and there is hardly ever one.
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub(_LONE_SURROGATE, "\ufffd", text)
    return text


def visible(text: str) -> str:
    """For a terminal: what would steer it is written as an escape."""
    return re.sub(_STEERING, _escaped, _plain_line_ends(text))


def harmless(text: str) -> str:
    """For a file or a pipe: the same text, less what would steer a terminal later."""
    return re.sub(_STEERING, "", _plain_line_ends(text))


def one_line(text: str) -> str:
    """For a message on a line of its own: line ends, tabs and what would steer a terminal become blanks."""
    return re.sub(_BREAKING, " ", re.sub(_STEERING, " ", without_surrogates(text)))


def _plain_line_ends(text: str) -> str:
    return without_surrogates(text).replace("\r\n", "\n")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
