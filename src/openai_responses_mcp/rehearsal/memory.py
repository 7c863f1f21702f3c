"""Memory of limited size: what was remembered first is forgotten first."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

MAX_REMEMBERED = 10_000

_Kept = TypeVar("_Kept")


class Memory(Generic[_Kept]):
    def __init__(self, max_remembered: int = MAX_REMEMBERED) -> None:
        self._max_remembered = max_remembered
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def maybe_recall(self, key: str) -> _Kept | None:
        return self._kept.get(key)

    def all_kept(self) -> Iterable[_Kept]:
        return self._kept.values()

    def remember(self, key: str, value: _Kept) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._max_remembered:
            self._kept.popitem(last=False)


class TimesAsked:
    """Counts how often each question was asked, for questions that ask for trouble a number of times."""

    def __init__(self, max_remembered: int = MAX_REMEMBERED) -> None:
        self._counts = Memory[int](max_remembered)

    def is_over(self, question: str, times: int | None) -> bool:
        """Whether the question has been asked this many times before; counts this time unless it has."""
        if times is None:
            return False
        asked = self._counts.maybe_recall(question) or 0
        if asked >= times:
            return True
        self._counts.remember(question, asked + 1)
        return False
