"""A pattern of a JSON Schema for an engine of linear time.

Schemas hold regular expressions of ECMA-262, in its Unicode mode. The engine (the port `Patterns`) writes most of them
the same way, but means something else by `\\d`, `\\w`, `\\s`, `.` and `\\b`. So a pattern is read here and written out again
for the engine, piece by piece. What the engine has no word for (look-around, references to groups) or would read in
another way cannot be tried.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Protocol

LONGEST_PATTERN = 2_000
# The engine writes counted repetitions out; this bounds how many places of a pattern it can be at.
LARGEST_PATTERN = 5_000

_ESCAPE = (
    r"\\(?:[dDwWsS]|[pP]\{[A-Za-z0-9_=]+\}|[tnvfr]|0(?![0-9])|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[dD][89abAB][0-9A-Fa-f]{2}"
    r"\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|[^\w\s])"
)
_PIECE = re.compile(
    rf"(?P<repeat>(?:[*+?]|\{{(?P<least>\d{{1,4}})(?P<comma>,(?P<most>\d{{1,4}})?)?\}})\??)"
    r"|(?P<open>\((?:\?:|\?<[A-Za-z_$][\w$]*>|(?!\?)))|(?P<close>\))|(?P<edge>[|^$]|\\b)"
    rf"|(?P<set>\[(?P<negated>\^?+)(?P<parts>(?:{_ESCAPE}|\\b|[^\\\]])+)\])|(?P<one>\.|{_ESCAPE}|[^\\(){{}}\[\]*+?])",
    re.DOTALL,
)
_PART = re.compile(rf"(?P<first>{_ESCAPE}|\\b|[^\\])(?:-(?P<last>{_ESCAPE}|\\b|[^\\]))?", re.DOTALL)
_EDGES = {"|": "|", "^": r"\A", "$": r"\z", r"\b": r"(?-u:\b)"}
_ANY_LETTER = r"[^\n\r\x{2028}\x{2029}]"
_SPACES = r"\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}"
_SETS = {"d": "0-9", "w": "A-Za-z0-9_", "s": _SPACES}
_CONTROLS = {"b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}


class Patterns(Protocol):
    def compile(self, pattern: str) -> Callable[[str], bool]:
        """True if the whole text matches, in time that grows no faster than the text. Raises ValueError."""


class UnreadablePattern(ValueError):
    """The engine cannot try this pattern, or would understand something else."""


class SearchedPattern(NamedTuple):
    """`is_in` is true of a text that holds a match. `size` bounds the work for each of its characters."""

    is_in: Callable[[str], bool]
    size: int


class SchemaPatterns:
    """Patterns, translated and compiled once. Without an engine none can be read."""

    def __init__(self, engine: Patterns | None = None) -> None:
        self._engine = engine
        self.read = lru_cache(maxsize=1_000)(self._read)

    def _read(self, pattern: str) -> SearchedPattern | None:
        """None for a pattern that cannot be tried."""
        if self._engine is None:
            return None
        try:
            translated, size = translate(pattern)
            return SearchedPattern(self._engine.compile(f"(?s:.*)(?:{translated})(?s:.*)"), size)
        except ValueError:
            return None


def translate(pattern: str) -> tuple[str, int]:
    """The pattern as the engine writes it, and how large it is. Raises `UnreadablePattern`."""
    written: list[str] = []
    sizes = [1]  # of the open groups, the outermost first
    last = 0  # the size of what a repetition would repeat; 0 where there is nothing to repeat
    place = 0
    while place < len(pattern):
        piece = _PIECE.match(pattern, place)
        if piece is None or len(pattern) > LONGEST_PATTERN or sizes[-1] > LARGEST_PATTERN:
            raise UnreadablePattern
        place = piece.end()
        repeated, last = last, 0
        match piece.lastgroup:
            case "repeat":
                if not repeated:
                    raise UnreadablePattern
                times = max(int(piece["most"] or 0), int(piece["least"] or 0) + (piece["comma"] is not None), 1)
                sizes[-1] += repeated * (times - 1)
                written.append(piece[0])
            case "open":
                sizes.append(1)
                written.append("(?:")
            case "close":
                if len(sizes) == 1:
                    raise UnreadablePattern
                last = sizes.pop()
                sizes[-1] += last
                written.append(")")
            case "edge":
                written.append(_EDGES[piece[0]])
            case _:
                last = 1
                sizes[-1] += 1
                written.append(_one_letter(piece))
    if len(sizes) > 1 or sizes[0] > LARGEST_PATTERN:
        raise UnreadablePattern
    return "".join(written), sizes[0]


def _one_letter(piece: re.Match[str]) -> str:
    """A letter, or a set in square brackets: letters, ranges, and other sets."""
    if not piece["parts"]:
        return _ANY_LETTER if piece[0] == "." else _letter_or_set(piece[0])
    written: list[str] = []
    for part in _PART.finditer(piece["parts"]):
        ends = [_letter_or_set(end) for end in (part["first"], part["last"]) if end]
        if len(ends) == 2 and any(end.startswith(("[", r"\p", r"\P")) for end in ends):
            raise UnreadablePattern
        written.append("-".join(ends))
    return f"[{piece['negated']}{''.join(written)}]"


def _letter_or_set(text: str) -> str:
    if len(text) == 1:
        return _exactly(ord(text))
    kind, rest = text[1], text[2:]
    if kind in "pP":
        return text
    if kind.lower() in _SETS:
        return f"[{'^' if kind.isupper() else ''}{_SETS[kind.lower()]}]"
    if kind in _CONTROLS:
        return _exactly(_CONTROLS[kind])
    if kind == "c":
        return _exactly(ord(rest) % 32)
    if kind not in "xu":
        return _exactly(ord(kind))
    high, _, low = rest.partition("\\u")
    code = int(high.strip("{}"), 16)
    return _exactly(0x10000 + (code % 0x400) * 0x400 + int(low, 16) % 0x400 if low else code)


def _exactly(code: int) -> str:
    return chr(code) if code < 128 and chr(code).isalnum() else rf"\x{{{code:X}}}"
