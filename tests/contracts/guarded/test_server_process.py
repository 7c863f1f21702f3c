"""What the guard may rely on from the process of the guarded server."""

import asyncio
import sys
from collections.abc import Awaitable, Iterator
from contextlib import closing

import pytest

from openai_responses_mcp.adapters.child_process import ChildProcess
from openai_responses_mcp.guard.lifetime import ServerProcess
from tests.fakes import SLOW_SECONDS
from tests.guard.fake_process import FakeProcess

READING = "import sys\nsys.stdin.read()"
STUBBORN = (
    "import signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "sys.stdout.write('ready'); sys.stdout.flush()\nwhile True: time.sleep(1)"
)


class Maker:
    """A process that exits when its input ends, one that exits with a code, and one that ignores signals."""

    def __init__(self, *, is_real: bool) -> None:
        self._is_real = is_real
        self._made: list[ChildProcess] = []

    def reading(self) -> ServerProcess:
        return self._python(READING) if self._is_real else FakeProcess()

    def exiting(self, code: int) -> ServerProcess:
        if self._is_real:
            return self._python(f"raise SystemExit({code})")
        made = FakeProcess()
        made.exit(code)
        return made

    def stubborn(self) -> ServerProcess:
        if not self._is_real:
            return FakeProcess(is_stubborn=True)
        made = self._python(STUBBORN)
        _wait_until_ready(made)
        return made

    def close(self) -> None:
        for one in self._made:
            one.close()

    def _python(self, code: str) -> ChildProcess:
        self._made.append(ChildProcess([sys.executable, "-c", code], {}))
        return self._made[-1]


def _wait_until_ready(process: ChildProcess) -> None:
    with open(process.wires[0], "rb", closefd=False) as output:
        assert output.read(5) == b"ready"


@pytest.fixture(params=[pytest.param(False, id="fake"), pytest.param(True, id="child")])
def make(request: pytest.FixtureRequest) -> Iterator[Maker]:
    with closing(Maker(is_real=request.param)) as maker:
        yield maker


async def within(work: Awaitable[int | None]) -> int | None:
    return await asyncio.wait_for(work, SLOW_SECONDS)


async def test_its_exit_code_is_returned(make: Maker) -> None:
    process = make.exiting(3)
    assert [await within(process.ended()), await within(process.ended()), await within(process.end())] == [3, 3, 3]


async def test_ending_closes_its_input_first(make: Maker) -> None:
    assert await within(make.reading().end()) == 0


async def test_a_process_that_ignores_signals_is_killed(make: Maker) -> None:
    assert await within(make.stubborn().end()) == 137
