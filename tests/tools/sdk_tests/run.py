"""How much of the code written for the SDK runs here, measured with the SDK's own tests.

    python -m tests.tools.sdk_tests.run <folder with the SDK's sdist> [words]

The tests named in `names.txt` are run twice: unchanged, and with their imports swapped and a runner that allows
everything. Without the swap all of them have to pass. With it, those that fail have to be the ones in
`differences.toml`, each with the reason and the row of `docs/agents.md` that says so.

With words, only the swapped tests are run that have one of them as their group or in their name. `--record` writes
what was seen into `differences.toml`, `--choose` makes `names.txt` again for a new version of the SDK.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.tools.sdk_tests import choosing
from tests.tools.sdk_tests.swapping import swap_folder

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NAMES = HERE / "names.txt"
DIFFERENCES = HERE / "differences.toml"
PAGE = ROOT / "docs/agents.md"
NOT_LOOKED_AT = "not looked at yet"
TEST_SECONDS = 30
RUN_SECONDS = 1800


@dataclass
class Difference:
    reason: str
    row: str
    tests: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the SDK's tests against this library")
    parser.add_argument("folder", type=Path, help="where the unpacked sdist and the packages that its tests need are")
    parser.add_argument("words", nargs="*", help="groups, files or tests: only the swapped tests of these names")
    parser.add_argument("--record", action="store_true", help="write what was seen into differences.toml")
    parser.add_argument("--choose", action="store_true", help="make names.txt from the sdist")
    parser.add_argument("--show", action="store_true", help="show the traceback of every failure")
    options = parser.parse_args()
    bench = Bench(options.folder.resolve(), show=options.show)
    if options.choose:
        bench.choose()
        return 0
    names = read_names()
    wanted = [name for name, group in names.items() if _is_meant(name, group, options.words)]
    plain = dict.fromkeys(wanted, True) if options.words else bench.run("plain", wanted)
    differences = read_differences()
    expected = {name for difference in differences for name in difference.tests}
    swapped = bench.run("swapped", wanted, expected)
    _print_table(names, plain, swapped)
    if options.record:
        record(differences, swapped)
        return 0
    problems = [f"fails without the swap: {name}" for name, passed in plain.items() if not passed]
    problems += [f"fails: {name}" for name, passed in swapped.items() if not passed and name not in expected]
    problems += [f"passes, and is listed as different: {name}" for name in sorted(expected) if swapped.get(name)]
    problems += [f"listed as different, and no test: {name}" for name in sorted(expected - set(names))]
    problems += missing_rows(differences)
    _say(*problems)
    return 1 if problems else 0


class Bench:
    """The SDK's tests, unpacked, beside a copy with swapped imports."""

    def __init__(self, folder: Path, *, show: bool) -> None:
        self.folder = folder
        self.sdist = next(path for path in folder.glob("openai_agents-*") if path.is_dir())
        self.roots = {"plain": self.sdist, "swapped": folder / "swapped"}
        self._tracebacks = "short" if show else "no"
        exported = choosing.PublicNames(self.sdist).top
        swap_folder(self.sdist / "tests", self.roots["swapped"] / "tests", exported)
        (self.roots["swapped"] / "pyproject.toml").write_bytes((self.sdist / "pyproject.toml").read_bytes())

    def run(self, kind: str, names: list[str], expected_to_fail: Iterable[str] = ()) -> dict[str, bool]:
        """Which tests pass. What is not as expected is run once more, since a busy machine can fail a test too."""
        passed = self._pytest(kind, names)
        failing = set(expected_to_fail)
        surprising = [name for name in names if passed[name] == (name in failing)]
        return passed | self._pytest(kind, surprising)

    def _pytest(self, kind: str, names: list[str]) -> dict[str, bool]:
        if not names:  # Without a name pytest would run them all.
            return {}
        outcomes = self.folder / f"{kind}.json"
        outcomes.unlink(missing_ok=True)
        chosen = self.folder / f"{kind}.txt"
        chosen.write_text("\n".join(names))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "gated", "--dist", "load"]
        command += ["-n", os.environ.get("WORKERS", "2"), "--timeout", str(TEST_SECONDS), f"--tb={self._tracebacks}"]
        command += ["--no-header", "--no-summary" if self._tracebacks == "no" else "-rN", f"@{chosen}"]
        subprocess.run(command, cwd=self.roots[kind], env=self._environment(kind, outcomes), timeout=RUN_SECONDS)
        seen = json.loads(outcomes.read_text())
        return {name: seen.get(name) == "passed" for name in names}

    def _environment(self, kind: str, outcomes: Path) -> dict[str, str]:
        path = os.pathsep.join([str(self.folder / "packages"), str(HERE)])
        swap = {"SDK_TESTS_SWAPPED": "1"} if kind == "swapped" else {}
        return os.environ | swap | {"PYTHONPATH": path, "SDK_TESTS_OUTCOMES": str(outcomes)}

    def choose(self) -> None:
        """Write the names of the tests that are about public behaviour and pass without the swap."""
        files = [str(path.relative_to(self.sdist)) for path in choosing.files(self.sdist)]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only"]
        command += ["--continue-on-collection-errors", *files]
        environment = self._environment("plain", self.folder / "collected.json")
        done = subprocess.run(command, cwd=self.sdist, env=environment, timeout=RUN_SECONDS, stdout=-1, text=True)
        found = [line for line in done.stdout.splitlines() if line.startswith("tests/") and "::" in line]
        public = [name for name in found if choosing.is_public(self.sdist, name)]
        passed = self.run("plain", public)
        write_names(name for name in public if passed[name])


