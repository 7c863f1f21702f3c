"""Mutation testing: one small change at a time, and the tests of the module must notice.

    python -m tests.tools.mutants [--modules framer citations ...] [--share 1.0] [--jobs 2]

Works on a copy of the tree. A mutant is tried with the tests that reach its statement, the fastest first. One that runs
out of time is tried again when the others are done, alone and with more time; if it runs out of time again, it counts as
killed and is counted separately too.

The operators: a comparison becomes its neighbour (< and <=, == and !=, is and is not, in and not in), `and` and `or` change places, `not` is dropped, + and -, * and // change places, a whole number grows by one, a
text becomes another, True and False change places, a returned value becomes None, a condition is turned around, a loop
control (break, continue) or a call made for its effect is dropped. Docstrings, annotations and what is only for a person to read
(log lines, the reasons of faults) are left alone.

Which modules and tests: `mutant_tables`. Survivors that are known and explained stand in its `KNOWN_SURVIVORS`; any other survivor is listed, and fewer killed than
`LEAST_KILLED` fails the run.
"""

import argparse
import ast
import copy
import enum
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.tools.mutant_tables import KNOWN_SURVIVORS, MODULES

ROOT = Path(__file__).resolve().parents[2]
LEAST_KILLED = 0.90
LIMIT_SECONDS = 60.0
PATIENCE = 3
"""How much more time a mutant gets in its second try."""
PULSE_SECONDS = 20.0
NO_SUCH_TEST = 4
"""The exit code of pytest; also if a file of tests cannot be imported."""

Reached = dict[int, list[str]]


# One counterexample is enough; making it smaller would only take time. With `REACHED_BY`, which tests reach which lines of
# a file is written down, the fastest test first.
IMPATIENCE = """
import json, os, time
from pathlib import Path
import coverage, pytest
from hypothesis import Phase, settings
settings.register_profile("impatient", max_examples=200, phases=[Phase.explicit, Phase.generate], deadline=None)

if "REACHED_BY" in os.environ:
    file, notes = os.environ["REACHED_BY"].split(":")
    measured = coverage.Coverage(data_file=None, include=[file], config_file=False)
    seconds = {}
    measured.start()
    measured.switch_context("import")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(item):
        measured.switch_context(item.nodeid)
        started = time.monotonic()
        yield
        seconds[item.nodeid] = time.monotonic() - started
        measured.switch_context("import")

    def pytest_sessionfinish():
        measured.stop()
        lines = measured.get_data().contexts_by_lineno(file)
        Path(notes).write_text(json.dumps({line: sorted(by, key=lambda test: seconds.get(test, 0)) for line, by in lines.items()}))
"""


# What such a call is given is for a person to read.
_FOR_PEOPLE = {"debug", "warning", "error", "FramingFault", "_lose_track", "_fail", "CallInFlight", "cancel_all"}

# Of what these are given, only the text at this place is for a person; the code before it is not.
_MESSAGE_AT = {"AgentsError": 1, "_invalid": 0, "require": 2, "bad_token": 0, "schema_error": 0, "Sentence": 0}


OPTIONS = (
    *("-x", "-q", "-m", "not slow", "--assert=plain", "--hypothesis-seed=0", "--hypothesis-profile=impatient"),
    *("-p", "asyncio", "-p", "timeout", "-p", "hypothesispytest", "-p", "impatience", "-p", "no:cacheprovider"),
)


class Outcome(enum.Enum):
    KILLED = enum.auto()
    OUT_OF_TIME = enum.auto()
    SURVIVED = enum.auto()


class Mutant(NamedTuple):
    module: str
    line: int
    code: str
    change: str
    source: str
    lines: range
    """Of the statement."""


