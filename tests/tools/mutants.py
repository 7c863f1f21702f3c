"""Mutation testing: one small change at a time, and the tests of the module must notice.

    python -m tests.tools.mutants [--modules framer citations ...] [--share 1.0] [--jobs 2] [--idle]

Works on a copy of the tree. A mutant is tried with the tests that reach its statement, the fastest first. One that runs
out of time is tried again when the others are done, alone and with more time; if it runs out of time again, it counts as
killed and is counted separately too.

The operators: a comparison becomes its neighbour (< and <=, == and !=, is and is not, in and not in), `and` and `or` change places, `not` is dropped, + and -, * and // change places, a whole number grows by one, a
text becomes another, True and False change places, a returned value becomes None, a condition is turned around, a loop
control (break, continue) or a call made for its effect is dropped. Docstrings, annotations and what is only for a person to read
(log lines, the reasons of faults) are left alone.

With --idle no try stops at the first failing test, and the tests that are never the only one to notice are listed at the
end. They are candidates for removal, as far as the modules of the run go; it takes longer.

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
from tests.tools.mutant_tests import FAILED, NOT_A_FUNCTION, NOTES
from tests.tools.mutant_tests import Module as TestedModule

ROOT = Path(__file__).resolve().parents[2]
LEAST_KILLED = 0.90
LIMIT_SECONDS = 60.0
PATIENCE = 3
"""How much more time a mutant gets in its second try."""
PULSE_SECONDS = 20.0


# What such a call is given is for a person to read.
_FOR_PEOPLE = {"debug", "warning", "error", "FramingFault", "_lose_track", "_fail", "CallInFlight", "cancel_all"}

# Of what these are given, only the text at this place is for a person; the code before it is not.
_MESSAGE_AT = {
    "AgentsError": 1,
    "config_error": 0,
    "_invalid": 0,
    "require": 2,
    "bad_token": 0,
    "schema_error": 0,
    "Sentence": 0,
}


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
            _put(parent, field, number, other)
            code = lines[line - 1].strip() if line else ""
            yield Mutant(name, line, code, change, ast.unparse(tree), statements.get(id(child), range(0)))
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


class Reached(NamedTuple):
    """Without any mutant."""

    lines: dict[int, list[str]]
    """The tests that reach a line, and "import" if it runs before the tests; the fastest first."""
    tests: list[str]
    imported: list[str]


class Workshop:
    """A copy of the tree in which one mutant at a time is tried."""

    def __init__(self, folder: Path, to_the_end: bool) -> None:
        self._root, self._to_the_end = folder, to_the_end
        # With the compiled files that are there: a mutant is newer than them, and no others are written.
        shutil.copytree(ROOT / "src", folder / "src")
        unwanted = shutil.ignore_patterns("node_modules", "bench")
        shutil.copytree(ROOT / "tests", folder / "tests", ignore=unwanted)
        shutil.copy(ROOT / "pyproject.toml", folder)
        path = os.pathsep.join([str(self._root / "src"), str(self._root)])
        quick = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        self._tests = subprocess.Popen(
            [sys.executable, "-m", "tests.tools.mutant_tests"],
            cwd=folder,
            env={**os.environ, **quick, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def reached_by(self, name: str) -> Reached:
        """All tests have to pass: else they would kill every mutant."""
        limit = LIMIT_SECONDS * PATIENCE
        if self._order("reach", self._module(name, MODULES[name].test_seconds * PATIENCE), limit) != 0:
            raise SystemExit(f"The tests of {name} fail without any mutant.")
        notes = json.loads((self._root / NOTES).read_text())
        return Reached(
            {int(line): tests for line, tests in notes["reached"].items()}, notes["tests"], notes["imported"]
        )

    def make_ready(self, name: str, reached: Reached) -> None:
        """Written as a mutant is, so that only the mutated line differs from it. The tests pass here too without one."""
        target = self._root / MODULES[name].path
        target.write_text(ast.unparse(ast.parse(target.read_text())))
        if self._order("make_ready", self._module(name, MODULES[name].test_seconds), reached.imported) != 0:
            raise SystemExit(f"The tests of {name} cannot be collected.")
        if self._order("attempt", ([], LIMIT_SECONDS * PATIENCE, False, False)) != 0:
            raise SystemExit(f"The tests of {name} fail without any mutant in a process that has collected them.")

    def outcome(self, mutant: Mutant, reached: Reached, patience: int = 1) -> Outcome:
        """With the tests that reach the statement; with all tests, if it runs while it is imported."""
        module = MODULES[mutant.module]
        target = self._root / module.path
        original = target.read_text()
        target.write_text(mutant.source)
        (self._root / FAILED).unlink(missing_ok=True)
        chosen = list(dict.fromkeys(test for line in mutant.lines for test in reached.lines.get(line, ())))
        started = time.monotonic()
        try:
            code = NOT_A_FUNCTION
            if "import" not in chosen and patience == 1:
                code = self._order("attempt", (chosen, LIMIT_SECONDS, self._to_the_end))
            if code == NOT_A_FUNCTION:
                chosen = reached.tests if "import" in chosen else chosen
                one = (chosen, LIMIT_SECONDS * patience, self._to_the_end)
                code = self._order("attempt_fresh", one, module.test_seconds * patience)
        finally:
            target.write_text(original)
        if code == 0:
            return Outcome.SURVIVED
        is_late = time.monotonic() - started >= module.test_seconds * patience
        return Outcome.OUT_OF_TIME if is_late else Outcome.KILLED

    def failed(self) -> set[str]:
        """The tests that failed in the last try, each with all its parameters as one."""
        notes = self._root / FAILED
        return {line.partition("[")[0] for line in notes.read_text().splitlines()} if notes.exists() else set()

    def _module(self, name: str, test_seconds: int) -> TestedModule:
        path = MODULES[name].path
        dotted = ".".join(path.relative_to("src").with_suffix("").parts)
        return TestedModule(str(self._root / path), dotted, list(MODULES[name].tests), test_seconds)

    def _order(self, name: str, *arguments: object) -> int:
        assert self._tests.stdin is not None
        assert self._tests.stdout is not None
        self._tests.stdin.write(json.dumps((name, arguments)) + "\n")
        self._tests.stdin.flush()
        return int(self._tests.stdout.readline())

    def close(self) -> None:
        assert self._tests.stdin is not None
        self._tests.stdin.close()
        self._tests.wait(LIMIT_SECONDS)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def outcomes_of(
    name: str, mutants: list[Mutant], workshops: list[Workshop], killers: dict[str, list[set[str]]]
) -> list[Outcome]:
    """`killers` are given, by test, the sets of tests that it failed with."""
    reached = workshops[0].reached_by(name)
    for test in reached.tests:
        killers.setdefault(test.partition("[")[0], [])
    free: SimpleQueue[Workshop] = SimpleQueue()
    progress = _Progress(len(mutants))

    def make_ready(workshop: Workshop) -> None:
        workshop.make_ready(name, reached)
        free.put(workshop)

    def outcome(mutant: Mutant) -> Outcome:
        workshop = free.get()
        try:
            found = workshop.outcome(mutant, reached)
            for test in (failed := workshop.failed()):
                killers.setdefault(test, []).append(failed)
            return found
        finally:
            free.put(workshop)
            progress.step()

    with ThreadPoolExecutor(len(workshops)) as pool:
        list(pool.map(make_ready, workshops))
        outcomes = list(pool.map(outcome, mutants))
    for number, mutant in enumerate(mutants):
        if outcomes[number] is Outcome.OUT_OF_TIME:
            outcomes[number] = workshops[0].outcome(mutant, reached, PATIENCE)
            say(f"  out of time, then {outcomes[number].name}, line {mutant.line}, {mutant.change}: {mutant.code}")
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
    parser.add_argument("--idle", action="store_true", help="list the tests that no mutant needs")
    options = parser.parse_args()
    rows = []
    killers: dict[str, list[set[str]]] = {}
    with TemporaryDirectory() as folder:
        workshops = [Workshop(Path(folder) / str(number), options.idle) for number in range(options.jobs)]
        for name in options.modules:
            started = time.monotonic()
            mutants = list(mutants_of(name, (ROOT / MODULES[name].path).read_text(), MODULES[name].words))
            if options.share < 1.0:
                mutants = random.Random(1).sample(mutants, max(1, round(len(mutants) * options.share)))
            rows.append(_report(name, mutants, outcomes_of(name, mutants, workshops, killers)))
            say(f"  {time.monotonic() - started:.0f} seconds")
        for one in workshops:
            one.close()
    for test, sets in sorted(killers.items()) if options.idle else ():
        if not any(len(failed) == 1 for failed in sets):
            say(f"{test} kills {len(sets)}, alone 0")
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
