"""Whether some globs cover others, which tells the rules that can never apply.

A glob is walked letter by letter, as the set of places in it that may have been reached. All globs are walked at once
over every letter that any of them tells apart from others.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

NAMES_OF_TOOLS = "?*/?*"

# Beyond this the answer is no: a rule is reported only if it certainly never applies.
_MOST_STATES = 2000

# The steps of a glob, and the places in each of several globs that may have been reached.
_Glob = tuple[str, ...]
_Places = tuple[frozenset[int], ...]

_FOR_MANY = ("?", "[")
_UNUSUAL = "\U0010fffd"


def is_covered(all_of: Sequence[str], any_of: Sequence[str]) -> bool:
    """Whether every text that fits all of the first fits one of the second. Without a second: whether none fits."""
    if any(_is_uncovered(text, all_of, any_of) for text in _examples(all_of[0])):
        return False
    wanted, cover = [_steps(glob) for glob in all_of], [_steps(glob) for glob in any_of]
    letters = _letters([*wanted, *cover])
    start = (_started(wanted), _started(cover))
    seen, queue = {start}, deque([start])
    while queue:
        reached, covering = queue.popleft()
        if _are_at_end(wanted, reached) and not _is_one_at_end(cover, covering):
            return False
        for letter in letters:
            # What some glob of the first kind does not fit needs no cover.
            if all(further := _after(wanted, reached, letter)):
                after = (further, _after(cover, covering, letter))
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
        if len(seen) > _MOST_STATES:
            return False
    return True


def _examples(glob: str) -> Iterator[str]:
    """Texts with something unusual for each wildcard: one that is not covered is nearly always among them."""
    for unusual in (_UNUSUAL, f"{_UNUSUAL}/{_UNUSUAL}"):
        yield glob.replace("*", unusual).replace("?", _UNUSUAL)


def _is_uncovered(text: str, all_of: Sequence[str], any_of: Sequence[str]) -> bool:
    return all(fnmatchcase(text, glob) for glob in all_of) and not any(fnmatchcase(text, glob) for glob in any_of)


def _steps(glob: str) -> _Glob:
    """One star, or a glob for one letter each, cut as `fnmatch` reads it."""
    steps, at = [], 0
    while at < len(glob):
        end = _end_of_set(glob, at) if glob[at] == "[" else at + 1
        steps.append(glob[at:end])
        at = end
    return tuple(steps)


def _end_of_set(glob: str, at: int) -> int:
    first = at + 2 if glob[at + 1 : at + 2] == "!" else at + 1
    closing = glob.find("]", first + 1)
    return at + 1 if closing < 0 else closing + 1


def _letters(globs: Iterable[_Glob]) -> list[str]:
    """The letters in the globs and their neighbours: every other letter is treated like one of these."""
    written = {ord(letter) for glob in globs for step in glob for letter in step}
    near = {code + step for code in written for step in (-1, 0, 1)}
    return [chr(code) for code in sorted(near) if 0 <= code <= 0x10FFFF]


def _started(globs: Iterable[_Glob]) -> _Places:
    return tuple(_with_stars_left_out(glob, {0}) for glob in globs)


def _after(globs: Iterable[_Glob], places: _Places, letter: str) -> _Places:
    return tuple(_further(glob, reached, letter) for glob, reached in zip(globs, places, strict=True))


def _further(glob: _Glob, reached: frozenset[int], letter: str) -> frozenset[int]:
    places = set()
    for place in reached:
        step = glob[place] if place < len(glob) else ""
        if step == "*":
            places.add(place)
        elif step == letter or (step[:1] in _FOR_MANY and fnmatchcase(letter, step)):
            places.add(place + 1)
    return _with_stars_left_out(glob, places)


def _with_stars_left_out(glob: _Glob, places: set[int]) -> frozenset[int]:
    """A star may stand for nothing."""
    for place in sorted(places):
        while place < len(glob) and glob[place] == "*":
            place += 1
            places.add(place)
    return frozenset(places)


def _are_at_end(globs: Iterable[_Glob], places: _Places) -> bool:
    return all(len(glob) in reached for glob, reached in zip(globs, places, strict=True))


def _is_one_at_end(globs: Iterable[_Glob], places: _Places) -> bool:
    return any(len(glob) in reached for glob, reached in zip(globs, places, strict=True))