def read_names() -> dict[str, str]:
    """Each test with its group."""
    names: dict[str, str] = {}
    group = ""
    for line in NAMES.read_text().splitlines():
        if line.startswith("["):
            group = line.strip("[]")
        elif line:
            names[line] = group
    return names


def write_names(names: Iterable[str]) -> None:
    by_group: dict[str, list[str]] = {group: [] for group in [*choosing.GROUPS, "others"]}
    for name in sorted(names):
        by_group[choosing.group_of(name)].append(name)
    NAMES.write_text("\n".join("\n".join([f"[{group}]", *found, ""]) for group, found in by_group.items()))


def read_differences() -> list[Difference]:
    if not DIFFERENCES.exists():
        return []
    return [Difference(**each) for each in tomllib.loads(DIFFERENCES.read_text())["difference"]]


def record(differences: list[Difference], swapped: dict[str, bool]) -> None:
    """Take out what passes now, and add what fails as not looked at yet."""
    known = {name for difference in differences for name in difference.tests}
    added = [name for name, passed in swapped.items() if not passed and name not in known]
    if added:
        unseen = next((each for each in differences if each.reason == NOT_LOOKED_AT), None)
        if unseen is None:
            unseen = Difference(NOT_LOOKED_AT, "", [])
            differences.append(unseen)
        unseen.tests += added
    parts = []
    for difference in differences:
        tests = sorted(name for name in difference.tests if not swapped.get(name))
        if tests:
            listed = "".join(f"    {json.dumps(name)},\n" for name in tests)
            head = f"reason = {json.dumps(difference.reason)}\nrow = {json.dumps(difference.row)}"
            parts.append(f"[[difference]]\n{head}\ntests = [\n{listed}]\n")
    DIFFERENCES.write_text("\n".join(parts))


def missing_rows(differences: list[Difference]) -> list[str]:
    cells = {line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")}
    named = [each.row for each in differences if each.reason != NOT_LOOKED_AT]
    return [f"no row of docs/agents.md begins with: {row}" for row in named if row not in cells]


def _is_meant(name: str, group: str, words: list[str]) -> bool:
    return not words or any(word == group or word in name for word in words)


def _print_table(names: dict[str, str], plain: dict[str, bool], swapped: dict[str, bool]) -> None:
    rows = Counter(names[name] for name in swapped)
    before = Counter(names[name] for name, passed in plain.items() if passed)
    after = Counter(names[name] for name, passed in swapped.items() if passed)
    _say(f"{'group':16} {'plain':>6} {'swapped':>8} {'percent':>8}")
    for group in rows:
        _say(f"{group:16} {before[group]:6} {after[group]:8} {100 * after[group] / rows[group]:8.1f}")
    _say(f"{'all':16} {before.total():6} {after.total():8} {100 * after.total() / max(rows.total(), 1):8.1f}")


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