_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def changes_of(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Each change of this node alone: what it is called, and the node instead."""
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.Compare):
        for number, operator in enumerate(changed.ops):
            other = copy.deepcopy(changed)
            other.ops[number] = _COMPARISONS[type(operator)]()
            yield f"{type(operator).__name__} to {type(other.ops[number]).__name__}", other
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        yield "and/or", changed
    elif isinstance(changed, ast.UnaryOp) and isinstance(changed.op, ast.Not):
        yield "not dropped", changed.operand
    elif isinstance(changed, ast.BinOp | ast.AugAssign) and type(changed.op) in _ARITHMETIC:
        before = type(changed.op).__name__
        changed.op = _ARITHMETIC[type(changed.op)]()
        yield f"{before} to {type(changed.op).__name__}", changed
    elif isinstance(changed, ast.IfExp | ast.If | ast.While):
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        yield "condition turned", changed
    elif isinstance(changed, ast.Return) and changed.value is not None and not _is_none(changed.value):
        changed.value = ast.Constant(None)
        yield "returns None", changed
    elif isinstance(changed, ast.Break | ast.Continue):
        yield f"{type(changed).__name__.lower()} dropped", ast.Pass()
    elif isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Call):
        yield "call dropped", ast.Pass()
    elif isinstance(changed, ast.Constant):
        yield from _changes_of_constant(changed)


def _changes_of_constant(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield f"{value} to {not value}", ast.Constant(not value)
    elif isinstance(value, int):
        yield f"{value} to {value + 1}", ast.Constant(value + 1)
    elif isinstance(value, str):
        yield "another text", ast.Constant(value + "X" if value else "X")
    elif isinstance(value, bytes):
        yield "other bytes", ast.Constant(value + b"X" if value else b"X")


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_for_people(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name_of(node) in _FOR_PEOPLE


def _is_message(call: ast.AST, child: ast.AST) -> bool:
    if not isinstance(call, ast.Call) or not isinstance(child, ast.Constant | ast.JoinedStr):
        return False
    place = _MESSAGE_AT.get(_name_of(call))
    return place is not None and call.args[place : place + 1] == [child]


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def places_in(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Every node that may be changed, with its parent and its place there."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "type_comment", "decorator_list", "bases") or isinstance(
            tree, ast.Import
        ):
            continue
        for number, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_skipped(tree, child):
                continue
            yield tree, field, number, child
            yield from places_in(child)


def _is_skipped(parent: ast.AST, child: ast.AST) -> bool:
    is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
    is_text_for_people = _is_for_people(parent) and isinstance(child, ast.Constant | ast.JoinedStr | ast.keyword)
    is_log_line = isinstance(child, ast.Expr) and _is_for_people(child.value)
    is_type_only = isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
    is_type_name = isinstance(child, ast.AnnAssign) and child.value is None
    is_type = isinstance(child, ast.Assign) and ast.unparse(child.value).startswith("Literal[")
    is_message = _is_message(parent, child)
    return is_docstring or is_text_for_people or is_log_line or is_type_only or is_type_name or is_type or is_message


def mutants_of(name: str, source: str, words: Sequence[str] = ()) -> Iterator[Mutant]:
    tree = ast.parse(source)
    lines = source.splitlines()
    tables = [one for one in tree.body if isinstance(one, ast.AnnAssign) and ast.unparse(one.target) in words]
    skipped = {id(node) for table in tables for node in ast.walk(table)}
    statements = _statements(tree)
    for parent, field, number, child in list(places_in(tree)):
        if id(child) in skipped:
            continue
        line = getattr(child, "lineno", getattr(parent, "lineno", 0))
        for change, other in changes_of(child):
            _put(parent, field, number, ast.copy_location(other, child))
            code = lines[line - 1].strip() if line else ""
            yield Mutant(name, line, code, change, _text(tree), statements.get(id(child), range(0)))
            _put(parent, field, number, child)


def _statements(tree: ast.AST) -> dict[int, range]:
    """By the id of a node, the lines of the statement that it is in; of an `if` or a loop, only its head."""
    found: dict[int, range] = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.stmt | ast.ExceptHandler):
            body = getattr(one, "body", None)
            end = body[0].lineno - 1 if isinstance(body, list) else one.end_lineno or one.lineno
            lines = range(one.lineno, max(end, one.lineno) + 1)
            found.update({id(node): lines for node in ast.walk(one)})
    return found


def _put(parent: ast.AST, field: str, number: int | None, node: ast.AST) -> None:
    if number is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[number] = node


def _text(tree: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(tree)))


class Workshop:
    """A copy of the tree in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self._root = folder
        # With the compiled files that are there: a mutant is newer than them, and no others are written.
        shutil.copytree(ROOT / "src", folder / "src")
        unwanted = shutil.ignore_patterns("node_modules", "bench")
        shutil.copytree(ROOT / "tests", folder / "tests", ignore=unwanted)
        shutil.copy(ROOT / "pyproject.toml", folder)
        (folder / "impatience.py").write_text(IMPATIENCE)
        self._tests = self._start()

    def _start(self, **variables: str) -> "subprocess.Popen[str]":
        path = os.pathsep.join([str(self._root / "src"), str(self._root)])
        quick = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.tools.mutant_tests"],
            cwd=self._root,
            env={**os.environ, **quick, "PYTHONPATH": path, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def reached_by(self, name: str) -> Reached:
        """By line, the tests that reach it without any mutant. All of them have to pass: else they would kill every mutant."""
        module, notes = MODULES[name], self._root / "reached.json"
        self.close()
        self._tests = self._start(REACHED_BY=f"{self._root / module.path}:{notes}")
        if self._run(module.tests, module.test_seconds * PATIENCE, LIMIT_SECONDS * PATIENCE) != 0:
            raise SystemExit(f"The tests of {name} fail without any mutant.")
        return {int(line): tests for line, tests in json.loads(notes.read_text()).items()}

    def outcome(self, mutant: Mutant, reached: Reached, patience: int = 1) -> Outcome:
        """Of the tests that reach the statement; of all tests, if it runs while it is imported."""
        module = MODULES[mutant.module]
        target = self._root / module.path
        original = target.read_text()
        target.write_text(mutant.source)
        chosen = [test for line in mutant.lines for test in reached.get(line, ())]
        seconds = (module.test_seconds * patience, LIMIT_SECONDS * patience)
        started = time.monotonic()
        try:
            code = NO_SUCH_TEST
            if chosen and "import" not in chosen:
                code = self._run(tuple(dict.fromkeys(chosen)), *seconds)
            code = self._run(module.tests, *seconds) if code == NO_SUCH_TEST else code
        finally:
            target.write_text(original)
        if code == 0:
            return Outcome.SURVIVED
        return Outcome.OUT_OF_TIME if time.monotonic() - started >= seconds[0] else Outcome.KILLED

    def _run(self, tests: tuple[str, ...], test_seconds: int, limit_seconds: float) -> int:
        # Each try has examples of its own; what was found for one mutant says nothing about the next.
        shutil.rmtree(self._root / ".hypothesis", ignore_errors=True)
        assert self._tests.stdin is not None
        assert self._tests.stdout is not None
        order = [limit_seconds, [*OPTIONS, f"--timeout={test_seconds}", *tests]]
        self._tests.stdin.write(json.dumps(order) + "\n")
        self._tests.stdin.flush()
        return int(self._tests.stdout.readline())

    def close(self) -> None:
        assert self._tests.stdin is not None
        self._tests.stdin.close()
        self._tests.wait(LIMIT_SECONDS)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def outcomes_of(name: str, mutants: list[Mutant], jobs: int) -> list[Outcome]:
    with TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        first = Workshop(Path(folder) / "first")
        reached = first.reached_by(name)
        first.close()
        workshops = [Workshop(Path(folder) / str(number)) for number in range(jobs)]
        free: SimpleQueue[Workshop] = SimpleQueue()
        for one in workshops:
            free.put(one)
        progress = _Progress(len(mutants))

        def outcome(mutant: Mutant) -> Outcome:
            workshop = free.get()
            try:
                return workshop.outcome(mutant, reached)
            finally:
                free.put(workshop)
                progress.step()

        outcomes = list(pool.map(outcome, mutants))
        for number, mutant in enumerate(mutants):
            if outcomes[number] is Outcome.OUT_OF_TIME:
                outcomes[number] = workshops[0].outcome(mutant, reached, PATIENCE)
                say(f"  out of time, then {outcomes[number].name}, line {mutant.line}, {mutant.change}: {mutant.code}")
        for one in workshops:
            one.close()
    return outcomes


class _Progress:
    def __init__(self, total: int) -> None:
        self._total, self._done, self._said = total, 0, time.monotonic()
        self._lock = threading.Lock()

    def step(self) -> None:
        with self._lock:
            self._done += 1
            if time.monotonic() - self._said > PULSE_SECONDS:
                self._said = time.monotonic()
                say(f"  {self._done} of {self._total} mutants tried")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", nargs="*", default=list(MODULES), choices=list(MODULES))
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants to try, chosen by lot")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    rows = []
    for name in options.modules:
        mutants = list(mutants_of(name, (ROOT / MODULES[name].path).read_text(), MODULES[name].words))
        if options.share < 1.0:
            mutants = random.Random(1).sample(mutants, max(1, round(len(mutants) * options.share)))
        rows.append(_report(name, mutants, outcomes_of(name, mutants, options.jobs)))
    say("| module | mutants | killed | % | out of time | explained | unexplained |\n| --- |" + " --: |" * 6)
    for name, *figures in rows:
        say(f"| {name} | " + " | ".join(map(str, figures)) + " |")
    failed = sum(killed / total < LEAST_KILLED for _, total, killed, *_ in rows)
    say(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _report(name: str, mutants: list[Mutant], outcomes: list[Outcome]) -> tuple[str, int, int, str, int, int, int]:
    """The row of the module in the table at the end."""
    survivors = [mutant for mutant, one in zip(mutants, outcomes, strict=True) if one is Outcome.SURVIVED]
    reasons = [KNOWN_SURVIVORS.get((mutant.module, mutant.code, mutant.change)) for mutant in survivors]
    total, killed, late = len(mutants), len(mutants) - len(survivors), outcomes.count(Outcome.OUT_OF_TIME)
    percent = f"{killed / total:.1%}"
    say(
        f"{name}: {killed} of {total} mutants killed ({percent})"
        + f", {late} of them by running out of time" * bool(late)
    )
    for mutant, reason in zip(survivors, reasons, strict=True):
        say(f"  line {mutant.line}, {mutant.change}: {mutant.code}  -- {reason or 'UNEXPLAINED'}")
    return name, total, killed, percent, late, len(survivors) - reasons.count(None), reasons.count(None)


if __name__ == "__main__":
    sys.exit(main())
