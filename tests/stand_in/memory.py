"""What the stand-in remembers, within bounds: tests ask it a hundred thousand questions."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

from openai_responses_mcp.rehearsal.server import RehearsedRun
from openai_responses_mcp.rehearsal.wire import ApiError

_Kept = TypeVar("_Kept")


class Memory(Generic[_Kept]):
    """Of limited size: the oldest entry is forgotten first."""

    def __init__(self, max_remembered: int = 10_000) -> None:
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

    def __init__(self) -> None:
        self._counts = Memory[int]()

    def is_over(self, question: str, times: int | None) -> bool:
        """True if the question was already asked this many times. If not, counts this time."""
        if times is None:
            return False
        asked = self._counts.maybe_recall(question) or 0
        if asked >= times:
            return True
        self._counts.remember(question, asked + 1)
        return False


class StoredRuns:
    """The runs that can be asked for by id; each method raises ApiError in the words of the API."""

    def __init__(self) -> None:
        self._runs = Memory[RehearsedRun](1000)

    def keep(self, run: RehearsedRun) -> None:
        self._runs.remember(run.response["id"], run)

    def find(self, response_id: str) -> RehearsedRun:
        run = self._runs.maybe_recall(response_id)
        if run is None:
            raise ApiError(404, f"Response with id '{response_id}' not found.")
        return run

    def find_streamed(self, response_id: str) -> RehearsedRun:
        run = self.find(response_id)
        if not run.response["background"]:
            raise ApiError(400, "Only a response that was created in the background can be streamed.", param="stream")
        return run

    def cancel(self, response_id: str) -> RehearsedRun:
        run = self.find(response_id)
        if not run.response["background"]:
            raise ApiError(400, "Cannot cancel a synchronous response.")
        run.cancel()
        return run

    def stop(self) -> None:
        """Stop working on all of them."""
        for run in self._runs.all_kept():
            run.stop()
