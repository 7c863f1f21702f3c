"""Runs the tests of one module again and again, each time in a fork, so that little is imported or collected twice.

    python -m tests.tools.mutant_tests

Each line on stdin is an order, `[name of a method of TestRuns, its arguments]` as JSON; the exit code of pytest, or -1
after too long, is a line on stdout.

A process that has imported everything but our own code forks another, which imports the code under test too and collects
its tests. For each mutant that one forks; the fork gives every function the code that stands in the file by now, and runs
the chosen tests. If the mutant is no change to a function, as with a table or a default, a fork of the first process
imports and collects anew.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple, NoReturn

import coverage
import pytest
from hypothesis import Phase, settings

# `agents` because pytest itself imports it on its way to a folder of that name.
SLOW_IMPORTS = ("agents", "hypothesis.strategies", "psycopg", "pytest_asyncio.plugin", "pytest_timeout", "sqlalchemy")
OURS = ("openai_responses_mcp", "tests", "conftest")
OPTIONS = (
    *("-x", "-q", "-m", "not slow", "--assert=plain", "--hypothesis-seed=0", "--hypothesis-profile=impatient"),
    *("-p", "asyncio", "-p", "timeout", "-p", "hypothesispytest", "-p", "no:cacheprovider", "--basetemp=tmp"),
)
NOT_A_FUNCTION = 99
"""The exit code if no function has another code with the mutant."""
NOTES = Path("notes.json")
FAILED = Path("failed.txt")
"""The tests that have failed in the last try."""
_LOOK_SECONDS = 0.005


class Module(NamedTuple):
    file: str
    name: str
    tests: list[str]
    test_seconds: int


class Try(NamedTuple):
    """With no tests, all are run."""

    tests: list[str]
    limit_seconds: float
    to_the_end: bool = False
    has_mutant: bool = True


class TestRuns:
    __test__ = False

    def __init__(self) -> None:
        self._module = Module("", "", [], 0)
        self._ready: Connection | None = None

    def reach(self, module: list[object], limit_seconds: float) -> int:
        """Write down what is imported, and which tests reach which lines, the fastest test first."""
        self._module = Module(*module)  # type: ignore[arg-type]
        return self._fresh(_Reaching(self._module), self._module.test_seconds, limit_seconds)

    def make_ready(self, module: list[object], imported: list[str]) -> int:
        self._module = Module(*module)  # type: ignore[arg-type]
        for name in imported:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        gc.freeze()  # What is imported is not garbage; looking at it again in each fork takes time.
        if self._ready:
            self._ready.close()
            os.wait()
        self._ready, orders = Pipe()
        if os.fork() == 0:
            self._ready.close()
            _leave_with_tests(self._module, _Ready(self._module, orders), self._module.test_seconds)
        orders.close()
        return int(self._ready.recv())

    def attempt(self, order: list[object]) -> int:
        assert self._ready is not None
        self._ready.send(Try(*order))  # type: ignore[arg-type]
        return int(self._ready.recv())

    def attempt_fresh(self, order: list[object], test_seconds: int) -> int:
        one = Try(*order)  # type: ignore[arg-type]
        return self._fresh(_Choosing(one), test_seconds, one.limit_seconds)

    def _fresh(self, plugin: object, test_seconds: int, limit_seconds: float) -> int:
        child = os.fork()
        if child == 0:
            _leave_with_tests(self._module, plugin, test_seconds)
        return _exit_code(child, limit_seconds)


class _Choosing:
    def __init__(self, order: Try) -> None:
        self.order = order

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        found = {item.nodeid: item for item in session.items}
        if self.order.tests and found.keys() >= set(self.order.tests):
            session.items[:] = [found[test] for test in self.order.tests]
        if self.order.to_the_end:
            session.config.option.maxfail = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with FAILED.open("a") as failed:
                failed.write(f"{report.nodeid}\n")


class _Ready(_Choosing):
    """Holds the collected tests; a fork goes on with those of an order."""

    def __init__(self, module: Module, orders: Connection) -> None:
        self._module, self._orders = module, orders

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        importlib.import_module(self._module.name)
        original, functions = _code_in(self._module.file), _functions_of(self._module.file)
        self._orders.send(session.testsfailed)
        with contextlib.suppress(EOFError):
            while True:
                self.order = self._orders.recv()
                child = os.fork()
                if child == 0:
                    self._put_in_place(original, functions)
                    return super().pytest_runtestloop(session)
                self._orders.send(_exit_code(child, self.order.limit_seconds))
        os._exit(0)

    def _put_in_place(self, original: CodeType, functions: dict[CodeType, list[FunctionType]]) -> None:
        code = NOT_A_FUNCTION if self.order.has_mutant else 0
        try:
            for before, after in _changed(original, _code_in(self._module.file)):
                for function in functions.get(before, ()):
                    function.__code__, code = after, 0
        except ValueError:  # Other variables are bound from around it.
            code = NOT_A_FUNCTION
        if code:
            os._exit(code)


class _Reaching:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._measured = coverage.Coverage(data_file=None, include=[module.file], config_file=False)
        self._seconds: dict[str, float] = {}
        self._measured.start()
        self._measured.switch_context("import")

    def pytest_collection_finish(self) -> None:
        importlib.import_module(self._module.name)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._measured.switch_context(item.nodeid)
        started = time.monotonic()
        done = yield
        self._seconds[item.nodeid] = time.monotonic() - started
        self._measured.switch_context("import")
        return done

    def pytest_sessionfinish(self) -> None:
        self._measured.stop()
        tests = sorted(self._seconds, key=self._seconds.__getitem__)
        place = {test: number for number, test in enumerate(("", "import", *tests))}
        lines = self._measured.get_data().contexts_by_lineno(self._module.file)
        reached = {line: sorted(by, key=place.__getitem__) for line, by in lines.items()}
        imported = [
            name
            for name, one in sys.modules.items()
            if name.split(".")[0] not in OURS and getattr(one, "__spec__", None)
        ]
        NOTES.write_text(json.dumps({"reached": reached, "tests": tests, "imported": imported}))


def _code_in(file: str) -> CodeType:
    return compile(Path(file).read_text("utf-8"), file, "exec", dont_inherit=True)


def _functions_of(file: str) -> dict[CodeType, list[FunctionType]]:
    """The functions that there are, by their code; most are made by `def`, but decorators and closures hold some too."""
    found: dict[CodeType, list[FunctionType]] = {}
    gc.unfreeze()  # The frozen are not listed.
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == file:
            found.setdefault(one.__code__, []).append(one)
    gc.freeze()
    return found


def _changed(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """What differs, and all that it is in."""
    if before == after:
        return
    yield before, after
    inner = [[one for one in code.co_consts if isinstance(one, CodeType)] for code in (before, after)]
    names = [[(one.co_qualname, one.co_firstlineno) for one in some] for some in inner]
    if names[0] == names[1]:
        for one, other in zip(*inner, strict=True):
            yield from _changed(one, other)


def _leave_with_tests(module: Module, plugin: object, test_seconds: int) -> NoReturn:
    code = 1
    try:
        code = pytest.main([*OPTIONS, f"--timeout={test_seconds}", *module.tests], plugins=[plugin])
    finally:
        os._exit(code)


def _exit_code(child: int, limit_seconds: float) -> int:
    deadline = time.monotonic() + limit_seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_LOOK_SECONDS)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def main() -> None:
    orders, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    # One counterexample is enough; making it smaller would only take time. What was found for one mutant says nothing about the next.
    settings.register_profile(
        "impatient", max_examples=200, phases=[Phase.explicit, Phase.generate], deadline=None, database=None
    )
    for name in SLOW_IMPORTS:
        importlib.import_module(name)
    runs = TestRuns()
    for line in orders:
        name, arguments = json.loads(line)
        answers.write(f"{getattr(runs, name)(*arguments)}\n")
        answers.flush()


if __name__ == "__main__":
    main()
