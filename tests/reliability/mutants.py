"""Mutation testing: one small change at a time, and the tests of the module must notice.

    python -m tests.reliability.mutants [--modules framer citations ...] [--share 1.0] [--jobs 2]

Works on a copy of the tree. The operators: a comparison becomes its neighbour (< and <=, == and !=, is and is not, in and
not in), `and` and `or` change places, `not` is dropped, + and -, * and // change places, a whole number grows by one, a
text becomes another, True and False change places, a returned value becomes None, a condition is turned around, a loop
control (break, continue) or a call made for its effect is dropped. Docstrings, annotations and what is only for a person to read
(log lines, the reasons of faults) are left alone.

Survivors that are known and explained stand in `KNOWN_SURVIVORS`; any other survivor is listed, and fewer killed than
`LEAST_KILLED` fails the run.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("src") / "openai_responses_mcp"
LEAST_KILLED = 0.90
TEST_SECONDS = 60.0
PULSE_SECONDS = 20.0


# One counterexample is enough; making it smaller would only take time.
IMPATIENCE = """
from hypothesis import Phase, settings
settings.register_profile("impatient", phases=[Phase.explicit, Phase.generate], deadline=None)
settings.load_profile("impatient")
"""


class Module(NamedTuple):
    path: Path
    tests: tuple[str, ...]
    test_seconds: int = 20


EDGES = "tests/reliability/test_edges.py"
_DISPATCHING = ("dispatch", "dispatch_any_order", "eras", "progress", "session", "calling")
MODULES = {
    "cancellation": Module(PACKAGE / "domain/cancellation.py", ("tests/domain/test_cancellation.py",)),
    "citations": Module(PACKAGE / "domain/citations.py", ("tests/domain/test_citations.py", EDGES)),
    "masking": Module(PACKAGE / "domain/masking.py", ("tests/domain/test_masking.py", EDGES)),
    "dispatcher": Module(
        PACKAGE / "server/dispatch.py",
        (*(f"tests/server/test_{name}.py" for name in _DISPATCHING), EDGES),
    ),
    "jsonrpc": Module(PACKAGE / "server/jsonrpc.py", ("tests/server/test_jsonrpc.py", EDGES)),
    "framer": Module(PACKAGE / "adapters/stdio/framing.py", ("tests/adapters/stdio/test_framing.py", EDGES), 8),
}

# By module, line of code as it stands, and change: why no test can or need tell the difference.
KNOWN_SURVIVORS: dict[tuple[str, str, str], str] = {
    (
        "citations",
        'return item if _ISO_DATE.search(_URL.sub("", item)) else f"{item.rstrip()} ({today})"',
        "another text",
    ): "what stands on both sides of an address would have to be the halves of one date",
    (
        "dispatcher",
        '"Answers questions with sources, searching the web when needed. Use answer for most questions, answer_detailed for"',
        "another text",
    ): "the wording of the instructions",
    (
        "jsonrpc",
        "check_circular=False,  # An eighth of the time, for what is never circular.",
        "False to True",
    ): "looks for what is not there, and says the same",
    (
        "jsonrpc",
        'return "nesting too deep" if isinstance(exc, RecursionError) else str(exc)[:200]',
        "200 to 201",
    ): "no reason is as long as that; the limit is there in case one ever is",
    ("masking", 'yield quote(secret, safe="", errors="replace")', "another text"): "a letter is never quoted anyway",
    ("masking", "for shift in range(3):", "3 to 4"): "four letters hold three bytes, so a shift by three is none",
    ("masking", "first = -(-shift * 8 // 6)", "8 to 9"): "the same for the shifts there are, 0 to 2",
    ("masking", "first = -(-shift * 8 // 6)", "6 to 7"): "the same for the shifts there are, 0 to 2",
    ("framer", "return _Step.NEED_MORE", "returns None"): "None means the same to the caller",
    ("framer", "NEED_MORE = 2", "2 to 3"): "a name with another number behind it",
    ("framer", "UNDECIDED = 4", "4 to 5"): "a name with another number behind it",
    ("framer", "self._searched = 0", "0 to 1"): "no line that is searched begins with its end",
    ("framer", "self._header_lines = 0", "0 to 1"): "set anew with every header block",
    ("framer", "self._header_bytes = 0", "0 to 1"): "set anew with every header block",
    ("framer", "self._body_bytes = 0", "0 to 1"): "set anew with every body",
    (
        "framer",
        "if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer) and not self._has_ended:",
        "Lt to LtE",
    ): "waits for one byte more after a whole mark, and goes on in the same way",
    (
        "framer",
        "self._drop(blanks.end() if blanks else 0)",
        "0 to 1",
    ): "the pattern always matches; for the type checker",
    ("framer", "end = self._line_end(needs_newline=True)", "True to False"): "nothing can follow a last half header",
    (
        "framer",
        "is_all = len(self._buffer) <= within",
        "LtE to Lt",
    ): "whatever byte comes next is beyond what is looked at",
    ("framer", 'end -= self._buffer.endswith(b"\\n", 0, end)', "0 to 1"): "no line begins with its end",
    ("framer", 'end -= self._buffer.endswith(b"\\r", 0, end)', "0 to 1"): "no line begins with its end",
}

# What such a call is given is for a person to read.
_FOR_PEOPLE = {"debug", "warning", "error", "FramingFault", "_lose_track", "_fail", "CallInFlight", "cancel_all"}


class Mutant(NamedTuple):
    module: str
    line: int
    code: str
    change: str
    source: str


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
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _FOR_PEOPLE


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
    return is_docstring or is_text_for_people or is_log_line or is_type_only or is_type_name


def mutants_of(name: str, source: str) -> Iterator[Mutant]:
    tree = ast.parse(source)
    lines = source.splitlines()
    for parent, field, number, child in list(places_in(tree)):
        line = getattr(child, "lineno", getattr(parent, "lineno", 0))
        for change, other in changes_of(child):
            _put(parent, field, number, ast.copy_location(other, child))
            yield Mutant(name, line, lines[line - 1].strip() if line else "", change, _text(tree))
            _put(parent, field, number, child)


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
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        unwanted = shutil.ignore_patterns("__pycache__", "node_modules", "agents", "bench", "clients")
        shutil.copytree(ROOT / "tests", folder / "tests", ignore=unwanted)
        shutil.copy(ROOT / "pyproject.toml", folder)
        (folder / "impatience.py").write_text(IMPATIENCE)

    def passes(self, module: Module, source: str | None = None) -> bool:
        """Whether the tests are content with this source, or with the one that is there."""
        target = self._root / module.path
        original = target.read_text()
        target.write_text(original if source is None else source)
        tests = [test for test in module.tests if (self._root / test).exists()]
        try:
            return self._run(tests, module.test_seconds) == 0
        finally:
            target.write_text(original)

    def _run(self, tests: list[str], test_seconds: int) -> int:
        # Each try has examples of its own; what was found for one mutant says nothing about the next.
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "impatience", "--hypothesis-seed=0"]
        path = os.pathsep.join([str(self._root / "src"), str(self._root)])
        environ = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        shutil.rmtree(self._root / ".hypothesis", ignore_errors=True)
        try:
            return subprocess.run(
                [sys.executable, "-m", "pytest", *options, f"--timeout={test_seconds}", *tests],
                cwd=self._root,
                env=environ,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TEST_SECONDS,
            ).returncode
        except subprocess.TimeoutExpired:
            return 1


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def survivors_of(mutants: list[Mutant], jobs: int) -> list[Mutant]:
    with TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        free: SimpleQueue[Workshop] = SimpleQueue()
        for number in range(jobs):
            free.put(Workshop(Path(folder) / str(number)))
        progress = _Progress(len(mutants))

        def survives(mutant: Mutant) -> bool:
            workshop = free.get()
            try:
                return workshop.passes(MODULES[mutant.module], mutant.source)
            finally:
                free.put(workshop)
                progress.step()

        return [mutant for mutant, survived in zip(mutants, pool.map(survives, mutants), strict=True) if survived]


class _Progress:
    def __init__(self, total: int) -> None:
        self._total, self._done, self._told = total, 0, time.monotonic()
        self._lock = threading.Lock()

    def step(self) -> None:
        with self._lock:
            self._done += 1
            if time.monotonic() - self._told > PULSE_SECONDS:
                self._told = time.monotonic()
                say(f"  {self._done} of {self._total} mutants tried")


def check_unchanged(names: list[str]) -> None:
    """Tests that fail anyway would kill every mutant."""
    with TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder) / "unchanged")
        for name in names:
            if not workshop.passes(MODULES[name]):
                raise SystemExit(f"The tests of {name} fail without any mutant.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", nargs="*", default=list(MODULES), choices=list(MODULES))
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants to try, chosen by lot")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    check_unchanged(options.modules)
    failed = 0
    for name in options.modules:
        mutants = list(mutants_of(name, (ROOT / MODULES[name].path).read_text()))
        if options.share < 1.0:
            mutants = random.Random(1).sample(mutants, max(1, round(len(mutants) * options.share)))
        survivors = survivors_of(mutants, options.jobs)
        failed += _report(name, len(mutants), survivors)
    say(f"{len(options.modules) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _report(name: str, total: int, survivors: list[Mutant]) -> bool:
    """Whether too many have survived."""
    known = {mutant: KNOWN_SURVIVORS.get((mutant.module, mutant.code, mutant.change)) for mutant in survivors}
    killed = (total - len(survivors)) / total
    say(f"{name}: {total - len(survivors)} of {total} mutants killed ({killed:.1%})")
    for mutant, reason in known.items():
        say(
            f"  line {mutant.line}, {mutant.change}: {mutant.code}"
            + (f"  -- {reason}" if reason else "  -- UNEXPLAINED")
        )
    return killed < LEAST_KILLED


if __name__ == "__main__":
    sys.exit(main())
